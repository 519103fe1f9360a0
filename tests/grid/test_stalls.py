"""No event holds up a grid for long: work is cut into pieces, and what waits is small."""

import gc
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import GridClosedError, InputError, connect
from gridwright.grid import Book, Grid, Journal, Stage, mapper, statistics, turn
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.grid.future import JobFuture
from gridwright.grid.service import ServedGrid, serve
from gridwright.policies import PUSH, Policy, find, policy_of

from .conftest import WAIT, until

JOBS = 300


def busy(policy: str = "mct") -> Book:
    """Return a book whose first machine has a long queue, and whose second is free."""
    book = Book(find(policy), np.ones((1, 2)), [1.0])
    book.close(0.0, 1)
    for number in range(JOBS):
        book.submit(float(number), number, 0)
    book.open(float(JOBS), 1)
    book.decisions.clear()
    return book


def where(book: Book) -> list[tuple[str, int, int]]:
    return [(str(job.stage), job.machine, job.attempt) for job in book.jobs.values()]


@pytest.mark.parametrize("what", ["machine_down", "close"])
@pytest.mark.parametrize("policy", ["mct", "pas"])
def test_a_long_queue_is_offered_anew_piece_by_piece(policy: str, what: str) -> None:
    at_once, book = busy(policy), busy(policy)
    getattr(at_once, what)(1000.0, 0)
    book.enough = lambda: True
    getattr(book, what)(1000.0, 0)
    pieces, asked = 1, [len(book.decisions)]
    while book.unfinished:
        before = len(book.decisions)
        book.go_on(1000.0)
        asked.append(len(book.decisions) - before)
        pieces += 1
    assert max(asked) <= 1
    assert pieces > JOBS
    assert where(book) == where(at_once)
    assert book.machines.tolist() == at_once.machines.tolist()
    assert [job.number for job in book.own[1]] == [job.number for job in at_once.own[1]]


def shy(task_class: int, view: Any) -> int:
    """Send the second class to machine 1, and hold the first one back (nobody)."""
    return 0 if task_class == 1 else -1


def test_offers_that_are_broken_off_go_on_with_the_next_class() -> None:
    book = Book(policy_of(shy, PUSH), np.ones((2, 1)), [1.0, 1.0])
    book.closed[0] = True
    book.submit(0.0, 0, 0)
    book.submit(1.0, 1, 1)
    book.enough = lambda: True
    book.open(2.0, 0)
    assert book.unfinished, "the first class was held back"
    book.go_on(2.0)
    assert (book.jobs[0].stage, book.jobs[1].stage) == (Stage.waiting, Stage.sent)
    assert not book.unfinished


def test_a_machine_that_is_soon_back_keeps_the_rest_of_its_queue() -> None:
    book = busy()
    book.enough = lambda: True
    book.machine_down(1000.0, 0)
    for _ in range(10):
        book.go_on(1000.0)
    book.cancel(1000.0, JOBS - 1)
    assert book.jobs[JOBS - 1].stage == Stage.cancelled
    book.machine_up(1001.0, 0)
    while book.unfinished:
        book.go_on(1001.0)
    assert book.machines["backlog"].tolist() == [JOBS - 13, 12]
    assert book.running[0] is not None
    assert len(book.own[0]) == JOBS - 14
    assert sum(job.stage == Stage.waiting for job in book.jobs.values()) == 0


@contextmanager
def calls() -> Iterator[Callable[[], int]]:
    """Count the calls of Python functions."""
    count = [0]

    def note(frame: Any, event: str, argument: Any) -> None:
        count[0] += event == "call"

    sys.setprofile(note)
    try:
        yield lambda: count[0]
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("policy", ["mct", "fcfs"])
def test_to_cancel_a_job_is_not_to_go_through_all(policy: str) -> None:
    book = busy(policy)
    with calls() as counted:
        for number in reversed(range(JOBS)):
            book.cancel(1000.0, number)
        assert counted() < 60 * JOBS
    assert not book.waiting[0]
    assert not book.own[0]


def quiet(duration: float = 1000.0) -> FakeExecutor:
    return FakeExecutor(["a", "b"], lambda *_: duration)


def test_submissions_let_other_words_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "BREATH", -1.0)  # so that every word is a breath of its own
    with Grid("fcfs", on=quiet(0.0), journal=tmp_path / "j", durable=False) as grid:
        sizes: list[int] = []
        write = grid.journal.write

        def noted(entries: Any, jobs: Any, submitted: Any, *rest: Any) -> None:
            sizes.append(len(submitted))
            write(entries, jobs, submitted, *rest)

        monkeypatch.setattr(grid.journal, "write", noted)
        grid.submit_all(abs, range(JOBS))
        until(lambda: grid.statistics().overall.finished == JOBS)
        kinds = [entry.kind for entry in grid.journal.events("submitted", "finished")]
    assert max(sizes) == 1
    assert "finished" in kinds[: JOBS // 2], "jobs end while others come"


def test_what_is_moved_is_written_a_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapper, "ROWS", 10)
    path = tmp_path / "j"
    with Grid("mct", on=quiet(), journal=path) as grid:
        grid.pause("b")
        grid.submit_all(abs, range(JOBS))
        sizes: list[int] = []
        write = grid.journal.write

        def noted(entries: Any, jobs: Any, *rest: Any) -> None:
            sizes.append(len(jobs))
            write(entries, jobs, *rest)

        monkeypatch.setattr(grid.journal, "write", noted)
        grid.resume("b")
        grid.kill("a")
        until(lambda: grid.status()["machines"]["b"]["queued"] == JOBS - 1)
        on = "machine, stage, count(*) FROM job GROUP BY 1, 2 ORDER BY 2"
        there = [("b", "queued", JOBS - 1), ("b", "sent", 1)]
        until(lambda: grid._in_loop(lambda: grid.journal.select(on)) == there)
        grid.close()
    assert max(sizes) <= 12


