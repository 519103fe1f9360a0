"""A grid of real processes: results come back, and nothing is lost whatever is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from gridwright import GridClosedError, GridTimeoutError, InputError, JobLostError
from gridwright.grid import (
    Corrections,
    Grid,
    JobFailedError,
    Journal,
    Stage,
    machine_states,
    mapper,
    request,
)
from gridwright.grid.beliefs import FEW
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.worker import LARGEST
from gridwright.model import JournalError
from gridwright.policies import PULL, policy_of

from .conftest import WAIT, journalled, until


@pytest.fixture(autouse=True)
def no_process_stays_behind() -> Iterator[None]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    until(
        lambda: (
            not [
                child
                for child in psutil.Process().children(recursive=True)
                if child.pid not in before and child.status() != psutil.STATUS_ZOMBIE
            ]
        )
    )


@pytest.mark.parametrize("policy", ["fcfs", "pas_dg", "mct", "pas"])
def test_results_come_back(policy: str, tmp_path: Path) -> None:
    with Grid(policy, machines=2, journal=tmp_path / "j.sqlite") as grid:
        futures = grid.options(task_class="square").submit_all(pow, range(20), [2] * 20)
        futures += grid.options(task_class="join").submit_all(lambda a, b: a + b, "abc", "xyz")
        assert [each.result(WAIT) for each in futures] == [k * k for k in range(20)] + [
            "ax",
            "by",
            "cz",
        ]
        assert len({grid.submit(os.getpid).result(WAIT) for _ in range(8)}) <= 2
    kept = journalled(tmp_path / "j.sqlite")
    assert {each.job.stage for each in kept.values()} == {Stage.finished}
    assert Counter(each.task_class for each in kept.values()) == {
        "square": 20,
        "join": 3,
        "getpid": 8,
    }
    assert all(each.job.submitted <= each.job.sent <= each.job.started for each in kept.values())
    assert all(each.job.started <= each.job.ended for each in kept.values())


def test_a_job_that_fails_says_how(tmp_path: Path) -> None:
    def divide(a: int) -> float:
        return a / 0

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        with pytest.raises(ZeroDivisionError, match="division by zero") as error:
            grid.submit(divide, 3).result(WAIT)
        assert "return a / 0" in str(error.value.__cause__)
        with pytest.raises(JobFailedError, match="SystemExit"):
            grid.submit(sys.exit, 3).result(WAIT)
        assert grid.submit(abs, -3).result(WAIT) == 3
    assert [k.job.stage for k in journalled(tmp_path / "j.sqlite").values()] == [
        Stage.failed,
        Stage.failed,
        Stage.finished,
    ]


def test_a_machine_that_is_killed_loses_its_job_and_comes_back(tmp_path: Path) -> None:
    mark = tmp_path / "began"

    def first_time_for_ever() -> str:
        if not mark.exists():
            mark.touch()
            time.sleep(1000)
        return "done"

    executor = LocalExecutor(2)
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(first_time_for_ever)
        until(mark.exists)
        where = next(
            j
            for j, name in enumerate(executor.machines)
            if grid.status()["machines"][name]["running"] == future.number
        )
        os.kill(executor.pid(where), signal.SIGKILL)
        assert future.result(WAIT) == "done"
        until(lambda: all(m["up"] for m in grid.status()["machines"].values()))
    (kept,) = journalled(tmp_path / "j.sqlite").values()
    assert (kept.job.attempt, kept.job.lost) == (2, 1)
    journal = Journal(tmp_path / "j.sqlite")
    (down,) = (entry for entry in journal.events() if entry.kind == "down")
    assert down.detail == "its process was killed by SIGKILL (out of memory?)"
    journal.close()


@pytest.mark.slow
def test_a_machine_that_freezes_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def note(seconds: float) -> str:
        time.sleep(seconds)
        with log.open("a") as file:
            file.write("x")
        return "done"

    executor = LocalExecutor(["a", "b"])
    options: dict[str, Any] = {"rates": [[1.0, 1.0]], "timeout": 3, "corrections": False}
    options["on_timeout"] = "resubmit"
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite", **options) as grid:
        grid.pause("b")
        future = grid.submit(note, 0.2)
        until(lambda: grid.status()["machines"]["a"]["running"] == future.number)
        os.kill(executor.pid(0), signal.SIGSTOP)
        assert future.result(WAIT) == "done", "machine a can run jobs again"
        assert grid.status()["machines"]["a"]["up"]
        assert (grid.status()["timed_out"], grid.status()["late_answers"]) == (1, 0)
        assert log.read_text() == "x", "what was frozen was stopped"
    (kept,) = journalled(tmp_path / "j.sqlite").values()
    assert (kept.job.stage, kept.job.attempt, kept.job.timed_out) == (Stage.finished, 2, 1)
    journal = Journal(tmp_path / "j.sqlite")
    kinds = Counter(entry.kind for entry in journal.events())
    assert (kinds["finished"], kinds["timed out"], kinds["down"]) == (1, 1, 0)
    states = {each.name: each.state for each in machine_states(journal)}
    assert states == {"a": "up", "b": "paused"}
    journal.close()


def test_a_time_out_ends_with_its_job(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[0.02]], "timeout": 0.3, "on_timeout": "fail"}
    with Grid(
        "fcfs", machines=1, journal=tmp_path / "j.sqlite", corrections=False, **options
    ) as grid:
        quick = [grid.submit(abs, -k) for k in range(5)]
        assert [each.result(WAIT) for each in quick] == [0, 1, 2, 3, 4]
        assert not grid.mapper.limits._timers
        assert grid.status()["late_answers"] == 0


def confused(machine: int, view: Any) -> int:
    """Fail (nobody)."""
    raise ValueError("what now?")


def test_a_policy_that_fails_stops_the_grid_and_says_so(tmp_path: Path) -> None:
    with Grid(policy_of(confused, PULL), machines=1, journal=tmp_path / "j.sqlite") as grid:
        until(lambda: grid.status()["machines"]["1"]["up"])
        with pytest.raises(InputError, match="stopped: policy confused: ValueError: what now"):
            grid.submit(abs, -1).result(WAIT)


def test_policies_see_the_time_since_the_grid_began(tmp_path: Path) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        grid.submit(abs, -1).result(WAIT)
        assert 0 < grid.mapper.book.view().now < WAIT
    (kept,) = journalled(tmp_path / "j.sqlite").values()
    journal = Journal(tmp_path / "j.sqlite")
    began = journal.about["origin"]
    journal.close()
    assert abs(began + kept.job.submitted - time.time()) < WAIT, "the time of day can be told"


@pytest.mark.slow
def test_a_job_that_takes_too_long_may_fail(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[1.0]], "timeout_factor": 3}
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite", **options) as grid:
        future = grid.submit(time.sleep, 1000)
        with pytest.raises(JobLostError, match="more than 3 times what was expected on machine 1"):
            future.result(WAIT)
        assert grid.submit(abs, -1).result(WAIT) == 1
        assert grid.statistics().overall.timed_out == 1
        assert [each.state for each in machine_states(grid.journal)] == ["up"]


def test_a_job_that_takes_too_long_may_be_waited_for(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[10.0]], "timeout_factor": 2, "on_timeout": "wait"}
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite", **options) as grid:
        grid.submit(time.sleep, 0.5).result(WAIT)
        assert grid.statistics().overall.timed_out == 1
        assert [each.state for each in machine_states(grid.journal)] == ["up"]


def test_what_a_job_says_of_a_file_without_a_proper_name(tmp_path: Path) -> None:
    def no_text() -> None:
        raise FileNotFoundError(os.fsdecode(b"caf\xe9.txt"))

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        with pytest.raises(FileNotFoundError) as error:
            grid.submit(no_text).result(WAIT)
        assert r"caf\udce9.txt" in str(error.value.__cause__)
        assert grid.submit(abs, -1).result(WAIT) == 1


def test_a_machine_that_fails_while_a_job_is_stopped_comes_back(tmp_path: Path) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(time.sleep, 1000)
        until(lambda: grid.status()["machines"]["1"]["running"] == future.number)
        future.cancel()
        grid.kill("1")
        grid.resume("1")
        assert grid.submit(abs, -1).result(WAIT) == 1


SCRIPT = """
import sys, time
from gridwright.grid import Grid

