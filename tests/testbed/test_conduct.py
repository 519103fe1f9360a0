"""A run on a computer that is held up past the end of the run."""

import asyncio
import time
from pathlib import Path

from gridwright.grid import Journal
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.testbed import Experiment
from gridwright.testbed.conduct import Conduct


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
