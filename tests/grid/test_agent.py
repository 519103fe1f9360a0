"""The agent tells, remembers, and stops."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import cloudpickle
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.grid.agent import LOAD, Agent, Process, Snapshot, availability, snapshot
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.executors.protocol import Event, Reading
from gridwright.grid.prediction import History, Prediction
from gridwright.testbed.load import Load

pytestmark = pytest.mark.slow

WAIT = 60
HALF = {"mode": "fixed", "availability": 0.5}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))


def told(agent: Agent, count: int) -> list[tuple[float, float]]:
    readings: Queue[tuple[float, float]] = Queue()
    agent.tell = lambda measured, predicted: readings.put((measured[0], predicted[0]))
    with agent:
        return [readings.get(timeout=WAIT) for _ in range(count)]


def test_it_tells_and_remembers() -> None:
    agent = Agent(lambda *_: None, 0.05, lambda: [os.getpid()])
    readings = told(agent, 3)
    assert all(0 <= measured <= 1 and predicted == measured for measured, predicted in readings)
    assert agent.trouble == ""
    hours = History().extent(96).hours
    assert 3 * 0.05 <= hours * 3600 < WAIT
    told(Agent(lambda *_: None, 0.05, list), 1)
    assert History().extent(96).hours > hours, "another goes on with the same file"


def test_it_predicts_from_what_it_reads_back() -> None:
    now, week = time.time(), 7 * 86400
    for ago in range(-1, 2):  # the hour before and after, should it strike just now
        History().add(now - week + 1800 * ago, 1800, 0.25)
    agent = Agent(lambda *_: None, 0.05, list)
    assert [predicted for _, predicted in told(agent, 2)] == pytest.approx([0.25, 0.25])
    fixed = {"mode": "fixed", "availability": 0.75, "period": WAIT}
    agent = Agent(lambda *_: None, 0.05, list, prediction=fixed)
    assert {predicted for _, predicted in told(agent, 2)} == {0.75}


def test_a_machine_that_is_made_slower_has_a_share_of_its_computer() -> None:
    now, week = time.time(), 7 * 86400
    for ago in range(-1, 2):
        History().add(now - week + 1800 * ago, 1800, 0.5)
    found: Queue[tuple[list[float], list[float]]] = Queue()
    fixed = {"mode": "fixed", "availability": 0.75}
    agent = Agent(
        lambda *reading: found.put(reading),
        0.05,
        list,
        prediction=["weekly", "weekly", fixed],
        machines=3,
        shares=lambda: [1.0, 0.5, 0.5],
    )
    with agent:
        measured, predicted = found.get(timeout=WAIT)
    assert measured[1] == measured[2] == pytest.approx(measured[0] / 2)
    assert predicted == pytest.approx([0.5, 0.25, 0.75])


def test_a_fixed_share_ends() -> None:
    fixed = {"mode": "fixed", "availability": 0.0, "period": 1e-3}
    agent = Agent(lambda *_: None, 0.05, list, prediction=fixed)
    assert all(measured == predicted for measured, predicted in told(agent, 2))


def test_it_goes_on_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, and no folder")
    agent = Agent(lambda *_: None, 0.02, list)
    assert len(told(agent, 2)) == 2
    assert "cannot be used as a history" in agent.trouble


def test_it_stops() -> None:
    readings: Queue[float] = Queue()
    agent = Agent(lambda measured, _: readings.put(measured[0]), 1000.0, list)
    agent.start()
    agent.start()
    assert [t.name for t in threading.enumerate()].count("gridwright-agent") == 1
    agent.stop()
    agent.stop()
    assert "gridwright-agent" not in [t.name for t in threading.enumerate()]
    assert readings.empty()


@pytest.mark.parametrize("resolution", [0.0, -1.0, float("nan"), float("inf")])
def test_wrong_resolution(resolution: float) -> None:
    with pytest.raises(InputError, match="expected seconds > 0"):
        Agent(lambda *_: None, resolution, list).start()
    with pytest.raises(InputError, match="no mode 'x'"):
        Agent(lambda *_: None, 1.0, list, prediction="x")
    with pytest.raises(InputError, match="3 predictions for 2 machines"):
        Agent(lambda *_: None, 1.0, list, prediction=["weekly"] * 3, machines=2)


def test_local_machines_are_told_of_in_the_loops_thread() -> None:
    events: list[Event] = []
    threads: set[int] = set()

    async def run() -> None:
        executor = LocalExecutor(2, prediction=[HALF, HALF])

        def tell(event: Event) -> None:
            events.append(event)
            threads.add(threading.get_ident())

        await executor.open(tell, resolution=0.05)
        while len(readings()) < 6:
            await asyncio.sleep(0.01)
        executor.fail(0)
        before = len(readings())
        while len(readings()) < before + 2:
            await asyncio.sleep(0.01)
        assert {each.machine for each in readings()[before:]} == {1}
        executor.predict(1, Prediction.of({"mode": "fixed", "availability": 0.25}))
        while readings()[-1].predicted != 0.25:
            await asyncio.sleep(0.01)
        await executor.close()
        count = len(events)
        await asyncio.sleep(0.2)
        assert len(events) == count

    def readings() -> list[Reading]:
        return [event for event in events if isinstance(event, Reading)]

    asyncio.run(run())
    assert threads == {threading.get_ident()}
    assert [each.machine for each in readings()[:6]] == [0, 1, 0, 1, 0, 1]
    assert all(0 <= each.measured <= 1 for each in readings())
    assert {each.predicted for each in readings()[:6]} == {0.5}


def test_a_load_is_seen_and_the_workers_are_not() -> None:
    """A worker and a load, both children of this process, both as busy as they can be."""

    async def run() -> None:
        executor = LocalExecutor(1)
        await executor.open(lambda event: None)
        executor.start(0, 0, 0, cloudpickle.dumps((exec, ("while True: pass",), {})))
        try:
            with Load(1.0, cores=1) as load:
                pids = [executor.pid(0), *load.pids]
                before, after = await both_at_work(pids)
        finally:
            await executor.close()
        me, (worker, loading) = os.getpid(), pids
        seen = availability(before, after, [me])
        taken = 0.4 / ((os.cpu_count() or 1) * (after.time - before.time))
        assert seen < 1 - taken / 2, "the load is foreign"
        assert availability(before, after, [me, loading]) > seen + taken / 2, "were it ours"
        assert availability(before, after, [me, worker]) == seen, "the worker is ours"
        assert availability(before, after, []) <= seen, "were it not"

    asyncio.run(run())


async def both_at_work(pids: list[int]) -> tuple[Snapshot, Snapshot]:
    """Take two snapshots between which each process has had 0.4 CPU seconds."""
    before = snapshot()
    while True:
        after = snapshot()
        if all(after.processes[pid].seconds - before.processes[pid].seconds > 0.4 for pid in pids):
            return before, after
        await asyncio.sleep(0.01)


SPIN = "import sys; print(flush=True)\nwhile True: pass"
SPIN_AS_GRANDCHILD = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {SPIN!r}])
"""
CORES = os.cpu_count() or 1