def test_reading_many_jobs_does_not_wait_for_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that the loop had to do would wait for as long as the loop is held."""
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    (tmp_path / "ä b?%").mkdir()
    monkeypatch.chdir(tmp_path / "ä b?%")
    grid = ServedGrid("fcfs", on=quiet(0.0), journal="j#1.sqlite")  # a name that URIs would quote
    monkeypatch.chdir(tmp_path)
    service = serve(grid, "farm")
    held, go, answered = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        if go.wait(WAIT):
            answered.set()

    with connect("farm") as client:
        for future in client.submit_all(abs, range(JOBS)):
            future.exception(WAIT)
        grid._loop.call_soon_threadsafe(hold)
        assert held.wait(WAIT)
        figures = grid.statistics(within=[WAIT])
        told = client.statistics(within=[WAIT])
        page = client.jobs(limit=7, sort="ended", descending=True)
        machines = client.machine_states()
        go.set()
        assert answered.wait(WAIT), "all of these came before the loop was free"
    assert told["overall"] == figures.overall.as_json()
    assert (figures.overall.finished, figures.overall.tails["within 60"]) == (JOBS, 1)
    assert (page["total"], len(page["jobs"])) == (JOBS, 7)
    assert sum(each["finished"] for each in machines) == JOBS
    service.close()
    grid.close()
    with pytest.raises(GridClosedError):
        grid.statistics()


@pytest.mark.parametrize("journal", ["j.sqlite", ":memory:"])
def test_a_read_sees_one_state_while_the_grid_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Grid("fcfs", on=quiet(0.0), journal=journal, classes=["a", "b"]) as grid:

        def run(task_class: str) -> None:
            grid.options(task_class=task_class).submit(abs, 1).exception(WAIT)

        run("a")
        assert grid.statistics().overall.finished == 1
        if journal == ":memory:":
            return

        def twice(read: Journal) -> tuple[Any, Any]:
            before = statistics(read)
            run("b")
            with pytest.raises(InputError, match="readonly"):
                read.ask("kill", "a")
            return before.as_json(), statistics(read).as_json()

        np.testing.assert_equal(*grid._read(twice))
        assert grid.statistics().classes["b"].finished == 1
        assert grid.journal.owner() == os.getpid(), "a read leaves the lock alone"
        run("a")


@pytest.mark.slow
def test_large_plans_are_made_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    make = Policy.plan

    def noted(self: Policy, situation: Any) -> Any:
        if len(situation.rates) > 12:
            threads.append(threading.current_thread().name)
        return make(self, situation)

    monkeypatch.setattr(Policy, "plan", noted)
    with Grid("pas_dg", machines=2, journal=tmp_path / "j") as grid:
        futures = [grid.options(task_class=f"class {k % 24}").submit(abs, -k) for k in range(48)]
        assert [each.result(WAIT) for each in futures] == list(range(48))
        plan = grid.mapper.book.plan
        until(lambda: not grid.mapper.book.stale)
        assert plan.shape == (24, 2)
    assert threads
    assert all(name.startswith("gridwright plans") for name in threads)


def test_a_class_is_added_without_a_plan() -> None:
    book = Book(find("pas_dg"), np.ones((1, 2)), [1.0])
    before = book.plans
    for _ in range(5):
        book.add_class(np.ones(2), 1.0)
    assert book.plans == before
    book.submit(1.0, 1, 5)
    assert book.plans == before + 1, "one for all of them"


def test_calls_wait_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "AT_HAND", 1000)
    with Grid("fcfs", machines=2, journal=tmp_path / "j") as grid:
        grid.pause("1")
        grid.pause("2")
        futures = grid.submit_all(pow, range(100), [2] * 100)
        assert sum(map(len, grid.mapper.works.at_hand.values())) <= 1000
        grid.resume("1")
        grid.resume("2")
        assert [each.result(WAIT) for each in futures] == [k * k for k in range(100)]
        until(lambda: not grid.mapper.works.at_hand)
        assert grid.mapper.works.size == 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mct", "fcfs"])
def test_a_waiting_job_takes_a_kilobyte_beside_its_future_and_its_call(
    policy: str, tmp_path: Path
) -> None:
    jobs = 500
    with Grid(policy, on=quiet(), journal=tmp_path / "j") as grid:
        grid.submit(abs, 0)
        tracemalloc.start()
        try:
            others = [JobFuture(number, grid.cancel, grid._answers) for number in range(jobs)]
            future = tracemalloc.get_traced_memory()[0] / jobs
            futures = grid.submit_all(abs, range(jobs))
            gc.collect()
            whole = tracemalloc.get_traced_memory()[0] / jobs - future
        finally:
            tracemalloc.stop()
        work = sum(map(sys.getsizeof, grid.mapper.works.at_hand.values())) / jobs
        assert len(others) == len(futures)
        grid.close()
    assert whole - future - work < 1000
