"""A grid on real Dask workers: whoever dies, freezes or joins, nothing is lost or done twice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import cloudpickle
import psutil
import pytest

from gridwright import InputError
from gridwright.grid import Grid, JobFailedError, Journal, Stage
from gridwright.grid.executors import (
    Ended,
    Event,
    MachineDown,
    MachineUp,
    Started,
    scheduler,
)
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.member import Worker

WAIT = 60
"""Seconds after which something that should have happened long ago has not."""
COMMAND = [sys.executable, "-m", "gridwright", "workers"]


def until(true: Callable[[], Any]) -> Any:
    """Wait for something to become true; it has a minute for what takes a moment."""
    end = time.monotonic() + WAIT
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [
        each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE
    ]


class Cluster:
    """Workers that were started by the command."""

    def __init__(self, *arguments: str) -> None:
        self.home = TemporaryDirectory()
        self.process = subprocess.Popen(
            [*COMMAND, "--json", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GRIDWRIGHT_HOME": self.home.name},
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            self.process.stdout.close()
            self.home.cleanup()
            raise InputError(f"it ended with status {self.process.wait()}")
        self.address: str = json.loads(said)["address"]
        self.port = self.address.rpartition(":")[2]

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """End it; none of its processes stays behind."""
        everybody = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        status = self.process.wait(WAIT)
        assert self.process.stdout is not None
        self.process.stdout.close()
        until(lambda: not alive(everybody))
        self.home.cleanup()
        return status


@contextmanager
def running(*arguments: str) -> Iterator[Cluster]:
    cluster = Cluster(*arguments)
    try:
        yield cluster
    finally:
        if cluster.process.poll() is None:
            assert cluster.end() == 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running("--local", "2", "--port", "0") as found:
        yield found


@pytest.fixture(autouse=True)
def no_process_stays_behind() -> Iterator[None]:
    def workers() -> list[psutil.Process]:
        found = []
        for each in psutil.Process().children(recursive=True):
            try:
                if any(word.endswith("grid/worker.py") for word in each.cmdline()):
                    found.append(each)
            except psutil.Error:
                continue
        return alive(found)

    yield
    until(lambda: not workers())


def journalled(path: Path) -> dict[int, Any]:
    journal = Journal(path)
    try:
        return {kept.job.number: kept for kept in journal.jobs()}
    finally:
        journal.close()


def events(path: Path) -> list[Any]:
    journal = Journal(path)
    try:
        return list(journal.events())
    finally:
        journal.close()


def where(grid: Grid, number: int) -> str:
    """Wait until a job is running; return its machine."""
    return until(
        lambda: next(
            (n for n, m in grid.status()["machines"].items() if m["running"] == number), ""
        )
    )


def all_up(grid: Grid) -> bool:
    return all(machine["up"] for machine in grid.status()["machines"].values())


class Driven:
    """An executor without a grid: what it tells is kept."""

    def __init__(self, executor: DaskExecutor, resolution: float = 0.0) -> None:
        self.executor = executor
        self.told: list[Event] = []
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever)
        self.thread.start()
        self.wait(executor.open(self.told.append, resolution))

    def wait(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(WAIT)

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        async def run() -> Any:
            return function(*arguments, **options)

        return self.wait(run())

    def start(self, job: int, machine: int, function: Any, *arguments: Any) -> None:
        work = cloudpickle.dumps((function, arguments, {}))
        self.call(self.executor.start, job, machine, 1, work)

    def result(self, job: int) -> Any:
        (ended,) = until(lambda: [e for e in self.told if isinstance(e, Ended) and e.job == job])
        assert not ended.error
        return cloudpickle.loads(ended.result)

    def __enter__(self) -> "Driven":
        return self

    def __exit__(self, *wrong: object) -> None:
        self.wait(self.executor.close())
        left = self.call(
            lambda: [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        )
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        assert not left


@pytest.mark.parametrize("policy", ["fcfs", "pas_dg", "mct"])
def test_results_come_back(policy: str, cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address)
    assert executor.machines == ["1", "2"]
    with Grid(policy, executor=executor, journal=tmp_path / "j.sqlite") as grid:
        futures = grid.map(pow, range(20), [2] * 20, task_class="square")
        assert [each.result(WAIT) for each in futures] == [k * k for k in range(20)]
        large = grid.submit(lambda size: b"x" * size, 5_000_000)
        assert len(large.result(WAIT)) == 5_000_000
        assert grid.submit(len, b"x" * 12_000_000).result(WAIT) == 12_000_000
        with pytest.raises(JobFailedError, match="ZeroDivisionError"):
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
    with Grid("fcfs", executor=executor, journal=tmp_path / "j.sqlite") as grid:
        assert list(grid.status()["machines"]) == ["2", "1"]
        grid.pause("1")
        there = {each.result(WAIT) for each in [grid.submit(os.getppid) for _ in range(5)]}
        grid.resume("1")
        grid.pause("2")
        elsewhere = {each.result(WAIT) for each in [grid.submit(os.getppid) for _ in range(5)]}
        assert len(there) == len(elsewhere) == 1
        assert there != elsewhere
    machines = [each.machine for each in journalled(tmp_path / "j.sqlite").values()]
    assert machines == ["2"] * 5 + ["1"] * 5


def first_time_for_ever(mark: Path) -> str:
    """Write down which process this is, and stay; return the second time."""
    if not mark.exists():
        mark.with_suffix(".new").write_text(f"{os.getpid()} {os.getppid()}")
        mark.with_suffix(".new").rename(mark)
        time.sleep(1000)
    return "done"


@pytest.mark.parametrize("which", ["the worker", "the process of the job"])
def test_a_machine_that_is_killed_loses_its_job_and_comes_back(
    which: str, cluster: Cluster, tmp_path: Path
) -> None:
    mark = tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    with Grid(
        "fcfs", executor=DaskExecutor(cluster.address), journal=tmp_path / "j.sqlite"
    ) as grid:
        future = grid.submit(function, mark)
        until(mark.exists)
        machine = where(grid, future.number)
        job, worker = map(psutil.Process, map(int, mark.read_text().split()))
        (worker if which == "the worker" else job).kill()
        assert future.result(WAIT) == "done"
        until(lambda: not alive([job]))
        until(lambda: all_up(grid))
        grid.pause("2" if machine == "1" else "1")
        assert grid.submit(abs, -1).result(WAIT) == 1, "it is of use again"
    kept = journalled(tmp_path / "j.sqlite")[0]
    assert (kept.job.stage, kept.job.attempt, kept.job.lost) == (Stage.finished, 2, 1)
    seen = events(tmp_path / "j.sqlite")
    (down,) = (entry for entry in seen if entry.kind == "down")
    expected = "its worker is gone" if which == "the worker" else "its process was ended by SIGKILL"
    assert (down.machine, down.detail) == (machine, expected)
    assert Counter(entry.kind for entry in seen)["finished"] == 2


def test_a_worker_that_freezes_is_given_up_and_its_late_answer_counts_for_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    def slowly(seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    options: dict[str, Any] = {"rates": [[2.0, 2.0]], "timeout": 2, "corrections": False}
    executor = DaskExecutor(cluster.address)
    with Grid("fcfs", executor=executor, journal=tmp_path / "j.sqlite", **options) as grid:
        grid.pause("2")
        worker = grid.submit(os.getppid).result(WAIT)
        future = grid.submit(slowly, 0.2)
        until(lambda: grid.status()["machines"]["1"]["running"] == future.number)
        os.kill(worker, signal.SIGSTOP)
        try:
            grid.resume("2")
            assert future.result(WAIT) == "done"
            assert not grid.status()["machines"]["1"]["up"]
            with pytest.raises(TimeoutError):
                asyncio.run_coroutine_threadsafe(executor.ping(0), grid._loop).result(WAIT)
        finally:
            os.kill(worker, signal.SIGCONT)
        until(lambda: grid.status()["late_answers"] == 1)
        until(lambda: grid.status()["machines"]["1"]["up"])
        grid.pause("2")
        assert grid.submit(abs, -1).result(WAIT) == 1
    kept = journalled(tmp_path / "j.sqlite")[1]
    assert (kept.job.stage, kept.job.attempt, kept.job.timed_out) == (Stage.finished, 2, 1)
    kinds = Counter(entry.kind for entry in events(tmp_path / "j.sqlite"))
    assert (kinds["finished"], kinds["late answer"], kinds["timed out"]) == (3, 1, 1)


def test_a_scheduler_that_dies_takes_all_machines_with_it_until_it_is_back(tmp_path: Path) -> None:
    path, log = tmp_path / "j.sqlite", tmp_path / "log"

    def note(k: int) -> int:
        time.sleep(0.05)
        with log.open("a") as file:
            file.write(f"{k}\n")
        return k

    with (
        running("--local", "2", "--port", "0") as first,
        Grid("fcfs", executor=DaskExecutor(first.address), journal=path) as grid,
    ):
        futures = grid.map(note, range(30))
        until(lambda: sum(each.done() for each in futures) > 5)
        first.end(signal.SIGKILL)
        until(lambda: not any(m["up"] for m in grid.status()["machines"].values()))
        before = [each.number for each in futures if each.done()]
        assert len(before) < 30
        with running("--local", "2", "--port", first.port) as second:
            assert second.address == first.address
            assert [each.result(WAIT) for each in futures] == list(range(30))
            until(lambda: all_up(grid))
    runs = Counter(map(int, log.read_text().split()))
    assert {runs[k] for k in before} == {1}, "what had ended is not run again"
    seen = events(path)
    ended = Counter(entry.job for entry in seen if entry.kind == "finished")
    assert set(ended.values()) == {1}
    assert len(ended) == 30
    downs = [(entry.machine, entry.detail) for entry in seen if entry.kind == "down"]
    assert sorted(downs[:2]) == [("1", "the scheduler is gone"), ("2", "the scheduler is gone")]


def test_nothing_hangs_without_a_scheduler(tmp_path: Path) -> None:
    with running("--local", "1", "--port", "0") as cluster:
        grid = Grid("fcfs", executor=DaskExecutor(cluster.address), journal=tmp_path / "j.sqlite")
        future = grid.submit(time.sleep, 1000)
        where(grid, future.number)
        cluster.end(signal.SIGKILL)
        until(lambda: not all_up(grid))
        began = time.monotonic()
        grid.close()
        assert time.monotonic() - began < 10
    with pytest.raises(InputError, match="closed before the job had ended"):
        future.result(0)


def test_a_worker_that_joins_is_a_further_machine(cluster: Cluster) -> None:
    with (
        Driven(DaskExecutor(cluster.address)) as all_of_them,
        Driven(DaskExecutor(cluster.address, 2)) as just_two,
    ):
        assert sorted(all_of_them.told) == [MachineUp(0), MachineUp(1)]
        with running("--connect", cluster.address, "--name", "late"):
            until(lambda: MachineUp(2) in all_of_them.told)
            assert all_of_them.executor.machines == ["1", "2", "late"]
            all_of_them.start(1, 2, os.getpid)
            assert all_of_them.result(1) != os.getpid()
            with pytest.raises(InputError, match="status 2"):
                Cluster("--connect", cluster.address, "--name", "late")
        until(lambda: MachineDown(2, "its worker is gone") in all_of_them.told)
        with running("--connect", cluster.address, "--name", "late"):
            until(lambda: all_of_them.told[-1] == MachineUp(2))
        assert just_two.executor.machines == ["1", "2"]
        assert sorted(just_two.told) == [MachineUp(0), MachineUp(1)]


def test_a_grid_uses_a_worker_that_joins(cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address)
    with Grid("fcfs", executor=executor, journal=tmp_path / "j.sqlite") as grid:
        with running("--connect", cluster.address, "--name", "late"):
            until(lambda: len(grid.status()["machines"]) == 3 and all_up(grid))
            for other in ("1", "2"):
                grid.pause(other)
            assert grid.submit(abs, -1).result(WAIT) == 1
        until(lambda: not grid.status()["machines"]["late"]["up"])
        grid.resume("1")
        assert grid.submit(abs, -2).result(WAIT) == 2
    machines = [each.machine for each in journalled(tmp_path / "j.sqlite").values()]
    assert machines == ["late", "1"]


def test_workers_that_joined_come_back_with_their_scheduler(tmp_path: Path) -> None:
    with (
        running("--local", "1", "--port", "0") as cluster,
        running("--connect", cluster.address, "--local", "2", "--name", "x"),
        Driven(DaskExecutor(cluster.address, ["x-2", "x-1"])) as driven,
    ):
        cluster.end(signal.SIGKILL)
        until(lambda: len(driven.told) == 4)
        with running("--local", "1", "--port", cluster.port):
            until(lambda: len(driven.told) == 6)
            assert sorted(driven.told[4:]) == [MachineUp(0), MachineUp(1)]
            driven.start(1, 0, abs, -1)
            assert driven.result(1) == 1


def test_a_job_is_stopped_in_the_middle(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    executor = DaskExecutor(cluster.address, 1)
    with Grid("fcfs", executor=executor, journal=tmp_path / "j.sqlite") as grid:
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
        driven.start(2, 1, os.getppid)
        assert driven.result(2) == int(mark.read_text().split()[1])
        driven.call(driven.executor.cancel, 1, 0, 1)
        driven.start(3, 0, abs, -1)
        assert driven.result(3) == 1


def test_workers_tell_of_their_cpu(cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address, prediction={"mode": "fixed", "availability": 0.25})
    path = tmp_path / "j.sqlite"
    with Grid("lpas_dg", executor=executor, journal=path, resolution=0.1) as grid:
        until(lambda: len(grid.mapper.beliefs.predicted) == 2)
        until(lambda: (grid.mapper.book.machines["availability"] == 0.25).all())
        grid.predict(executor.machines[1], {"mode": "fixed", "availability": 0.75})
        until(lambda: list(grid.mapper.book.machines["availability"]) == [0.25, 0.75])
    journal = Journal(path)
    readings = [entry.detail.split() for entry in journal.events("availability")]
    journal.close()
    assert {predicted for _, predicted in readings} == {"0.2500", "0.7500"}
    assert all(0 <= float(measured) <= 1 for measured, _ in readings)


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


SCRIPT = """
import os, sys, time
from gridwright.grid import Grid
from gridwright.grid.executors.dask import DaskExecutor

