"""What a grid is asked for: executors' calls, options, keys, priorities, dependencies, commands."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gridwright import GridClosedError, InputError, JobLostError
from gridwright.grid import Grid, Stage

from .conftest import WAIT, journalled, until, where

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite") as found:
        yield found


@contextmanager
def busy(grid: Grid, gate: Path, count: int) -> Iterator[None]:
    """Keep machines busy until the end of the block."""

    def hold() -> None:
        while not gate.exists():
            time.sleep(0.01)

    blockers = [grid.options(task_class="blocker").submit(hold) for _ in range(count)]
    for each in blockers:
        where(grid, each.number)
    try:
        yield
    finally:
        gate.touch()


def appender(path: Path) -> Callable[[Any], Any]:
    """Return a function that writes down in which order it is called."""

    def append(word: Any) -> Any:
        with path.open("a") as file:
            file.write(f"{word}\n")
        return word

    return append


# an executor


def test_a_grid_is_an_executor(grid: Grid) -> None:
    assert isinstance(grid, Executor)
    assert isinstance(grid.options(priority=1), Executor)
    assert list(grid.map(pow, range(50), [2] * 50)) == [k * k for k in range(50)]
    assert list(grid.map(pow, range(50), [2] * 50, chunksize=8)) == [k * k for k in range(50)]
    done, left = wait([grid.submit(abs, -k) for k in range(5)], timeout=WAIT)
    assert (len(done), len(left)) == (5, 0)
    assert sorted(each.result() for each in done) == list(range(5))


def test_a_chunk_is_one_job_of_the_class_of_its_function(grid: Grid) -> None:
    assert sum(grid.map(abs, range(10), chunksize=4)) == 45
    assert grid.status()["classes"]["abs"]["arrived"] == 3
    with pytest.raises(InputError, match="chunksize is 0; expected a whole number, at least 1"):
        grid.map(abs, [1], chunksize=0)


def test_results_that_nobody_takes_are_cancelled(grid: Grid, tmp_path: Path) -> None:
    with busy(grid, tmp_path / "gate", 2):
        results = grid.map(appender(tmp_path / "order"), range(5), timeout=0.01)
        with pytest.raises(TimeoutError):
            next(results)
    assert grid.submit(abs, -1).result(WAIT) == 1
    assert not (tmp_path / "order").exists()


def test_asyncio_awaits_a_grid(grid: Grid) -> None:
    async def run() -> list[Any]:
        loop = asyncio.get_running_loop()
        first = loop.run_in_executor(grid, pow, 2, 10)
        second = asyncio.wrap_future(grid.options(priority=1).submit(pow, 3, 2))
        return [await first, await second]

    assert asyncio.run(run()) == [1024, 9]


def test_the_exception_of_a_job_is_the_one_that_is_caught(grid: Grid) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(grid.map(divmod, [1, 2], [1, 0]))
    assert "divmod" in str(caught.value.__cause__) or "Traceback" in str(caught.value.__cause__)


def test_a_future_knows_its_machine(grid: Grid, tmp_path: Path) -> None:
    with busy(grid, tmp_path / "gate", 2):
        future = grid.submit(abs, -3)
        assert (future.machine, future.running()) == ("", False)
    assert future.result(WAIT) == 3
    assert future.machine in ("1", "2")


# options


def test_options_do_not_mix_with_arguments(grid: Grid) -> None:
    def show(**given: Any) -> dict[str, Any]:
        return given

    given = {"priority": 3, "timeout": 7, "key": "k", "machine": "m", "retries": 0}
    assert grid.submit(show, **given).result(WAIT) == given
    with pytest.warns(DeprecationWarning, match=r"use grid.options\(task_class=…\)"):
        assert grid.submit(show, task_class="old").result(WAIT) == {}
    assert {"show", "old"} <= set(grid.status()["classes"])


def test_options_add_up(grid: Grid) -> None:
    both = grid.options(task_class="a").options(machine="2")
    future = both.submit(abs, -1)
    assert future.result(WAIT) == 1
    assert future.machine == "2"
    assert grid.status()["classes"]["a"]["arrived"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retries": -1}, "retries is -1; expected a whole number, 0 or more"),
        ({"retries": 1.5}, "retries is 1.5"),
        ({"timeout": 0}, "timeout is 0; expected seconds, more than 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": "1"}, "timeout is '1'"),
        ({"priority": 1.5}, "priority is 1.5; expected a whole number"),
        ({"priority": 10**30}, "priority is 1000"),
        ({"key": 7}, "key is 7; expected a name"),
        ({"task_class": "\udc80"}, "not valid Unicode"),
    ],
)
def test_wrong_options_are_refused(grid: Grid, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        grid.options(**options)


def test_a_machine_that_is_not_there_is_refused(grid: Grid) -> None:
    with pytest.raises(InputError, match="no machine '3'"):
        grid.options(machine="3").submit(abs, 1)


def test_retries_of_one_job(grid: Grid) -> None:
    with pytest.raises(JobLostError, match=r"after 1 attempt: .*status 7"):
        grid.options(retries=0).submit(os._exit, 7).result(WAIT)
    with pytest.raises(JobLostError, match=r"after 2 attempts: .*status 7"):
        grid.options(retries=1).submit(os._exit, 7).result(WAIT)


def test_a_time_limit_in_seconds(tmp_path: Path) -> None:
    limits = {"sleep": 0.2}
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite", timeout=limits) as grid:
        of_class = grid.submit(time.sleep, 1000)
        of_job = grid.options(task_class="free", timeout=0.3).submit(time.sleep, 1000)
        without = grid.options(task_class="free").submit(time.sleep, 0.4)
        with pytest.raises(JobLostError, match=r"it took more than 0.2 s on machine 1"):
            of_class.result(WAIT)
        with pytest.raises(JobLostError, match=r"it took more than 0.3 s on machine 1"):
            of_job.result(WAIT)
        assert without.result(WAIT) is None
        assert grid.status()["timed_out"] == 2
    with pytest.raises(InputError, match="timeout of class a is -1"):
        Grid("fcfs", journal=tmp_path / "k.sqlite", timeout={"a": -1})


@pytest.mark.parametrize("policy", ["fcfs", "pas_dg", "mct"])
def test_a_job_runs_only_on_its_machine(policy: str, tmp_path: Path) -> None:
    with Grid(policy, machines=3, journal=tmp_path / "j.sqlite") as grid:
        futures = grid.options(machine="2").submit_all(abs, range(20))
        other = [grid.submit(abs, k) for k in range(20)]
        assert [each.result(WAIT) for each in (*futures, *other)] == [*range(20), *range(20)]
        assert {each.machine for each in futures} == {"2"}
        grid.pause("2")
        kept = grid.options(machine="2").submit(abs, -1)
        assert grid.submit(abs, -2).result(WAIT) == 2
        assert not kept.done()
        grid.kill("2")
        assert grid.submit(abs, -3).result(WAIT) == 3
        assert not kept.done()
        grid.resume("2")
        assert (kept.result(WAIT), kept.machine) == (1, "2")


def test_a_pinned_job_returns_to_its_machine_after_its_death(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def once() -> str:
        if not mark.exists():
            mark.touch()
            os._exit(1)
        return "done"

    with Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite") as grid:
        future = grid.options(machine="2").submit(once)
        assert (future.result(WAIT), future.machine) == ("done", "2")


def test_a_pinned_job_waits_for_a_machine_that_a_later_grid_has(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    grid = Grid("fcfs", machines=["a", "b"], journal=path)
    grid.pause("b")
    job = grid.options(machine="b").submit(abs, -1)
    grid.close()
    with Grid("fcfs", machines=["a"], journal=path) as grid:
        assert grid.submit(abs, -2).result(WAIT) == 2
        assert grid.status()["held_up"] == "jobs wait for machine b, which the grid does not have"
        assert not grid.unfinished[job.number].done()
        grid.close()
    with Grid("fcfs", machines=["b"], journal=path) as grid:
        grid.resume("b")
        assert grid.unfinished[job.number].result(WAIT) == 1


# priorities


@pytest.mark.parametrize("policy", ["fcfs", "gcmu", "mct"])
def test_priorities_within_and_across_classes(policy: str, tmp_path: Path) -> None:
    order = tmp_path / "order"
    append = appender(order)
    with Grid(policy, machines=1, journal=tmp_path / "j.sqlite") as grid:
        with busy(grid, tmp_path / "gate", 1):
            for priority, task_class in [(0, "a"), (-1, "b"), (2, "b"), (1, "a"), (2, "a")]:
                options = grid.options(priority=priority, task_class=task_class)
                options.submit(append, f"{priority}{task_class}")
        grid.submit(abs, -1).result(WAIT)
        until(lambda: len(order.read_text().split()) == 5)
    found = order.read_text().split()
    assert sorted(found[:2]) == ["2a", "2b"]
    assert found[2:] == ["1a", "0a", "-1b"]


def test_a_policy_sees_only_the_highest_priority_that_waits(tmp_path: Path) -> None:
    file = tmp_path / "longest.py"
    file.write_text(
        "from gridwright import pull\n\n\n"
        "@pull\n"
        "def longest(machine, view):\n"
        '    "Serve the class with most jobs."\n'
        "    best = -1\n"
        "    for i in range(view.classes.size):\n"
        "        waits = view.classes[i].waiting\n"
        "        if waits > 0 and (best < 0 or waits > view.classes[best].waiting):\n"
        "            best = i\n"
        "    return best\n"
    )
    order = tmp_path / "order"
    append = appender(order)
    with Grid(str(file), machines=1, journal=tmp_path / "j.sqlite") as grid:
        with busy(grid, tmp_path / "gate", 1):
            for k in range(5):
                grid.options(task_class="many").submit(append, f"many{k}")
            for k in range(2):
                grid.options(task_class="urgent", priority=1).submit(append, f"urgent{k}")
        until(lambda: order.exists() and len(order.read_text().split()) == 7)
        assert grid.status()["refusals"] == 0
    assert order.read_text().split()[:2] == ["urgent0", "urgent1"]


# dependencies


def test_a_future_as_an_argument_stands_for_its_result(grid: Grid, tmp_path: Path) -> None:
    with busy(grid, tmp_path / "gate", 2):
        first = grid.submit(pow, 2, 3)
        second = grid.submit(pow, 3, 2)
        both = grid.submit(lambda pair, more: sum(pair) + more["x"], [first, second], {"x": first})
        last = grid.submit(abs, both)
        assert grid.status()["classes"]["lambda"]["waiting"] == 0
    assert (both.result(WAIT), last.result(WAIT)) == (25, 25)
    after = grid.submit(abs, first)  # which has ended
    assert after.result(WAIT) == 8


def test_a_job_fails_with_the_one_that_it_needs(grid: Grid, tmp_path: Path) -> None:
    with busy(grid, tmp_path / "gate", 2):
        wrong = grid.submit(divmod, 1, 0)
        second = grid.submit(abs, wrong)
        third = grid.submit(abs, second)
    for each in (wrong, second, third):
        with pytest.raises(ZeroDivisionError):
            each.result(WAIT)
    with pytest.raises(ZeroDivisionError):
        grid.submit(abs, wrong).result(WAIT)
    poison = grid.options(retries=0).submit(os._exit, 3)
    with pytest.raises(JobLostError, match="given up after 1 attempt"):
        grid.submit(abs, poison).result(WAIT)
    with busy(grid, tmp_path / "second gate", 2):
        gone = grid.submit(abs, -1)
        needs = grid.submit(abs, gone)
        assert gone.cancel()
        with pytest.raises(CancelledError):
            needs.result(WAIT)


def test_a_chain_of_a_thousand_jobs_falls_without_a_recursion(grid: Grid, tmp_path: Path) -> None:
    with busy(grid, tmp_path / "gate", 2):
        first = last = grid.submit(abs, "no number")
        for _ in range(1200):
            last = grid.submit(abs, last)
    with pytest.raises(TypeError):
        last.result(WAIT)
    assert isinstance(first.exception(), TypeError)


def test_blocked_jobs_survive_a_restart(tmp_path: Path) -> None:
    path, gate = tmp_path / "j.sqlite", tmp_path / "gate"

    def when_open() -> int:
        while not gate.exists():
            time.sleep(0.01)
        return 7

    grid = Grid("fcfs", machines=1, journal=path)
    first = grid.submit(when_open)
    second = grid.submit(pow, first, 2)
    third = grid.submit(abs, second)
    where(grid, first.number)
    grid.close()
    assert journalled(path)[third.number].job.stage == Stage.blocked
    gate.touch()
    with Grid("fcfs", machines=1, journal=path) as grid:
        assert grid.unfinished[third.number].result(WAIT) == 49
        with pytest.raises(InputError, match="job 0 is of another grid"):
            grid.submit(abs, first)


# keys


def test_a_job_whose_key_has_finished_is_not_run_again(tmp_path: Path) -> None:
    path, order = tmp_path / "j.sqlite", tmp_path / "order"
    append = appender(order)
    with Grid("fcfs", machines=2, journal=path) as grid:
        with busy(grid, tmp_path / "gate", 2):
            first = grid.options(key="one").submit(append, 1)
            assert grid.options(key="one").submit(append, 1) is first
        assert first.result(WAIT) == 1
        again = grid.options(key="one").submit(append, 1)
        assert (again.result(WAIT), again.number, again.key) == (1, first.number, "one")
        wrong = grid.options(key="wrong")
        for _ in range(2):  # what failed is tried again
            with pytest.raises(ZeroDivisionError):
                wrong.submit(divmod, 1, 0).result(WAIT)
    with Grid("fcfs", machines=2, journal=path) as grid:
        assert grid.options(key="one").submit(append, 1).result(WAIT) == 1
        assert (grid.result("one"), grid.result(first.number)) == (1, 1)
        with pytest.raises(ZeroDivisionError):
            grid.result("wrong")
        with pytest.raises(InputError, match="no job with key 'two'"):
            grid.result("two")
        assert grid.options(key="wrong").submit(abs, -5).result(WAIT) == 5
        assert grid.result("wrong") == 5
    assert order.read_text().split() == ["1"]


def test_a_map_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, order = tmp_path / "j.sqlite", tmp_path / "order"
    append = appender(order)
    with Grid("fcfs", machines=2, journal=path) as grid:
        assert list(grid.options(key="night").map(append, [1, 2, 2])) == [1, 2, 2]
    with Grid("fcfs", machines=2, journal=path) as grid:
        assert list(grid.options(key="night").map(append, [3, 2, 1, 2])) == [3, 2, 1, 2]
        assert list(grid.options(key="day").map(append, [1])) == [1]
    assert sorted(order.read_text().split()) == ["1", "1", "2", "2", "3"]


def test_keys_do_not_depend_on_the_process(tmp_path: Path) -> None:
    code = (
        "from gridwright.grid.submitter import _digest\n"
        "print(_digest(({'a', 'b', 'c'}, [1.5, 'x'], {'k': frozenset('xyz')})))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_a_series_of_jobs_with_futures_as_arguments(grid: Grid) -> None:
    firsts = grid.options(key="first").submit_all(abs, [-1, -2])
    assert list(grid.options(key="second").map(abs, firsts)) == [1, 2]
    assert list(grid.options(key="second").map(abs, firsts)) == [1, 2]
    assert grid.status()["classes"]["abs"]["arrived"] == 4
    grid.options(key="first", task_class="phantom").submit_all(abs, [-1, -2])
    assert set(grid.status()["classes"]) == {"abs"}


# commands


def test_commands_are_jobs(grid: Grid, tmp_path: Path) -> None:
    found = grid.run("echo {} && echo wrong >&2", "it's; ls", cwd=tmp_path).result(WAIT)
    assert (found.returncode, found.stdout, found.stderr) == (0, "it's; ls\n", "wrong\n")
    assert grid.run('echo "$WORD in $PWD"', env={"WORD": "set"}, cwd=tmp_path).result(
        WAIT
    ).stdout == (f"set in {tmp_path}\n")
    with pytest.raises(subprocess.CalledProcessError) as error:
        grid.run("echo so far; exit 3").result(WAIT)
    assert (error.value.returncode, error.value.output) == (3, "so far\n")
    long = grid.run("head -c 3000000 /dev/zero | tr '\\0' x").result(WAIT).stdout
    assert long.startswith("… 1,951,424 bytes left out …\n")
    assert len(long) < 1_050_000
    with pytest.raises(subprocess.CalledProcessError) as error:
        grid.run("head -c 1100000 /dev/zero; exit 4").result(WAIT)
    assert error.value.returncode == 4
    with pytest.raises(InputError, match="inside of quotes"):
        grid.run('echo "{}"', "$(id -u)")
    assert {"echo", "head"} <= set(grid.status()["classes"])
    for line, args in (("echo {}", ()), ("echo", ("a",)), ("", ()), (7, ())):
        with pytest.raises(InputError, match="the command"):
            grid.run(line, *args)  # type: ignore[arg-type]


def test_a_cancelled_command_ends_with_its_children(grid: Grid, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    future = grid.run("sleep 1000 & echo $! > {}; wait", note)
    pid = int(until(lambda: note.exists() and note.read_text()))
    assert future.cancel()
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_grid_that_is_shut_down_takes_no_commands(tmp_path: Path) -> None:
    grid = Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite")
    with_options = grid.options(priority=1)
    with_options.shutdown()
    with pytest.raises(GridClosedError):
        with_options.run("true")