def work(k):
    time.sleep(0.02 if k < 5 else 1000)
    return k

grid = Grid("fcfs", machines=2, journal=sys.argv[1])
futures = grid.options(task_class="late").submit_all(work, range(9))
for future in futures[:5]:
    future.result()
print("half-way", flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
def test_a_grid_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    script, path = tmp_path / "script.py", tmp_path / "j.sqlite"
    script.write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, script, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "half-way\n"
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    process.stdout.close()
    until(lambda: not any(worker.is_running() for worker in workers))
    left = journalled(path)
    stages = Counter(kept.job.stage for kept in left.values())
    assert stages[Stage.finished] == 5
    assert stages[Stage.sent] == 2
    assert stages[Stage.waiting] == 2

    with Grid("fcfs", machines=4, journal=path) as grid:
        assert sorted(grid.unfinished) == [5, 6, 7, 8]
        until(lambda: len([m for m in grid.status()["machines"].values() if m["running"]]) == 4)
        for future in grid.unfinished.values():
            assert future.cancel()
        later = grid.submit(abs, -7)
        assert later.number == 9
        assert later.result(WAIT) == 7
    kept = journalled(path)
    assert [kept[k].job.stage for k in range(5, 9)] == [Stage.cancelled] * 4
    assert kept[5].job.submitted == left[5].job.submitted
    assert sorted(kept[k].job.lost for k in range(5, 9)) == [0, 0, 1, 1]


def test_a_full_disk_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        assert grid.submit(abs, -1).result(WAIT) == 1
        limit = "PRAGMA max_page_count={}"
        grid._in_loop(lambda: grid.journal._database.execute(limit.format(8)))
        with ThreadPoolExecutor(1) as thread:
            sent = thread.submit(grid.submit, len, "x" * 200_000)
            until(lambda: "full; the grid waits and tries again" in caplog.text)
            assert not sent.done(), "it is not acknowledged before it is on disk"
            assert grid.status()["broken"] == ""
            grid._in_loop(lambda: grid.journal._database.execute(limit.format(10_000)))
            assert sent.result(WAIT).result(WAIT) == 200_000
        assert "is written again" in caplog.text
    assert {kept.job.stage for kept in journalled(tmp_path / "j.sqlite").values()} == {
        Stage.finished
    }


def test_a_grid_whose_disk_stays_full_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapper, "LAST_TRY", 0.1)
    grid = Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite")
    assert grid.submit(abs, -1).result(WAIT) == 1
    grid._in_loop(lambda: grid.journal._database.execute("PRAGMA max_page_count=8"))
    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(grid.submit, len, "x" * 200_000)
        until(lambda: grid._in_loop(lambda: grid.mapper._unwritten is not None))
        grid.close()
        with pytest.raises(JournalError, match="closed while the journal could not be written"):
            sent.result(WAIT)
    (kept,) = journalled(tmp_path / "j.sqlite").values()
    assert kept.job.stage == Stage.finished


HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
database.execute("ROLLBACK")
"""


def test_a_journal_that_another_process_has_locked_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, pipe, locked = tmp_path / "j.sqlite", subprocess.PIPE, tmp_path / "locked"

    def wait_for(file: Path) -> None:
        while not file.exists():
            time.sleep(0.01)

    with Grid("fcfs", machines=1, journal=path) as grid, ThreadPoolExecutor(4) as threads:
        before = grid.submit(wait_for, locked)
        until(lambda: grid.status()["machines"]["1"]["running"] == before.number)
        command = [sys.executable, "-c", HOLD, str(path)]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            locked.touch()
            sent = [threads.submit(grid.submit, abs, -k) for k in range(4)]
            until(lambda: "locked; the grid waits" in caplog.text or grid.status()["broken"])
            assert grid.status()["broken"] == ""
            assert not before.done()
            assert not any(each.done() for each in sent)
            other.communicate()
        assert before.result(WAIT) is None
        assert sorted(each.result(WAIT).result(WAIT) for each in sent) == [0, 1, 2, 3]
    assert len(journalled(path)) == 5


def test_it_learns_which_machine_is_fast(tmp_path: Path) -> None:
    pids: dict[int, float] = {}

    def slowly(speeds: dict[int, float], seconds: float) -> int:
        time.sleep(seconds / speeds[os.getpid()])
        return os.getpid()

    executor = LocalExecutor(2)
    only = Corrections(overhead=False)
    with Grid("lpas_dg", on=executor, journal=tmp_path / "j.sqlite", corrections=only) as grid:
        pids |= {executor.pid(0): 1.0, executor.pid(1): 4.0}
        for _ in range(10):
            batch = [grid.submit(slowly, pids, 0.1) for _ in range(2)]
            for each in batch:
                each.result(WAIT)
        ((slow, fast),) = grid.status()["rates"]
    assert slow < fast
    times: dict[str, list[float]] = {"1": [], "2": []}
    for kept in journalled(tmp_path / "j.sqlite").values():
        times[kept.machine].append(kept.job.ended - kept.job.started)
    usual = sum(map(sum, times.values())) / sum(map(len, times.values()))
    expected = [(len(each) + FEW) / (sum(each) + FEW * usual) for each in times.values()]
    assert [slow, fast] == pytest.approx(expected, rel=0.12), "within what counts as a difference"


def test_wrong_use(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with pytest.raises(InputError, match="machines is 0"):
        Grid("fcfs", machines=0, journal=path)
    with pytest.raises(InputError, match="a grid runs push, pull, batch and chain policies"):
        Grid("mct_dec", machines=2, journal=path)
    with pytest.raises(InputError, match="on_timeout is 'pray'"):
        Grid("fcfs", journal=path, on_timeout="pray")
    with pytest.raises(InputError, match=r"rates has shape \(1, 3\)"):
        Grid("fcfs", machines=2, rates=[[1, 2, 3]], journal=path)
    with Grid("fcfs", machines=1, journal=path) as grid:
        with pytest.raises(InputError, match="cannot be pickled"):
            grid.submit(abs, sys.stdout)
        with pytest.raises(InputError, match="no machine 'x'"):
            grid.pause("x")
        unread = grid.submit(eval, "type('Odd', (), {})()")
        assert unread.result(WAIT) is not None
    with pytest.raises(GridClosedError, match="the grid is closed"):
        grid.submit(abs, 1)


def test_a_result_that_is_too_large_fails_its_job(tmp_path: Path) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        with pytest.raises(JobFailedError, match=r"the result has .* bytes; expected at most"):
            grid.submit(bytes, LARGEST).result(WAIT)
        assert grid.submit(abs, -1).result(WAIT) == 1


def test_a_class_that_nobody_can_run_waits_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    options: dict[str, Any] = {"classes": ["a", "b"], "rates": [[1, 1], [0, 1]]}
    with Grid("fcfs", machines=2, journal=path, **options) as grid:
        grid.pause("2")
        future = grid.options(task_class="b").submit(abs, -1)
        until(lambda: grid.status()["classes"]["b"]["waiting"] == 1)
        assert grid.status()["classes"]["b"]["machines"] == 0
        assert grid.options(task_class="a").submit(abs, -2).result(WAIT) == 2
        assert not future.done()
        grid.resume("2")
        assert future.result(WAIT) == 1
        assert grid.status()["classes"]["b"]["machines"] == 1
    journal = Journal(path)
    (said,) = journal.events("nobody")
    journal.close()
    assert said.fields == {"task_class": "b"}


def test_operators_step_in(tmp_path: Path) -> None:
    executor = LocalExecutor(["a", "b"])
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
        assert 0 < grid.ping("a") < WAIT
        running = grid.submit(time.sleep, 0.3)
        until(lambda: any(m["running"] == 0 for m in grid.status()["machines"].values()))
        (busy,) = (n for n, m in grid.status()["machines"].items() if m["running"] == 0)
        other = "b" if busy == "a" else "a"
        grid.drain(busy)
        assert running.done()
        assert grid.status()["machines"][busy]["paused"]
        states = {each.name: each.state for each in machine_states(grid.journal)}
        assert states == {busy: "paused", other: "up"}
        grid.kill(other)
        with pytest.raises(GridTimeoutError, match=f"machine {other} does not answer"):
            grid.ping(other)
        waits = grid.submit(abs, -1)
        until(lambda: grid.status()["classes"]["abs"]["waiting"] == 1)
        grid.resume(other)
        assert waits.result(WAIT) == 1
        grid.impose(other, 0.5, 1000)
        assert grid.mapper.book.machines[executor.machines.index(other)].availability == 0.5
        grid.fail(other, for_=0.05)
        assert grid.submit(abs, -2).result(WAIT) == 2
        for wrong in (0.0, 1.5):
            with pytest.raises(InputError, match="expected more than 0, at most 1"):
                grid.impose(other, wrong, 1)
        with pytest.raises(InputError, match="availability is not predicted"):
            grid.predict(other, "recursive")
        figures = grid.statistics().overall
        assert (figures.finished, figures.unfinished) == (3, 0)


def test_a_failed_machine_that_is_resumed_stays_away_until_it_is_started(tmp_path: Path) -> None:
    executor = LocalExecutor(["a", "b"])
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:

        def first() -> tuple[str, bool]:
            found = machine_states(grid.journal)[0]
            return found.words, grid.status()["machines"]["a"]["up"]

        until(lambda: first() == ("up", True))
        grid.fail("a", for_=1000)
        grid.pause("a")
        until(lambda: first() == ("down, paused", False))
        assert grid.resume("a")
        assert executor._all[0].away, "nobody has repaired it"
        assert first() == ("down", False)
        assert not grid.resume("a"), "it is neither paused nor killed"
        with closing(Journal(tmp_path / "j.sqlite", new=False)) as other:
            assert request(other, "start", "a") == "done"
        until(lambda: first() == ("up", True))
        grid.pause("a")
        grid.kill("a")
        until(lambda: first() == ("killed, paused", False))
        assert grid.resume("a"), "an operator killed it: it is started, too"
        until(lambda: first() == ("up", True))


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    with pytest.raises(InputError, match="a database, but not the journal"):
        Journal(other)
    text = tmp_path / "text"
    text.write_text("hello, this is no database at all" * 10)
    with pytest.raises(InputError, match="cannot be used as a journal"):
        Journal(text)
    journal = Journal(tmp_path / "j.sqlite")
    journal._database.execute("PRAGMA user_version=99")
    journal.close()
    with pytest.raises(InputError, match="journal of version 99"):
        Journal(tmp_path / "j.sqlite")
