"""Leaving a grid: it waits for what was submitted, or stops at once where it is told to."""

import asyncio
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from gridwright import GridClosedError, InputError
from gridwright.grid import Grid, JobFuture, Stage

from .conftest import WAIT, journalled, until, where

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


def test_leaving_waits_for_all_that_was_submitted(tmp_path: Path) -> None:
    with Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite") as grid:
        futures = [*grid.submit_all(abs, range(20)), grid.submit(time.sleep, 0.3)]
    assert [each.result(0) for each in futures] == [*range(20), None]
    assert {each.job.stage for each in journalled(tmp_path / "j.sqlite").values()} == {
        Stage.finished
    }


def test_an_exception_leaves_at_once_and_the_journal_keeps_the_jobs(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    futures: list[JobFuture] = []

    def fail() -> None:
        with Grid("fcfs", machines=1, journal=path) as grid:
            futures.extend([grid.submit(time.sleep, 1000), grid.submit(abs, -1)])
            where(grid, 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    for each in futures:
        with pytest.raises(GridClosedError, match=r"closed before job \d had ended; a Grid with"):
            each.result(0)
    with Grid("fcfs", machines=1, journal=path) as grid:
        assert sorted(grid.unfinished) == [0, 1]
        grid.unfinished[0].cancel()
    assert [each.job.stage for each in journalled(path).values()] == [
        Stage.cancelled,
        Stage.finished,
    ]


@pytest.mark.parametrize("policy", ["fcfs", "mct"])  # jobs wait centrally, or at their machine
def test_what_waits_can_be_dropped(policy: str, tmp_path: Path) -> None:
    mark, path = tmp_path / "go on", tmp_path / "j.sqlite"

    def after_all() -> str:
        while not mark.exists():
            time.sleep(0.01)
        return "done"

    grid = Grid(policy, machines=1, journal=path)
    running = grid.submit(after_all)
    where(grid, 0)
    waiting = [grid.submit(time.sleep, 1000) for _ in range(5)]
    leaving = Thread(target=grid.shutdown, kwargs={"cancel_futures": True})
    leaving.start()
    until(lambda: all(each.cancelled() for each in waiting))
    assert not running.done()
    with pytest.raises(GridClosedError, match="takes no more jobs"):
        grid.submit(abs, -1)
    mark.touch()
    leaving.join(WAIT)
    assert running.result(0) == "done"
    kept = journalled(path)
    assert [kept[k].job.stage for k in range(1, 6)] == [Stage.cancelled] * 5


def test_a_job_that_the_grid_cancels_settles_its_future(tmp_path: Path) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(time.sleep, 1000)
        where(grid, 0)
        assert grid.cancel(future.number)
        assert future.cancelled()
        assert not grid.cancel(future.number)
        assert not grid.cancel(99)


def test_a_grid_that_is_shut_down_may_close_by_itself(tmp_path: Path) -> None:
    grid = Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite")
    future = grid.submit(time.sleep, 0.2)
    grid.shutdown(wait=False)
    assert future.result(WAIT) is None

    def is_closed() -> bool:
        try:
            grid.status()
        except GridClosedError:
            return True
        return False

    until(is_closed)


def test_leaving_says_what_it_waits_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"classes": ["a", "b"], "rates": [[1, 1], [0, 1]]}
    grid = Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite", **options)
    grid.pause("2")
    future = grid.options(task_class="b").submit(abs, -1)
    leaving = Thread(target=grid.shutdown)
    with caplog.at_level(logging.WARNING):
        leaving.start()
        until(lambda: caplog.records)
    (record,) = caplog.records
    assert record.getMessage() == (
        "the grid waits, jobs left: 1; no machine can run class b now; "
        "is a machine paused or killed?"
    )
    grid.resume("2")
    leaving.join(WAIT)
    assert future.result(0) == 1


SCRIPT = """
import sys, time
from gridwright.grid import Grid

with Grid("fcfs", machines=1, journal=sys.argv[1]) as grid:
    future = grid.submit(time.sleep, 1000)
    while grid.status()["machines"]["1"]["running"] is None:
        time.sleep(0.01)
    print("leaving", flush=True)
"""


def test_an_interrupt_ends_the_waiting(tmp_path: Path) -> None:
    script, path = tmp_path / "script.py", tmp_path / "j.sqlite"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "leaving\n"
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=WAIT)[1]
    (kept,) = journalled(path).values()
    assert kept.job.stage == Stage.sent, "the next grid runs it"


def test_a_grid_has_the_classes_that_were_named(tmp_path: Path) -> None:
    with Grid("pas_dg", machines=1, journal=tmp_path / "j.sqlite") as grid:
        assert grid.status()["classes"] == {}
        grid.options(task_class="small").submit(abs, -1).result(WAIT)
        assert list(grid.status()["classes"]) == ["small"]
        grid.submit(abs, -1).result(WAIT)
        assert list(grid.status()["classes"]) == ["small", "abs"]
    with Grid("mct", machines=1, classes=["a"], journal=tmp_path / "k.sqlite") as grid:
        grid.submit(abs, -1).result(WAIT)
        assert list(grid.status()["classes"]) == ["a"]


def test_what_is_no_function_is_refused_with_advice(tmp_path: Path) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        with pytest.raises(InputError) as error:
            grid.submit("ls -l 'my file'")  # type: ignore[arg-type]
        assert str(error.value) == (
            "submit takes a function and its arguments, not the text \"ls -l 'my file'\"; "
            "for a command: run(\"ls -l 'my file'\")"
        )
        with pytest.raises(InputError, match="its arguments; int cannot be called"):
            grid.submit(5)  # type: ignore[arg-type]


def test_a_grid_is_closed_where_an_event_loop_runs(tmp_path: Path) -> None:
    async def as_in_a_notebook() -> int:
        with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
            return await asyncio.wrap_future(grid.submit(abs, -1))

    assert asyncio.run(as_in_a_notebook()) == 1


def test_the_interpreter_exits_after_the_jobs(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from gridwright.grid import Grid\n"
        f"grid = Grid('fcfs', machines=1, journal={str(tmp_path / 'j.sqlite')!r})\n"
        "future = grid.submit(time.sleep, 0.5)\n"
        "future.add_done_callback(lambda done: print('done', flush=True))\n"
        "grid.shutdown(wait=False)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, "done\n", "")
