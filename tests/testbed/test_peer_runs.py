"""Experiments without a scheduler on real processes: their twins, and kills of any process."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gridwright import GridError, System
from gridwright.testbed import (
    Experiment,
    Fault,
    JobList,
    PeerConduct,
    Run,
    conduct,
    report,
    virtually,
)

SYSTEM = {
    "name": "two",
    "arrivals": [[3, 2], [1, 2]],
    "rates": [[8, 4], [3, 9]],
    "changes": {"mean_interval": 1, "arrivals": [1, 1.2], "rates": [0.8, 1.2]},
}
USUAL: dict[str, Any] = {"system": SYSTEM, "policy": "mct_dec", "time_unit": 0.3}


class AllDoneError(Exception):
    """Every job has finished."""


def machines_of(conducting: PeerConduct) -> list[psutil.Process]:
    return [psutil.Process(life.popen.pid) for life in conducting.lives if life is not None]


def ends_of(run: Run) -> list[int]:
    return sorted(each.job or 0 for each in run.journal.events("finished"))


@pytest.mark.slow
def test_whoever_is_killed_no_job_is_lost(tmp_path: Path) -> None:
    """A machine, a worker and a guardian are killed."""
    times = np.linspace(0.1, 6.0, 60)
    jobs = JobList(times, np.arange(60) % 2, np.ones(60), np.arange(60) % 3 % 2)
    experiment = Experiment(**USUAL, duration=1000)
    seen: list[psutil.Process] = []

    def kill(conducting: PeerConduct) -> None:
        now = conducting.now()
        if conducting.journal.count().get("finished", 0) == len(jobs):
            raise AllDoneError
        if len(machines_of(conducting)) < 2 or not all(conducting.where.up):
            return
        if now > 1 and not seen:
            seen.append(machines_of(conducting)[0])
            seen[0].kill()
        elif now > 2 and len(seen) == 1:
            machine = machines_of(conducting)[1]
            (guardian,) = machine.children()
            seen.append(guardian.children()[0])
            seen[1].kill()
        elif now > 3 and len(seen) == 2:
            seen.append(machines_of(conducting)[1].children()[0])
            seen[2].kill()

    with pytest.raises(AllDoneError):
        conduct(experiment, path=tmp_path / "1.sqlite", jobs=jobs, watch=kill)
    with Run(tmp_path / "1.sqlite") as run:
        kept = [each.job for each in run.journal.jobs()]
        assert [job.number for job in kept] == list(range(60))
        assert all(job.stage == "finished" for job in kept)
        assert {job.ended >= job.started >= job.submitted for job in kept} == {True}
        assert ends_of(run) == list(range(60))
        assert [each.machine for each in run.journal.events("down")] == ["1"]
        assert len(seen) == 3
    assert not any(each.is_running() and each.status() != "zombie" for each in seen)


@pytest.mark.slow
def test_a_run_is_near_its_twin_and_counts_its_messages(tmp_path: Path) -> None:
    faults = (Fault(1, 2.0, 3.0),)
    run = conduct(Experiment(**USUAL, duration=6), path=tmp_path / "1.sqlite", faults=faults)
    found = report(run, expected=False)
    measured = found.statistics
    assert measured.overall.arrived == len(run.jobs) == found.twin.overall.arrived
    asked = {"question", "answer", "handover", "receipt"}
    assert set(measured.messages) <= asked
    assert measured.messages["question"] > 0 < measured.messages["answer"]
    assert found.as_json()["messages"] == dict(measured.messages)
    kinds = [each.kind for each in run.journal.events("failure", "repair", "down")]
    assert sorted(kinds) == ["down", "failure", "repair"]
    decisions = run.journal.decisions()
    assert len(decisions) >= measured.overall.arrived - measured.overall.unfinished
    assert {row[1] for row in decisions} == {"1", "2"}
    changed = run.journal.events("changed")
    assert [each.fields["value"] for each in changed] == [
        each.value for each in run.experiment.changes()
    ][: len(changed)]
    assert len(changed) > 2
    run.close()


@pytest.mark.slow
def test_the_process_of_the_experiment_is_killed_and_the_run_continues(tmp_path: Path) -> None:
    path, jobs = tmp_path / "1.sqlite", tmp_path / "jobs.csv"
    Experiment(**USUAL, duration=4).job_list().write(jobs, Experiment(**USUAL).system)
    experiment = Experiment(**USUAL, duration=1000, jobs=str(jobs))
    (tmp_path / "mine.toml").write_text(experiment.to_toml())
    program = (
        "import sys; from pathlib import Path; from gridwright.testbed import Experiment, conduct\n"
        "conduct(Experiment.from_file(sys.argv[1]), path=Path(sys.argv[2]))"
    )
    process = subprocess.Popen([sys.executable, "-c", program, tmp_path / "mine.toml", path])
    while not (path.exists() and _finished(path)):
        assert process.poll() is None
        time.sleep(0.05)
    below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert len(below) >= 6
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []

    def until_done(conducting: PeerConduct) -> None:
        if conducting.journal.count().get("finished", 0) == len(conducting.jobs):
            raise AllDoneError

    with pytest.raises(AllDoneError), Run(path) as run:
        conduct(run, watch=until_done)
    with Run(path) as run:
        assert ends_of(run) == list(range(len(run.jobs)))
        assert [each.job.number for each in run.journal.jobs()] == list(range(len(run.jobs)))
        assert len(run.journal.events("begun")) == 2


def _finished(path: Path) -> int:
    try:
        with Run(path) as run:
            return run.journal.count().get("finished", 0)
    except Exception:  # it is being made
        return 0


@pytest.mark.slow
def test_a_policy_that_fails_ends_the_run_with_its_error(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from gridwright import peer\n\n\n"
        "@peer\ndef mine(task_class, home, view):\n"
        '    """Fail (nobody)."""\n    return view.nothing\n'
    )
    experiment = Experiment(**{**USUAL, "policy": str(file)}, duration=5)
    with pytest.raises(GridError, match=r"machine [12]: AttributeError: .*nothing"):
        conduct(experiment, path=tmp_path / "1.sqlite")


def test_in_virtual_time_messages_are_as_published() -> None:
    twin = virtually(Experiment.find("4.A", duration=20, seed=3))
    per_job = (twin.messages["question"] + twin.messages["answer"]) / twin.overall.arrived
    assert per_job == pytest.approx(12 * (1 - 0.652), rel=0.05)
    assert twin.overall.unfinished < 50


def test_a_job_list_has_the_machines_where_jobs_arrive(tmp_path: Path) -> None:
    experiment = Experiment(**USUAL, duration=20)
    jobs, path = experiment.job_list(), tmp_path / "jobs.csv"
    jobs.write(path, experiment.system)
    assert path.read_text("utf-8").startswith("time,class,work,machine\n")
    assert JobList.read(path, experiment.system) == jobs
    assert jobs.homes is not None
    came = np.zeros((2, 2))
    np.add.at(came, (jobs.task_classes, jobs.homes), 1)
    rates = np.array(SYSTEM["arrivals"]) * 1.1 * 20
    assert np.abs(came - rates).max() < 4.5 * np.sqrt(rates.max())


def test_jobs_of_a_system_with_one_scheduler_have_no_home() -> None:
    system = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    assert JobList.drawn(system, 10, seed=1).homes is None