@contextmanager
def running(code: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.communicate()


def after_cpu_seconds(pid: int, seconds: float) -> tuple[Snapshot, Snapshot]:
    """Take two snapshots between which the family of a process has had so much CPU time."""

    def used() -> float:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return sum(each.cpu_times().user for each in family)

    before, start = snapshot(), used()
    while used() - start < seconds:
        time.sleep(0.01)
    return before, snapshot()


@pytest.mark.parametrize("code", [SPIN, SPIN_AS_GRANDCHILD])
def test_a_foreign_process_takes_and_one_of_ours_does_not(code: str) -> None:
    """Whatever else runs here, the same seconds with and without the process as ours differ by it.

    Only a machine that reports less busy time than the process alone has used could fail this.
    """
    with running(code) as pid:
        before, after = after_cpu_seconds(pid, 0.6)
    foreign = availability(before, after, [])
    ours = availability(before, after, [pid])
    taken = 0.6 / (CORES * (after.time - before.time))
    assert ours - foreign > taken / 2
    assert 0 <= foreign < 1 - taken / 2


def shot(time: float, busy: float, *processes: tuple[int, int, str, float]) -> Snapshot:
    return Snapshot(time, busy, {each[0]: Process(*each[1:]) for each in processes})


def test_a_child_that_ended_is_in_its_parents_time() -> None:
    before = shot(0, 0, (10, 1, "grid", 5.0), (11, 10, "worker", 3.0), (12, 11, "job", 2.0))
    after = shot(1, 1, (10, 1, "grid", 5.0 + 3.5 + 2.3))
    assert availability(before, after, [10], cores=1) == pytest.approx(0.8)


def test_what_ended_elsewhere_is_forgotten() -> None:
    before = shot(0, 0, (10, 1, "grid", 5.0), (20, 1, "worker", 300.0), (21, 20, "job", 70.0))
    after = shot(1, 1, (10, 1, "grid", 5.4))
    assert availability(before, after, [10, 20], cores=1) == pytest.approx(0.4)


def test_what_outlives_its_job_is_foreign() -> None:
    before = shot(0, 0, (10, 1, "grid", 5.0), (11, 10, "worker", 3.0), (12, 11, "job", 2.0))
    after = shot(1, 1, (10, 1, "grid", 8.0), (12, 1, "job", 2.9))
    assert availability(before, after, [10], cores=1) == pytest.approx(0.0)


def test_a_load_is_foreign_unless_named() -> None:
    before = shot(0, 0, (10, 1, "grid", 5.0), (11, 10, LOAD, 3.0))
    after = shot(1, 1, (10, 1, "grid", 5.25), (11, 10, LOAD, 3.75))
    assert availability(before, after, [10], cores=1) == pytest.approx(0.25)
    assert availability(before, after, [10, 11], cores=1) == pytest.approx(1.0)


def test_one_that_joins_counts_from_then_on() -> None:
    before = shot(0, 0, (10, 1, "grid", 5.0), (20, 1, "worker", 300.0))
    after = shot(1, 1, (10, 1, "grid", 5.0), (20, 1, "worker", 300.5))
    assert availability(before, after, [10, 20], cores=1) == pytest.approx(0.5)


trees = st.dictionaries(
    st.integers(1, 12),
    st.builds(Process, st.integers(0, 12), st.sampled_from(["a", LOAD]), st.floats(0, 100)),
)


@given(trees, trees, st.floats(0, 10), st.floats(0, 100), st.sets(st.integers(1, 12)))
def test_a_share_whatever_is_seen(
    first: dict[int, Process], second: dict[int, Process], wall: float, busy: float, own: set[int]
) -> None:
    """Parents in circles, times that go back, no time between: still a share."""
    before, after = Snapshot(0.0, 50.0, first), Snapshot(wall, busy, second)
    assert 0 <= availability(before, after, own) <= 1
