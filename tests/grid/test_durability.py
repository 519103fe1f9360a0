"""What was acknowledged is on disk, whatever is killed."""

import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gridwright.grid import Grid, Journal, machine_states
from gridwright.grid.executors.virtual import FakeExecutor

from .conftest import WAIT, journalled, until

pytestmark = pytest.mark.slow

SUBMIT = """
import sys
from gridwright.grid import Grid
from gridwright.grid.executors.virtual import FakeExecutor

how, path, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
executor = FakeExecutor(["a", "b"], lambda *_: 1000.0)
grid = Grid("fcfs", on=executor, journal=path, durable=how != "quick")
if how == "map":
    for start in range(0, jobs, 50):
        for future in grid.submit_all(abs, range(50)):
            print(future.number, flush=True)
else:
    for k in range(jobs):
        print(grid.submit(abs, k).number, flush=True)
print("all", flush=True)
sys.stdin.read()
"""


def submit_until_killed(path: Path, how: str, jobs: int, after: int) -> set[int]:
    """Kill a process group once it has acknowledged some jobs; return all that it did."""
    command = [sys.executable, "-c", SUBMIT, how, str(path), str(jobs)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as other:
        assert other.stdout is not None
        said = [other.stdout.readline().strip() for _ in range(after)]
        os.killpg(other.pid, signal.SIGKILL)
        said += other.stdout.read().splitlines()
    return {int(word) for word in said if word.isdigit()}


@pytest.mark.parametrize(
    ("how", "jobs", "after"),
    [("submit", 100, 100), ("submit", 3000, 1234), ("map", 5000, 51), ("map", 5000, 2345)],
)
def test_an_acknowledged_job_survives_a_kill(
    how: str, jobs: int, after: int, tmp_path: Path
) -> None:
    path = tmp_path / "j.sqlite"
    acknowledged = submit_until_killed(path, how, jobs, after)
    assert len(acknowledged) >= after
    kept = journalled(path)
    assert acknowledged <= set(kept)
    assert all(each.work for each in kept.values())
    executor = FakeExecutor(["a"], lambda *_: 1000.0)
    with Grid("fcfs", on=executor, journal=path) as grid:
        assert set(grid.unfinished) == set(kept)
        assert grid.submit(abs, 1).number == max(kept) + 1
        grid.close()


def test_numbers_of_lost_jobs_are_not_used_again(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    given = submit_until_killed(path, "quick", 500, 500)
    executor = FakeExecutor(["a"], lambda *_: 0.0)
    with Grid("fcfs", on=executor, journal=path, durable=False) as grid:
        first = grid.submit(abs, 1).number
        assert first > max(given)
    with Grid("fcfs", on=FakeExecutor(["a"], lambda *_: 0.0), journal=path) as grid:
        assert grid.submit(abs, 1).number == first + 1, "after a clean end none is left out"


def test_many_threads_and_callbacks_submit(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    again: list[Any] = []
    with (
        Grid("fcfs", machines=2, journal=path) as grid,
        ThreadPoolExecutor(8) as threads,
    ):
        futures = list(threads.map(lambda k: grid.submit(abs, -k), range(80)))
        assert [each.result(WAIT) for each in futures] == list(range(80))
        assert len({each.number for each in futures}) == 80
        last = grid.submit(abs, -80)
        last.add_done_callback(lambda done: again.append(grid.submit(abs, -done.result() - 1)))
        until(lambda: again)
        assert again[0].result(WAIT) == 81
    assert sorted(journalled(path)) == list(range(82))


def test_a_job_that_is_not_waited_for_can_be_cancelled_at_once(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    executor = FakeExecutor(["a"], lambda *_: 1000.0)
    with Grid("fcfs", on=executor, journal=path, durable=False) as grid:
        futures = grid.submit_all(abs, range(300))
        assert futures[-1].cancel()
        assert futures[0].cancel()
        grid.close()
    stages = {number: str(kept.job.stage) for number, kept in journalled(path).items()}
    assert (len(stages), stages[0], stages[299]) == (300, "cancelled", "cancelled")
    assert sorted(set(stages.values())) == ["cancelled", "sent", "waiting"]


def test_a_paused_machine_stays_paused_in_the_next_grid(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Grid("fcfs", machines=2, journal=path) as grid:
        grid.pause("1")
    with Grid("fcfs", machines=2, journal=path) as grid:
        until(lambda: all(each["up"] for each in grid.status()["machines"].values()))
        list(grid.map(abs, range(6)))
        journal = Journal(path)
        states = {each.name: each.words for each in machine_states(journal)}
        journal.close()
        said = {name: each["paused"] for name, each in grid.status()["machines"].items()}
        assert said == {"1": True, "2": False}
        assert states == {"1": "paused", "2": "up"}
        assert grid.resume("1")
        assert grid.options(machine="1").submit(abs, -1).result(WAIT) == 1
    assert Counter(each.machine for each in journalled(path).values()) == {"2": 6, "1": 1}
