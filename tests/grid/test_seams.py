"""What happens at once in a grid: closing, cancelling, locking, dying, and jobs on their way."""

import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from gridwright import GridClosedError, InputError
from gridwright.grid import Grid
from gridwright.grid.book import Book
from gridwright.grid.event import Entry
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.grid.job import Job, Stage
from gridwright.grid.turn import Turn
from gridwright.policies import find

from .conftest import WAIT, journalled, until, where

pytestmark = pytest.mark.usefixtures("no_process_stays_behind")

TAKES_TWO = """
from gridwright import pull
from gridwright.policies import Pairs

@pull
def choosy(machine, view, weight: Pairs = 1.0):
    \"\"\"Take the first class that waits.\"\"\"
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0:
            return i
    return -1
"""


def endless() -> FakeExecutor:
    return FakeExecutor(["a", "b"], lambda *_: 1e6)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep a journal locked, as another process might."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("COMMIT")
        other.close()


def test_a_lack_of_memory_for_the_journal_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j") as grid:
        write, failures = grid.journal.write, [MemoryError(), MemoryError()]

        def seldom(*given: Any) -> None:
            if failures:
                raise failures.pop()
            write(*given)

        monkeypatch.setattr(grid.journal, "write", seldom)
        assert grid.submit(pow, 2, 3).result(WAIT) == 8
        assert not failures


def test_a_policy_that_takes_no_further_class_refuses_the_job(tmp_path: Path) -> None:
    file = tmp_path / "choosy.py"
    file.write_text(TAKES_TWO)
    options: dict[str, Any] = {"machines": 2, "classes": ["a"], "journal": tmp_path / "j"}
    with Grid(find(f"{file}:weight=2 3"), **options) as grid:
        for _ in range(2):
            with pytest.raises(InputError, match="weight"):
                grid.options(task_class="b").submit(pow, 2, 3)
        assert grid.options(task_class="a").submit(pow, 2, 3).result(WAIT) == 8
        assert list(grid.status()["classes"]) == ["a"]


def test_a_request_that_is_given_up_holds_nothing_up(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Grid("fcfs", machines=2, journal=path, durable=False) as grid:
        before = grid.submit(abs, -1)
        before.result(WAIT)
        with locked(path):
            asked = grid._in_loop(lambda: grid.mapper.call(lambda now: [], Entry(0.0, "asked")))
            assert asked.cancel()
            futures = grid.submit_all(abs, range(100))
        assert [each.result(WAIT) for each in futures] == list(range(100))


def submit_until_closed(grid: Grid) -> int:
    for count in range(10_000):
        try:
            grid.submit(abs, -1)
        except GridClosedError:
            return count
    return -1


def enough(grid: Grid, jobs: int) -> bool:
    return len(grid._pending) > jobs


def test_to_close_a_grid_while_others_submit_hangs_nobody(tmp_path: Path) -> None:
    for k in range(10):
        grid = Grid("fcfs", on=endless(), journal=tmp_path / f"{k}")
        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(submit_until_closed, grid) for _ in range(4)]
            until(partial(enough, grid, 4 * k))
            grid.close()
            counts = [each.result(WAIT) for each in asked]
        assert min(counts) >= 0
        assert len(journalled(tmp_path / f"{k}")) >= sum(counts)


def test_to_close_a_grid_ends_a_shutdown_in_another_thread(tmp_path: Path) -> None:
    grid = Grid("fcfs", on=endless(), journal=tmp_path / "j")
    grid.submit(abs, -1)
    wrong: list[BaseException] = []

    def leave() -> None:
        try:
            grid.shutdown()
        except BaseException as error:
            wrong.append(error)

    leaving = Thread(target=leave)
    leaving.start()
    until(lambda: grid._leaving)
    grid.close()
    leaving.join(WAIT)
    assert not leaving.is_alive()
    assert not wrong


@pytest.mark.slow
def test_a_job_that_ended_in_time_has_ended_though_the_grid_was_held_up(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[2.0]], "timeout_factor": 2, "corrections": False}
    with Grid("fcfs", machines=1, journal=tmp_path / "j", **options) as grid:
        for _ in range(3):
            future = grid.submit(time.sleep, 0.3)  # it may take 1 s
            where(grid, future.number)
            grid._loop.call_soon_threadsafe(time.sleep, 1.5)
            assert future.result(WAIT) is None


def test_a_job_is_not_blamed_for_a_process_in_which_it_never_ran(tmp_path: Path) -> None:
    path, executor = tmp_path / "j", LocalExecutor(["only"])
    with Grid("fcfs", on=executor, journal=path, durable=False, retries=0) as grid:
        assert grid.submit(abs, -1).result(WAIT) == 1
        dead = executor.pid(0)
        with locked(path):
            future = grid.submit(pow, 2, 3)
            until(lambda: grid.mapper._unwritten is not None)
            os.kill(dead, 9)
            until(lambda: executor.pid(0) != dead)
        assert future.result(WAIT) == 8
        assert grid.status()["deaths"] == 0


