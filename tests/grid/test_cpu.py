"""Who is foreign: measured on real processes, and by the books on made-up ones."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright.grid.agent import LOAD, Process, Snapshot, availability, snapshot

pytestmark = pytest.mark.slow

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
