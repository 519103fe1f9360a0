"""Replications on a real Dask cluster: the same numbers, whoever dies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import NamedTuple

import numpy as np
import pytest

from gridwright import InputError, load, push, simulate
from gridwright.cli.main import run
from gridwright.experiments.cluster import ClusterError
from gridwright.experiments.serialise import pack, unpack
from gridwright.policies import Policy, find
from gridwright.simulation import Replication

pytestmark = pytest.mark.slow

OWN = """
import numpy as np
from gridwright import Distribution, push

@push
def shortest(task_class, view, more=0.0):
    "Send a task where the fewest are."
    best = 0
    for j in range(len(view.machines)):
        if view.machines[j].backlog + more < view.machines[best].backlog:
            best = j
    return best

class Twice(Distribution):
    @property
    def mean(self):
        return 1.0

    @property
    def variance(self):
        return 1 / 3

    def sample(self, rng, size=None):
        return 2 * rng.random(size)
"""
SYSTEM = """
arrivals = [5, 8]
rates = [[8, 3], [4, 10]]
execution = { kind = "./own.py:Twice" }
"""


class Cluster(NamedTuple):
    address: str
    workers: list["subprocess.Popen[bytes]"]


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and two workers, each a process of its own."""
    file = tmp_path / "scheduler.json"
    here = ("--host", "127.0.0.1", "--no-dashboard")
    scheduler = start("scheduler", *here, "--port", "0", "--scheduler-file", str(file))
    workers = [
        start("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", *here)
        for _ in range(2)
    ]
    try:
        deadline = time.monotonic() + 60
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)  # until the scheduler has written its address down
        address = json.loads(file.read_text())["address"]
        yield Cluster(address, workers)
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()


def same(first: Replication, second: Replication) -> bool:
    """Compare replications to the last digit; only the time they took may differ."""
    return dict(first.more) == dict(second.more) and all(
        np.array_equal(one, two, equal_nan=True)
        for one, two in zip(
            first._replace(seconds=0, trace=0, more={"": 0}),
            second._replace(seconds=0, trace=0, more={"": 0}),
            strict=True,
        )
        if not isinstance(one, dict)
    )


def test_the_same_bytes_with_a_worker_killed_half_way(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "own.toml").write_text(SYSTEM)
    system, policy = load(str(tmp_path / "own.toml")), str(tmp_path / "own.py") + ":shortest:more=1"
    one = simulate(system, policy, 4000, 8, threads=1)
    two = simulate(system, policy, 4000, 8, threads=2)
    killed: list[int] = []

    def kill_one(done: float, runs: list[Replication]) -> None:
        if runs and not killed:
            assert done < 1
            cluster.workers[0].send_signal(signal.SIGKILL)
            killed.append(len(runs))

    far = simulate(system, policy, 4000, 8, on=cluster.address, progress=kill_one)
    assert killed
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    for first, second, third in zip(
        one.replications, two.replications, far.replications, strict=True
    ):
        assert same(first, second)
        assert same(first, third)


def test_a_cluster_that_loses_its_workers_is_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridwright.experiments.cluster.PATIENCE", 1.0)

    def kill_all(done: float, runs: list[Replication]) -> None:
        for worker in cluster.workers:
            worker.kill()

    with pytest.raises(ClusterError, match="has no workers"):
        simulate("2.B", "mct", 1e6, 4, on=cluster.address, progress=kill_all)


def test_no_cluster_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridwright.experiments.cluster.PATIENCE", 0.5)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        simulate("2.B", "mct", 10, 1, on="tcp://127.0.0.1:9")
    for wrong in ("nonsense", "", "tcp://", "127.0.0.1", "http://x:1", "tcp://x:99999"):
        with pytest.raises(InputError, match="expected tcp://HOST:PORT"):
            simulate("2.B", "mct", 10, 1, on=wrong)


def test_what_nobody_waits_for_is_stopped_and_a_table_is_the_same_there(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Were it not stopped, the table would wait for ages."""

    def interrupt(done: float, runs: list[Replication]) -> None:
        if running.is_set():
            raise KeyboardInterrupt
        if time.monotonic() > begin + 3:
            running.set()

    begin, running = time.monotonic(), Event()
    with pytest.raises(KeyboardInterrupt):
        simulate("2.C1", "lpas", 1e9, 2, on=cluster.address, progress=interrupt)

    def cells(*more: str) -> object:
        assert run(["research", "reproduce", "Q:5x5", "--quick", "--fresh", "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)["targets"]

    assert cells("--on", cluster.address) == cells()


def unpacked_elsewhere(parcel: bytes, tmp_path: Path, expression: str) -> str:
    """Unpack a parcel in another process, which has none of our files, and evaluate something."""
    (tmp_path / "parcel").write_bytes(parcel)
    code = (
        "from pathlib import Path; from gridwright.experiments.serialise import unpack; "
        f"thing = unpack(Path({str(tmp_path / 'parcel')!r}).read_bytes()); print({expression})"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_policy_from_a_file_travels_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    policy = find(f"{folder / 'own.py'}:shortest:more=2")
    parcel = pack(policy)
    (folder / "own.py").unlink()
    assert unpacked_elsewhere(parcel, tmp_path, "repr(thing), thing.arguments((2, 2))") == (
        "<push policy shortest:more=2> (2.0,)"
    )


def test_a_file_in_another_encoding_travels_as_it_is(tmp_path: Path) -> None:
    text = """# -*- coding: latin-1 -*-
from gridwright import push

WORD = "é"

@push
def encoded(task_class, view):
    "Tell how long a word is."
    return len(WORD)
"""
    (tmp_path / "encoded.py").write_text(text, encoding="latin-1")
    parcel = pack(find(str(tmp_path / "encoded.py")))
    assert unpacked_elsewhere(parcel, tmp_path, "thing.decide(0, None)") == "1"


def test_a_policy_by_another_name_and_a_planner_made_by_a_function(tmp_path: Path) -> None:
    text = """
import numpy as np
from gridwright import push

def make(value):
    def planner(situation):
        return np.full(situation.rates.shape, value)
    return planner

def choose(task_class, view):
    "Send everything to the first machine."
    return 0

better = push(choose, plan=make(2.0))
"""
    (tmp_path / "other.py").write_text(text)
    policy = find(str(tmp_path / "other.py"))
    shown = "repr(thing), thing.planner.__name__"
    assert unpacked_elsewhere(pack(policy), tmp_path, shown) == "<push policy choose> planner"


def test_what_was_typed_into_a_session_travels_as_code(tmp_path: Path) -> None:
    @push
    def typed(task_class, view, shift=3):  # type: ignore[no-untyped-def]
        """Send everything to one machine."""
        return shift - 3

    found = unpack(pack(typed(shift=4)))
    assert isinstance(found, Policy)
    assert str(found) == "typed:shift=4"
    assert found.decide(0, None, 4) == 1


def test_shipped_policies_travel_by_name(tmp_path: Path) -> None:
    policies = [
        find(name) for name in ("lpas_dg:planner=grouped", "kpb:k=3:tie=random", "guided_lpas")
    ]
    parcels = pack([pack(each) for each in policies])
    found = unpacked_elsewhere(parcels, tmp_path, "[unpack(each) for each in thing]")
    assert found == repr(policies)


def test_systems_travel(tmp_path: Path) -> None:
    system = load("3.A:table_3_11:2:hyperexponential")
    assert unpacked_elsewhere(pack(system), tmp_path, "thing.to_toml()") == system.to_toml().strip()
