"""Cells of the testbed: answered from runs that are there, and said to be missing otherwise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright.grid import Journal
from gridwright.grid.job import Job, Stage
from gridwright.reproduction import reproduce, targets, testbed_runs
from gridwright.testbed import Experiment, new_run


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    testbed_runs._known.cache_clear()


def keep_a_run(policy: str, responses: np.ndarray, **parts: object) -> None:
    """Put a run into the journals: its jobs, one every tenth of a time unit, took that long."""
    experiment = Experiment.find("MGST-4", **{"policy": policy, "duration": 100, **parts})
    run = new_run(experiment)
    kinds = run.jobs.task_classes
    run.close()
    journal = Journal(run.path)
    for number, response in enumerate(responses):
        job = Job(number, int(kinds[number]), number / 10, Stage.finished, 0, attempt=1)
        job.sent = job.started = job.submitted
        job.ended = job.heard = job.settled = job.submitted + float(response)
        journal.write([], [(job, run.system.classes[kinds[number]], "1")], [(number, b"")])
    journal.describe(ended=100.0)
    journal.close()


def outcomes(table: str) -> dict[tuple[str, str], tuple[str, str]]:
    (found,) = reproduce(targets()[table].stated)
    return {
        (str(o.cell["policy"]), str(o.cell.get("class", "all"))): (
            str(o.judgement.verdict),
            o.judgement.reason,
        )
        for o in found.outcomes
    }


def test_without_runs_it_is_said_how_to_make_one() -> None:
    verdict, reason = outcomes("K:7.11")["Gcmu", "2"]
    assert verdict == "not run"
    assert "gridwright run MGST-4 --policy gcmu" in reason
    (figure,) = reproduce("K:Figure B.9")
    assert {str(o.judgement.verdict) for o in figure.outcomes} == {"not run"}


def test_a_run_answers_its_cells() -> None:
    rng = np.random.default_rng(1)
    keep_a_run("gcmu", 0.56 + rng.normal(0, 0.2, 600))
    found = outcomes("K:7.11")
    assert found["Gcmu", "all"] == ("agrees", "run 1, 100 time units")
    verdict, reason = found["Gcmu", "1"]
    assert verdict == "differs"
    assert reason.startswith("by -"), "ours is 0.56, printed is 1.30"


def test_a_queue_that_grows_is_unstable() -> None:
    keep_a_run("fcfs", np.linspace(0, 40, 900))
    assert outcomes("K:7.11")["FCFS", "all"][0] == "agrees"


@pytest.mark.parametrize(
    "parts",
    [{"corrections": True}, {"duration": 50}, {"time_unit": 0.1}, {"timeout": 3}, {"job": "spin"}],
)
def test_another_run_is_not_taken_for_the_published_one(parts: dict[str, Any]) -> None:
    keep_a_run("gcmu", np.full(300, 0.56), **parts)
    assert outcomes("K:7.11")["Gcmu", "all"][0] == "not run"


def test_a_run_in_which_no_job_of_a_class_ended_says_so() -> None:
    keep_a_run("gcmu", np.zeros(0))
    verdict, reason = outcomes("K:7.11")["Gcmu", "all"]
    assert verdict == "differs"
    assert "no job of it has ended" in reason
