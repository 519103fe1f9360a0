"""A run that is paused: in its own time nothing has happened."""

import asyncio
from itertools import count
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from gridwright.grid import Journal, Mapper, statistics
from gridwright.grid.executors import Ended, MachineDown, MachineUp, Started
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.grid.turn import BREATH, Pace
from gridwright.testbed import Experiment
from gridwright.testbed.conduct import Conduct
from gridwright.testbed.pause import PausableExecutor


def conducted(path: Path, pauses: tuple[tuple[float, float], ...], **words: Any) -> Journal:
    """Conduct a run in virtual time, paused at some seconds for some seconds."""
    usual = {"system": "MGST.HiHi:3", "policy": "gcmu", "time_unit": 1, "corrections": False}
    experiment = Experiment(**{**usual, "duration": 30, **words})
    jobs, faults = experiment.job_list(), experiment.faults()
    rates = experiment.system.effective

    def duration(job: int, machine: int, attempt: int) -> float:
        return float(jobs.works[job] / rates[jobs.task_classes[job], machine])

    executor = FakeExecutor(experiment.machine_names(), duration, before=0.01, after=0.01)
    journal = Journal(path)
    known: list[Mapper] = []
    conduct = Conduct(experiment, executor, journal, jobs, faults, watch=known.append)

    async def go() -> None:
        run = asyncio.create_task(conduct.run())
        begun = 0.0
        for start, length in pauses:
            await asyncio.sleep(start - begun)
            assert await conduct.pause(known[0])
            assert not await conduct.pause(known[0])
            await asyncio.sleep(length)
            assert await conduct.resume(known[0])
            assert not await conduct.resume(known[0])
            begun = start
        await run

    run_virtually(go())
    return journal


@pytest.mark.slow
def test_a_pause_changes_nothing(tmp_path: Path) -> None:
    """Long and short pauses, one right after the other, with failures and time-outs."""
    words = {"timeout": 3.0, "detection": "timeout", "seed": 5}
    plain = conducted(tmp_path / "plain.sqlite", (), **words)
    pauses = ((4.0, 10.0), (4.1, 0.05), (12.3, 0.3), (20.0, 100.0))
    paused = conducted(tmp_path / "paused.sqlite", pauses, **words)
    assert statistics(plain, 30).overall.timed_out > 0
    assert sum(entry.kind == "failure" for entry in plain.events()) > 0
    one, other = ([kept.job for kept in each.jobs()] for each in (plain, paused))
    assert len(one) == len(other) > 100
    for mine, theirs in zip(one, other, strict=True):
        assert (mine.stage, mine.machine, mine.attempt) == (
            theirs.stage,
            theirs.machine,
            theirs.attempt,
        )
        for key in ("submitted", "sent", "started", "ended"):
            # a clock that stands still is looked at again after a hundredth of a second
            assert getattr(mine, key) == pytest.approx(getattr(theirs, key), abs=0.02, nan_ok=True)
    kinds = [entry.kind for entry in paused.events("run paused", "run resumed")]
    assert kinds == ["run paused", "run resumed"] * 4
    assert paused.told("paused") == {"paused": False}
    plain.close()
    paused.close()


@pytest.mark.slow
def test_a_slow_computer_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In virtual time it does not matter that a turn takes longer than usual."""
    quick = conducted(tmp_path / "quick.sqlite", ())
    begin, turns = Pace.begin, count(1)

    def begin_slowly(pace: Pace) -> None:
        begin(pace)
        end = thread_time() + (0 if next(turns) % 40 else 5 * BREATH)
        while thread_time() < end:
            pass

    monkeypatch.setattr(Pace, "begin", begin_slowly)
    slow = conducted(tmp_path / "slow.sqlite", ())
    one, other = ([kept.job.ended for kept in each.jobs()] for each in (quick, slow))
    assert len(one) > 100
    assert one == pytest.approx(other, nan_ok=True)
    quick.close()
    slow.close()


def test_work_goes_on_and_is_told_later() -> None:
    """A job of 3 seconds, paused after 1 for 10, and again for 5 while its end waits."""

    async def go() -> list[Any]:
        told: list[Any] = []
        loop = asyncio.get_running_loop()
        executor = PausableExecutor(FakeExecutor(["a", "b"], lambda *_: 3.0))
        await executor.open(lambda event: told.append((loop.time(), event)))
        executor.start(7, 0, 1, b"")
        for wait, length in ((1.0, 10.0), (1.0, 5.0)):
            await asyncio.sleep(wait)
            executor.pause()
            executor.start(8, 1, 1, b"")
            executor.cancel(8, 1, 1)
            await asyncio.sleep(length)
            executor.resume(lambda seconds: None)
        await asyncio.sleep(5)
        executor.start(9, 0, 1, b"")
        await asyncio.sleep(1)
        executor.pause()
        executor.fail(0)
        await asyncio.sleep(5)
        executor.resume(lambda seconds: None)
        await asyncio.sleep(10)
        await executor.close()
        return told

    told = run_virtually(go())[2:]  # after both are up
    assert told[0] == (0.0, Started(0, 7, 1, 0.0))
    assert told[1] == (18.0, Ended(0, 7, 1, 18.0, b"", "")), "3 seconds, and 15 of pauses"
    assert told[2] == (22.0, Started(0, 9, 1, 22.0)), "what begins later is not late"
    assert told[3] == (28.0, MachineDown(0, "it was taken away"))
    assert len(told) == 4


def test_a_machine_that_is_away_is_known_to_be_so() -> None:
    """Taken away twice in one pause, of which it speaks once; and again while words wait."""

    async def go() -> list[Any]:
        told: list[Any] = []
        loop = asyncio.get_running_loop()
        inner = FakeExecutor(["a"], lambda *_: 30.0)
        executor = PausableExecutor(inner)
        await executor.open(lambda event: told.append((loop.time(), event)))
        executor.start(7, 0, 1, b"")
        await asyncio.sleep(1)
        executor.pause()
        executor.fail(0)
        executor.fail(0, silent=True)
        await asyncio.sleep(4)
        executor.resume(lambda seconds: None)
        await asyncio.sleep(5)
        executor.repair(0)
        executor.start(8, 0, 1, b"")
        executor.pause()
        await asyncio.sleep(10)
        executor.resume(lambda seconds: None)
        inner.fail(0)  # by itself, and it comes back: both are told 10 seconds later
        inner.repair(0)
        await asyncio.sleep(5)
        executor.fail(0)
        await asyncio.sleep(20)
        await executor.close()
        return told

    down = MachineDown(0, "it was taken away")
    assert run_virtually(go()) == [
        (0.0, MachineUp(0)),
        (0.0, Started(0, 7, 1, 0.0)),
        (5.0, down),
        (10.0, MachineUp(0)),
        (10.0, Started(0, 8, 1, 10.0)),
        (25.0, down),
        (25.0, MachineUp(0)),
        (25.0, down),
    ]
