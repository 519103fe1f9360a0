"""A grid on real Dask workers: jobs, machines, credentials."""

import os
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

import cloudpickle
import psutil
import pytest

from gridwright import InputError
from gridwright.grid import Grid, Journal, Stage
from gridwright.grid.executors import Ended, MachineDown, MachineUp, Started, connection
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.dask_machines import Worker

from .conftest import (
    COMMAND,
    WAIT,
    Cluster,
    Driven,
    alive,
    dask_worker,
    events,
    first_time_for_ever,
    journalled,
    running,
    until,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


@pytest.mark.parametrize("policy", ["fcfs", "pas_dg", "mct"])
def test_results_come_back(policy: str, cluster: Cluster, tmp_path: Path) -> None:
    with Grid(policy, on=cluster.address, journal=tmp_path / "j.sqlite") as grid:
        assert grid.mapper.executor.machines == ["1", "2"]
        futures = grid.options(task_class="square").submit_all(pow, range(20), [2] * 20)
        assert [each.result(WAIT) for each in futures] == [k * k for k in range(20)]
        large = grid.submit(lambda size: b"x" * size, 5_000_000)
        assert len(large.result(WAIT)) == 5_000_000
        assert grid.submit(len, b"x" * 12_000_000).result(WAIT) == 12_000_000
        with pytest.raises(ZeroDivisionError):
            grid.submit(divmod, 1, 0).result(WAIT)
    kept = journalled(tmp_path / "j.sqlite")
    assert Counter(each.job.stage for each in kept.values()) == {
        Stage.finished: 22,
        Stage.failed: 1,
    }
    for each in kept.values():
        job = each.job
        assert job.submitted <= job.sent <= job.started <= job.ended


def test_jobs_run_where_the_policy_says(cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address, ["2", "1"])
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
        assert list(grid.status()["machines"]) == ["2", "1"]
        assert grid.pause("1")
        assert not grid.pause("1")
        there = {each.result(WAIT) for each in [grid.submit(os.getppid) for _ in range(5)]}
        grid.resume("1")
        grid.pause("2")
        elsewhere = {each.result(WAIT) for each in [grid.submit(os.getppid) for _ in range(5)]}
        assert len(there) == len(elsewhere) == 1
        assert there != elsewhere
    machines = [each.machine for each in journalled(tmp_path / "j.sqlite").values()]
    assert machines == ["2"] * 5 + ["1"] * 5


def test_a_job_is_stopped_in_the_middle(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    executor = DaskExecutor(cluster.address, 1)
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(function, mark)
        until(mark.exists)
        process = psutil.Process(int(mark.read_text().split()[0]))
        assert future.cancel()
        assert grid.submit(abs, -1).result(WAIT) == 1
        assert not alive([process])
    stages = [each.job.stage for each in journalled(tmp_path / "j.sqlite").values()]
    assert stages == [Stage.cancelled, Stage.finished]
    assert "down" not in {entry.kind for entry in events(tmp_path / "j.sqlite")}


def test_what_is_taken_back_before_it_has_begun_never_runs(cluster: Cluster) -> None:
    for slots in (1, 2):
        with Driven(DaskExecutor(cluster.address, ["1"], slots=slots)) as driven:
            for job in range(5):
                driven.start(job, 0, time.sleep, 1000)
                driven.call(driven.executor.cancel, job, 0, 1)
            driven.start(5, 0, abs, -1)
            assert driven.result(5) == 1
            assert [e.job for e in driven.told if isinstance(e, Ended)] == [5]
            assert not [e for e in driven.told if isinstance(e, MachineDown)]


def test_machines_are_taken_away_and_brought_back(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    with Driven(DaskExecutor(cluster.address)) as driven:
        executor = driven.executor
        assert 0 < driven.wait(executor.ping(0)) < WAIT
        for silent in (False, True):
            mark.unlink(missing_ok=True)
            driven.told.clear()
            driven.start(1, 0, function, mark)
            until(mark.exists)
            process = psutil.Process(int(mark.read_text().split()[0]))
            started = until(lambda: [e for e in driven.told if isinstance(e, Started)])
            assert started[0][:3] == (0, 1, 1), "told before it has ended"
            driven.call(executor.fail, 0, silent=silent)
            driven.call(executor.fail, 0)  # it is away already
            until(lambda: not alive([process]))  # noqa: B023
            with pytest.raises(TimeoutError):
                driven.wait(executor.ping(0))
            driven.start(2, 0, abs, -1)  # nobody hears this
            driven.start(3, 1, abs, -1)
            assert driven.result(3) == 1
            downs = [MachineDown(0, "it was taken away")] * (not silent)
            assert [e for e in driven.told if isinstance(e, MachineDown)] == downs
            driven.call(executor.repair, 0)
            until(lambda: MachineUp(0) in driven.told)
            driven.start(4, 0, abs, -1)
            assert driven.result(4) == 1
            assert not [e for e in driven.told if isinstance(e, Ended) and e.job in (1, 2)]
        driven.call(executor.fail, 0)
        driven.call(executor.repair, 0)
        driven.call(executor.fail, 0)
        driven.call(executor.repair, 0)
        driven.told.clear()
        until(lambda: MachineUp(0) in driven.told)
        driven.start(5, 0, abs, -1)
        assert driven.result(5) == 1


def test_several_machines_on_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    with Driven(DaskExecutor(cluster.address, ["1"], slots=2)) as driven:
        assert driven.executor.machines == ["1/1", "1/2"]
        assert sorted(driven.told) == [MachineUp(0), MachineUp(1)]
        driven.start(1, 0, function, mark)
        until(mark.exists)
        driven.start(2, 1, dask_worker)
        assert driven.result(2) == int(mark.read_text().split()[1])
        driven.call(driven.executor.cancel, 1, 0, 1)
        driven.start(3, 0, abs, -1)
        assert driven.result(3) == 1


def test_workers_tell_of_their_cpu(cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address, prediction={"mode": "fixed", "availability": 0.25})
    path = tmp_path / "j.sqlite"
    with Grid("lpas_dg", on=executor, journal=path, resolution=0.1) as grid:
        until(lambda: len(grid.mapper.beliefs.predicted) == 2)
        until(lambda: (grid.mapper.book.machines["availability"] == 0.25).all())
        grid.predict(executor.machines[1], {"mode": "fixed", "availability": 0.75})
        until(lambda: list(grid.mapper.book.machines["availability"]) == [0.25, 0.75])
    journal = Journal(path)
    readings = [list(entry.fields.values()) for entry in journal.events("availability")]
    journal.close()
    assert {predicted for _, predicted in readings} == {0.25, 0.75}
    assert all(0 <= measured <= 1 for measured, _ in readings)


def test_the_clock_of_another_computer() -> None:
    worker = Worker("tcp://there:1", [])
    worker.set_clock(100.0, 5.0, 104.0, same=False)
    assert (worker.offset, worker.delay) == (97.0, 4.0)
    worker.set_clock(110.0, 14.0, 111.0, same=False)
    assert (worker.offset, worker.delay) == (96.5, 1.0), "the quicker answer tells more"
    worker.set_clock(120.0, 0.0, 130.0, same=False)
    assert worker.offset == 96.5
    worker.set_clock(140.0, 141.0, 142.0, same=True)
    assert worker.offset == 0.0


@pytest.fixture(scope="module")
def credential(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A certificate that everybody in a cluster trusts, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    asked = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gridwright"]
    command = ["openssl", "req", *asked, "-keyout", key, "-out", cert]
    subprocess.run(command, check=True, capture_output=True)
    return {"tls_ca_file": cert, "tls_client_cert": cert, "tls_client_key": key}


def test_who_has_no_credential_is_refused(credential: dict[str, str], tmp_path: Path) -> None:
    cert, key = credential["tls_client_cert"], credential["tls_client_key"]
    tls = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    with running("--local", "1", "--port", "0", "--host", "0.0.0.0", *tls) as cluster:
        address = f"tls://127.0.0.1:{cluster.port}"
        with running("--on", address, "--name", "x", *tls):
            executor = DaskExecutor(address, security=credential)
            assert executor.machines == ["1", "x"]
            with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
                assert [each.result(WAIT) for each in grid.submit_all(abs, [-1, -2])] == [1, 2]
        with pytest.raises(InputError, match="asks for TLS: give security"):
            DaskExecutor(address)
        with pytest.raises(InputError, match="no Dask scheduler answers at tcp://"):
            DaskExecutor(f"tcp://127.0.0.1:{cluster.port}")
        other = subprocess.run(
            [*COMMAND, "--on", f"tcp://127.0.0.1:{cluster.port}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (other.returncode, other.stdout) == (2, "")
        assert other.stderr.startswith("gridwright: no Dask scheduler answers")
    missing = {**credential, "tls_ca_file": str(tmp_path / "none.pem")}
    with pytest.raises(InputError, match="these TLS options cannot be used"):
        DaskExecutor("tls://127.0.0.1:1", security=missing)


def test_wrong_use(cluster: Cluster) -> None:
    for address in ("127.0.0.1:8786", "http://127.0.0.1:1", "tcp://127.0.0.1", "tcp://h:99999"):
        with pytest.raises(
            InputError, match="not the address of a cluster; expected tcp://HOST:PORT"
        ):
            DaskExecutor(address)
    with pytest.raises(InputError, match=r"no worker '3' at tcp://.*; there are 1, 2"):
        DaskExecutor(cluster.address, ["1", "3"])
    with pytest.raises(InputError, match="names a worker twice"):
        DaskExecutor(cluster.address, ["1", "1"])
    with pytest.raises(InputError, match="names no worker"):
        DaskExecutor(cluster.address, [])
    with pytest.raises(InputError, match="slots is 0"):
        DaskExecutor(cluster.address, slots=0)
    with pytest.raises(InputError, match="slots: no machine '3'; there are 1, 2"):
        DaskExecutor(cluster.address, slots={"1": 2, "3": 2})


def test_nobody_there(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1: .*"):
        DaskExecutor("tcp://127.0.0.1:1")
    monkeypatch.setattr(connection, "PATIENCE", 0.5)
    with pytest.raises(InputError, match=r"has 2 workers \(1, 2\); expected at least 3"):
        DaskExecutor(cluster.address, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the number of workers to start"),
        (["--local", "0"], "--local is 0"),
        (["--local", "1", "--port", "70000"], "--port is 70000"),
        (["--local", "1", "--host", "0.0.0.0"], "0.0.0.0 can be reached by others"),
        (["--on", "tcp://192.0.2.1:8786"], "192.0.2.1 can be reached by others"),
        (["--local", "1", "--tls-cert", "x"], "TLS needs all of"),
        (["--on", "nowhere"], "not the address of a cluster"),
    ],
)
def test_wrong_options(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from gridwright.cli.main import run

    assert run(["dask", "workers", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="status 2"):
        Cluster("--local", "1", "--port", cluster.port)


def test_workers_on_an_ipv6_address(tmp_path: Path) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this computer has no IPv6")
    for host in ("::1", "[::1]"):
        with running("--local", "1", "--port", "0", "--host", host) as cluster:
            assert cluster.address.startswith("tcp://[::1]:")
            with Grid("fcfs", on=cluster.address, journal=tmp_path / "j.sqlite") as grid:
                assert grid.submit(pow, 2, 5).result(WAIT) == 32
