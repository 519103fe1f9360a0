"""Jobs that are sent ahead of need, and called back."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gridwright import JobLostError
from gridwright.grid import Grid, Stage
from gridwright.grid.book import Book
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.job import CallBack, Cancel, Options, Send
from gridwright.policies import find

from .conftest import WAIT, Cluster, journalled, until

pytestmark = pytest.mark.usefixtures("no_process_stays_behind")


def book(policy: str = "fcfs", machines: int = 2, rate: float = 1000.0, most: int = 2) -> Book:
    made = Book(find(policy), [[rate] * machines] * 2, [1.0, 1.0], retries=2)
    made.ahead.most = most
    return made


def submit(made: Book, *numbers: int, options: Options | None = None) -> list[object]:
    said: list[object] = []
    for number in numbers:
        said += made.submit(0.0, number, 0, options or Options())
    return said + list(made.send_ahead(0.0))


def stages(made: Book) -> list[str]:
    return [str(job.stage) for job in made.jobs.values()]


@pytest.mark.parametrize("policy", ["fcfs", "mct"])
def test_a_busy_machine_gets_its_next_jobs_and_runs_them_in_order(policy: str) -> None:
    made = book(policy, machines=1)
    assert submit(made, 0, 1, 2, 3) == [Send(0, 0, 1), Send(1, 0, 1), Send(2, 0, 1)]
    assert stages(made)[:3] == ["sent", "queued", "queued"]
    made.finished(1.0, 0, 1)
    assert made.running[0] is made.jobs[1]
    assert made.jobs[1].stage == Stage.sent
    made.finished(2.0, 1, 1)
    assert made.send_ahead(2.0) == [Send(3, 0, 1)]
    for number in (2, 3):
        made.finished(3.0, number, 1)
    assert stages(made) == ["finished"] * 4
    assert made.machines[0].backlog == 0


def test_no_job_is_sent_ahead_behind_a_long_one() -> None:
    made = book(machines=1, rate=1.0)
    assert submit(made, 0, 1) == [Send(0, 0, 1)]


def test_a_job_is_called_back_for_an_idle_machine_and_not_sent_ahead_again() -> None:
    made = book()
    assert submit(made, 0, 1, 2, 3) == [Send(0, 0, 1), Send(1, 1, 1), Send(2, 0, 1), Send(3, 1, 1)]
    made.finished(1.0, 1, 1)
    made.finished(1.0, 3, 1)
    assert made.send_ahead(1.0) == [CallBack(2, 0, 1)]
    assert made.send_ahead(1.0) == []  # once
    assert made.not_begun(2.0, 2, 1) == [Send(2, 1, 2)]
    assert made.jobs[2].lost == 0


def test_a_job_that_comes_back_after_the_one_before_it_has_ended_is_not_lost() -> None:
    made = book()
    submit(made, 0, 1, 2, 3)
    made.finished(1.0, 1, 1)
    made.finished(1.0, 3, 1)
    assert made.send_ahead(1.0) == [CallBack(2, 0, 1)]
    made.finished(2.0, 0, 1)  # the book takes 2 for running now
    assert made.not_begun(2.0, 2, 1) in ([Send(2, 0, 2)], [Send(2, 1, 2)])


def test_a_job_of_a_higher_priority_goes_before_what_was_sent_ahead() -> None:
    made = book(machines=1)
    submit(made, 0, 1, 2)
    assert submit(made, 3, options=Options(priority=1)) == [CallBack(2, 0, 1), CallBack(1, 0, 1)]
    made.not_begun(1.0, 2, 1)
    made.not_begun(1.0, 1, 1)
    made.send_ahead(1.0)
    order = []
    while (job := made.running[0]) is not None:
        order.append(job.number)
        made.finished(2.0, job.number, job.attempt)
        made.send_ahead(2.0)
    assert order == [0, 3, 1, 2]


def test_only_the_running_job_is_blamed_for_the_death_of_its_process() -> None:
    made = book(machines=1)
    submit(made, 0, 1, 2)
    said = made.machine_down(1.0, 0, died="exit 7")
    assert said == [Cancel(0, 0, 1), Cancel(1, 0, 1), Cancel(2, 0, 1)]
    assert [(job.deaths, job.lost) for job in made.jobs.values()] == [(1, 1), (0, 0), (0, 0)]
    assert stages(made) == ["waiting"] * 3


def test_the_job_that_a_machine_says_it_runs_is_the_one_it_runs() -> None:
    made = book(machines=1)
    submit(made, 0, 1)
    made.started(1.0, 1, 1)
    assert made.running[0] is made.jobs[1]
    assert stages(made) == ["queued", "sent"]
    made.finished(2.0, 1, 1)
    made.finished(3.0, 0, 1)
    assert stages(made) == ["finished"] * 2


def test_a_paused_machine_gives_back_what_it_was_sent_ahead() -> None:
    made = book(machines=1)
    submit(made, 0, 1)
    assert made.close(1.0, 0) == [CallBack(1, 0, 1)]
    made.not_begun(1.0, 1, 1)
    made.finished(1.0, 0, 1)
    assert stages(made) == ["finished", "waiting"]
    assert made.open(2.0, 0) == [Send(1, 0, 2)]


def test_jobs_behind_one_that_takes_much_too_long_are_called_back() -> None:
    made = book(machines=1)
    submit(made, 0, 1)
    made.started(0.0, 0, 1)
    assert made.look_ahead(0.5) == []
    assert made.look_ahead(2.0) == [CallBack(1, 0, 1)]


@pytest.fixture(params=["local", pytest.param("dask", marks=pytest.mark.slow)])
def executor(request: pytest.FixtureRequest) -> object:
    if request.param == "local":
        return LocalExecutor(2)
    cluster: Cluster = request.getfixturevalue("cluster")
    return DaskExecutor(cluster.address, 2)


def test_real_jobs_do_not_wait_behind_a_long_one(executor: object, tmp_path: Path) -> None:
    """The long job has the class of short ones, so that nobody can foresee it."""
    path = tmp_path / "j.sqlite"
    with Grid("fcfs", on=executor, journal=path) as grid:  # type: ignore[arg-type]
        for future in grid.submit_all(time.sleep, [0.0] * 20):
            future.result(WAIT)
        long = grid.submit(time.sleep, 10 * WAIT)
        for future in grid.submit_all(time.sleep, [0.001] * 60):
            future.result(WAIT)
        assert long.cancel()
        assert grid.status()["deaths"] == 0
    ends = Counter(kept.job.stage for kept in journalled(path).values())
    assert ends == {Stage.finished: 80, Stage.cancelled: 1}


def test_jobs_that_were_sent_ahead_can_be_cancelled(executor: object, tmp_path: Path) -> None:
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:  # type: ignore[arg-type]
        for future in grid.submit_all(time.sleep, [0.0] * 20):
            future.result(WAIT)
        futures = grid.submit_all(time.sleep, [0.3] * 8)
        until(lambda: any(grid._in_loop(lambda: list(grid.mapper.book.ahead.queues))))
        assert all(future.cancel() for future in futures[2:])
        for future in futures[:2]:
            future.cancel()
        assert grid.submit(abs, -7).result(WAIT) == 7
        assert grid._in_loop(lambda: sum(map(len, grid.mapper.book.ahead.queues))) == 0


def test_jobs_do_not_pile_up_behind_a_pinned_job_that_was_called_back() -> None:
    made = book(machines=2, most=3)
    made.submit(0.0, 0, 0, pinned=0)
    made.submit(0.0, 1, 0, pinned=0)
    assert made.send_ahead(0.0) == [Send(1, 0, 1)]
    made.close(0.0, 0)
    made.not_begun(0.0, 1, 1)
    made.open(0.0, 0)
    submit(made, *range(2, 12))
    assert [job.number for job in made.own[0]] == [1]


def test_a_job_that_holds_the_interpreter_does_not_keep_what_was_sent_behind_it(
    tmp_path: Path,
) -> None:
    with Grid("fcfs", 2, journal=tmp_path / "j.sqlite") as grid:
        short = grid.options(task_class="short")
        for future in short.submit_all(abs, range(20)):
            future.result(WAIT)
        long = short.submit(hold_the_interpreter())
        for future in short.submit_all(abs, range(60)):
            future.result(WAIT)
        assert long.cancel()
        assert grid.status()["deaths"] == 0


def hold_the_interpreter() -> Callable[[], None]:
    def hold() -> None:
        import ctypes

        ctypes.PyDLL(None).sleep(600)  # unlike CDLL, this lets no other thread run

    return hold


@pytest.mark.slow
def test_a_large_result_does_not_make_a_job_guilty_of_its_neighbours_death(
    cluster: Cluster, tmp_path: Path
) -> None:
    def run(kind: str) -> bytes:
        import os

        if kind == "dies":
            os._exit(3)
        return bytes(20_000 if kind == "large" else 10)

    executor = DaskExecutor(cluster.address, 1)
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite", retries=0) as grid:
        for future in grid.submit_all(run, ["small"] * 40):
            future.result(WAIT)
        kinds = ["large", "large", "large", "dies"] * 4
        futures = grid.submit_all(run, kinds)
        errors = [type(future.exception(WAIT)) for future in futures]
        assert errors == [JobLostError if kind == "dies" else type(None) for kind in kinds]
