"""A load takes the share that it is given, and leaves nothing behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from gridwright import InputError
from gridwright.grid.agent import LOAD
from gridwright.testbed.load import Load

pytestmark = pytest.mark.slow

WAIT = 60


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def used(pids: list[int]) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(each.user + each.system for each in times)


def share_of(pids: list[int], seconds: float) -> float:
    began, start = time.monotonic(), used(pids)
    time.sleep(seconds)
    return (used(pids) - start) / ((time.monotonic() - began) * len(pids))


@pytest.fixture
def busy() -> Iterator[list[int]]:
    """Processes that work without a rest, one on each processor."""
    loop = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    command = [sys.executable, "-I", "-S", "-c", loop]
    found = [subprocess.Popen([*command, str(core)]) for core in os.sched_getaffinity(0)]
    yield [process.pid for process in found]
    for process in found:
        process.kill()
        process.wait()


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_it_takes_its_share(share: float, busy: list[int]) -> None:
    """Never more than it, and most of it or of the fair part that a busy machine gives."""
    found: list[float] = []
    with Load(share) as load:
        assert len(load.pids) == len(os.sched_getaffinity(0))
        until(lambda: used(load.pids) > 0.1)

        def most_of_it() -> bool:
            found.append(share_of(load.pids, 1.5))
            return found[-1] > 0.7 * min(share, share_of(busy, 1.5))

        until(most_of_it)
    # what may be made good, 0.2 s, and a clock that ticks every 0.01 s at both ends
    assert max(found) < share + 0.15


def test_it_takes_another_share_when_told() -> None:
    with Load(0.0, cores=1) as load:
        until(lambda: psutil.Process(load.pids[0]).name() == LOAD)
        assert share_of(load.pids, 0.5) < 0.1
        load.change(0.5)
        until(lambda: used(load.pids) > 0.3)
        load.change(0.0)
        time.sleep(0.1)
        assert share_of(load.pids, 0.5) < 0.1


def test_it_ends() -> None:
    load = Load(0.2, cores=1)
    load.start()
    load.start()
    (pid,) = load.pids
    load.stop()
    load.stop()
    assert (load.pids, psutil.pid_exists(pid)) == ([], False)
    with load:
        os.kill(load.pids[0], 9)
        until(lambda: psutil.Process(load.pids[0]).status() == psutil.STATUS_ZOMBIE)
        load.change(0.1)


PARENT = """
import sys, time
from gridwright.testbed.load import Load
load = Load(1.0)
load.start()
print(*load.pids, flush=True)
time.sleep(1000)
"""


def test_it_ends_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [psutil.Process(int(word)) for word in parent.stdout.readline().split()]
    until(lambda: all(sum(child.cpu_times()[:2]) > 0.1 for child in children))
    parent.kill()
    parent.communicate()
    until(lambda: not any(_alive(child) for child in children))


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_wrong_shares() -> None:
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="expected a number from 0 to 1"):
            Load(share)
    with pytest.raises(InputError, match="cores is 0"):
        Load(0.5, cores=0)
    with pytest.raises(InputError, match=r"cores is 1000000; this computer has 1 to \d"):
        Load(0.5, cores=1_000_000)
