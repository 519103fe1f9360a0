"""A run on a computer that is held up past the end of the run, or that is stopped and goes on."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from gridwright.grid import Journal, machine_states
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.testbed import Experiment
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