address, journal, path = sys.argv[1:]

def work():
    with open(path, "w") as file:
        print(os.getpid(), file=file)
    time.sleep(1000)

grid = Grid("fcfs", executor=DaskExecutor(address), journal=journal)
future = grid.submit(work)
time.sleep(1000)
"""


def test_the_jobs_of_a_grid_that_is_killed_are_stopped(tmp_path: Path) -> None:
    script, pid = tmp_path / "script.py", tmp_path / "pid"
    script.write_text(SCRIPT)
    with running("--local", "1", "--port", "0") as cluster:
        command = [sys.executable, str(script), cluster.address]
        process = subprocess.Popen([*command, str(tmp_path / "j.sqlite"), str(pid)])
        until(lambda: pid.exists() and pid.read_text().endswith("\n"))
        job = psutil.Process(int(pid.read_text()))
        process.kill()
        process.wait()
        until(lambda: not alive([job]))


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
        with running("--connect", address, "--name", "x", *tls):
            executor = DaskExecutor(address, security=credential)
            assert executor.machines == ["1", "x"]
            with Grid("fcfs", executor=executor, journal=tmp_path / "j.sqlite") as grid:
                assert [each.result(WAIT) for each in grid.map(abs, [-1, -2])] == [1, 2]
        with pytest.raises(InputError, match="asks for TLS: give security"):
            DaskExecutor(address)
        with pytest.raises(InputError, match="no Dask scheduler answers at tcp://"):
            DaskExecutor(f"tcp://127.0.0.1:{cluster.port}")
        other = subprocess.run(
            [*COMMAND, "--connect", f"tcp://127.0.0.1:{cluster.port}"],
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
        with pytest.raises(InputError, match="no address of a cluster; expected tcp://HOST:PORT"):
            DaskExecutor(address)
    with pytest.raises(InputError, match=r"no worker '3' at tcp://.*; there are 1, 2"):
        DaskExecutor(cluster.address, ["1", "3"])
    with pytest.raises(InputError, match="names a worker twice"):
        DaskExecutor(cluster.address, ["1", "1"])
    with pytest.raises(InputError, match="names no worker"):
        DaskExecutor(cluster.address, [])
    with pytest.raises(InputError, match="slots is 0"):
        DaskExecutor(cluster.address, slots=0)


def test_nobody_there(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1: .*"):
        DaskExecutor("tcp://127.0.0.1:1")
    monkeypatch.setattr(scheduler, "PATIENCE", 0.5)
    with pytest.raises(InputError, match=r"has 2 workers \(1, 2\); expected at least 3"):
        DaskExecutor(cluster.address, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say how many workers to start"),
        (["--local", "0"], "--local is 0"),
        (["--local", "1", "--port", "70000"], "--port is 70000"),
        (["--local", "1", "--host", "0.0.0.0"], "0.0.0.0 can be reached by others"),
        (["--connect", "tcp://192.0.2.1:8786"], "192.0.2.1 can be reached by others"),
        (["--local", "1", "--tls-cert", "x"], "TLS needs all of"),
        (["--connect", "nowhere"], "no address of a cluster"),
    ],
)
def test_wrong_options(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from gridwright.cli.main import run

    assert run(["workers", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="status 2"):
        Cluster("--local", "1", "--port", cluster.port)
