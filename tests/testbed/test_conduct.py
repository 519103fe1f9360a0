"""A run on a computer that is held up past the end of the run, or that is stopped and goes on."""

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gridwright.grid import Journal, interruptions, machine_states
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.testbed import Experiment, Fault
from gridwright.testbed.conduct import Action, Conduct


def test_every_job_is_submitted_though_the_end_comes_before_its_turn(tmp_path: Path) -> None:
    usual = {"system": "MGST.HiHi:3", "policy": "gcmu", "corrections": False}
    experiment = Experiment(**{**usual, "time_unit": 0.01, "duration": 30})
    jobs = experiment.job_list()
    executor = FakeExecutor(experiment.machine_names(), lambda *attempt: 0.001)
    journal = Journal(tmp_path / "1.sqlite")
    busy = Conduct(experiment, executor, journal, jobs, (), watch=lambda mapper: time.sleep(0.5))
    asyncio.run(busy.run())
    assert [kept.job.number for kept in journal.jobs()] == list(range(len(jobs)))
    assert len(jobs) > 100
    journal.close()


def test_a_machine_that_an_operator_paused_stays_paused_when_the_run_goes_on(
    tmp_path: Path,
) -> None:
    experiment = Experiment(system="MGST.HiHi:3", policy="gcmu", time_unit=1, duration=20)
    names = experiment.machine_names()
    journal = Journal(tmp_path / "1.sqlite")
    journal.describe(machines=names)
    pauses = [Action(5.0, "paused", 0)]

    async def part(actions: list[Action], seconds: float) -> None:
        executor = FakeExecutor(names, lambda *attempt: 0.1)
        conduct = Conduct(experiment, executor, journal, experiment.job_list(), (), actions=actions)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await conduct.run()

    run_virtually(part(pauses, 10.0))
    sent = "machine, min(sent), max(sent) FROM job WHERE sent IS NOT NULL GROUP BY 1"
    before = {name: times for name, *times in journal.select(sent)}
    assert before[names[0]][1] <= 5
    run_virtually(part([], 1000.0))
    after = {name: times for name, *times in journal.select(sent)}
    assert after[names[0]] == before[names[0]], "it was given no more jobs"
    assert after[names[1]][1] > 15
    states = {each.name: each.words for each in machine_states(journal)}
    assert states == {name: "paused" if name == names[0] else "up" for name in names}
    journal.close()


def test_a_machine_is_back_when_neither_a_fault_nor_an_operator_keeps_it_away(
    tmp_path: Path,
) -> None:
    experiment = Experiment(system="MGST.HiHi:3", policy="gcmu", time_unit=1, duration=40)
    names, path = experiment.machine_names(), tmp_path / "1.sqlite"
    journal = Journal(path)
    journal.describe(machines=names)
    executor = FakeExecutor(names, lambda *attempt: 0.1)
    faults = (Fault(0, 5.0, 8.0), Fault(1, 2.0, 20.0), Fault(2, 10.0, 15.0), Fault(3, 10.0, 15.0))
    conduct = Conduct(experiment, executor, journal, experiment.job_list(), faults)

    async def operated() -> None:
        begun = asyncio.get_running_loop().time()
        run = asyncio.create_task(conduct.run())
        with closing(Journal(path, new=False)) as other:
            for time, machine, verb, value in (
                (3.0, 0, "fail", "10"),  # until 13: its fault ends before
                (4.0, 1, "fail", "2"),  # until 6: its fault lasts longer
                (11.0, 2, "kill", ""),
                (12.0, 2, "resume", ""),
                (13.0, 3, "start", ""),
            ):
                await asyncio.sleep(begun + time - asyncio.get_running_loop().time())
                other.ask(verb, names[machine], value)
            await run

    run_virtually(operated())
    found = interruptions(journal)
    away = [found.failed.get(name, []) + found.taken.get(name, []) for name in names]
    back = [max((end for _, end in spans), default=0.0) for spans in away]
    assert back == pytest.approx([13, 20, 15, 13, 0, 0], abs=0.5)
    assert [len(found.taken[name]) for name in names[:4]] == [1, 1, 1, 0]
    journal.close()