def test_jobs_on_their_way_are_dropped_too(tmp_path: Path) -> None:
    path = tmp_path / "j"
    grid = Grid("fcfs", on=endless(), journal=path, durable=False)
    futures = [grid.submit(abs, -1)]
    until(lambda: grid.status()["classes"]["abs"]["arrived"] == 1)
    with locked(path):
        futures += [grid.submit(abs, k) for k in range(299)]
        until(lambda: grid.mapper._unwritten is not None)
        leaving = Thread(target=grid.shutdown, kwargs={"cancel_futures": True, "wait": False})
        leaving.start()
        until(lambda: len(grid.mapper._inbox) > 0)
    leaving.join(WAIT)
    until(lambda: sum(each.cancelled() for each in futures) == 298)
    grid.close()
    stages = [str(each.job.stage) for each in journalled(path).values()]
    assert (stages.count("cancelled"), stages.count("sent")) == (298, 2)


def test_a_time_limit_of_milliseconds_holds(tmp_path: Path) -> None:
    executor = LocalExecutor(["only"])
    options: dict[str, Any] = {"rates": [[1000.0]], "timeout_factor": 2, "corrections": False}
    with Grid("fcfs", on=executor, journal=tmp_path / "j", retries=0, **options) as grid:
        future = grid.submit(time.sleep, 1000)
        future.exception(WAIT)
        job = grid.statistics().overall
        kept = grid._in_loop(lambda: next(iter(grid.journal.jobs())).job)
        assert job.failed == 1
    assert kept.heard - kept.started < 9.0, "not 10 s later, as if it had not started"


def test_a_machine_whose_cpu_is_all_taken_is_still_there(tmp_path: Path) -> None:
    options: dict[str, Any] = {"timeout": 100.0, "resolution": 3600.0}
    with Grid("fcfs", machines=1, journal=tmp_path / "j", **options) as grid:
        grid.mapper.beliefs.predicted[0] = 0.0
        grid.kill("1")
        grid.resume("1")
        until(lambda: grid.status()["machines"]["1"]["up"])
        assert float(grid.mapper.book.machines[0].availability) > 0.0
        assert grid.submit(abs, -1).result(WAIT) == 1


def test_many_cancel_one_job(tmp_path: Path) -> None:
    path = tmp_path / "j"
    grid = Grid("fcfs", on=endless(), journal=path, durable=False)
    grid.submit(abs, -1)
    with ThreadPoolExecutor(4) as threads:
        with locked(path):
            futures = grid.submit_all(abs, range(20))
            until(lambda: grid.mapper._unwritten is not None)
            asked = [threads.submit(futures[-1].cancel) for _ in range(4)]
            until(lambda: len(grid.mapper._inbox) == 4)
        assert sorted(each.result(WAIT) for each in asked) == [False, False, False, True]
    assert not grid.cancel(futures[-1].number)
    grid.close()


def test_an_ended_job_is_written_once() -> None:
    book = Book(find("mct"), np.ones((1, 2)), [1.0])
    for number in range(50):
        book.submit(1.0, number, 0)
    Turn().take_changed(book, most=1000)
    book.machine_down(2.0, 0)
    number = next(iter(book.moved))
    book.cancel(3.0, number)
    turn = Turn()
    turn.take_changed(book, most=1)
    assert number in [job.number for job in turn.changed]
    assert number not in book.moved


def test_a_machine_with_a_copy_is_not_drained(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[4.0, 4.0]], "timeout": 1.0, "on_timeout": "duplicate"}
    mark = tmp_path / "go"

    def until_there() -> str:
        while not mark.exists():
            time.sleep(0.01)
        return "done"

    with Grid("fcfs", machines=2, journal=tmp_path / "j", corrections=False, **options) as grid:
        future = grid.submit(until_there)
        first = where(grid, 0)
        until(lambda: grid.status()["timed_out"] == 1)
        assert grid.status()["machines"][first]["running"] == 0
        draining = Thread(target=grid.drain, args=(first,))
        draining.start()
        assert draining.is_alive()
        mark.touch()
        assert future.result(WAIT) == "done"
        draining.join(WAIT)
        assert not draining.is_alive()


def test_adopted_jobs_are_not_offered_before_a_machine_is_up() -> None:
    book = Book(find("mct"), np.ones((3, 2)), [1.0] * 3, up=False)
    for number in range(300):
        book.adopt(Job(number, 0, 0.5, Stage.waiting), number % 3)
    assert not book.decisions
    assert not book.moved
    assert len(book.machines_up(2.0, [0, 1])) == 2
    assert len(book.decisions) == 300
