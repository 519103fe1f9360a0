"""Experiments with batches and chains: their twins, kills, and runs that continue."""

from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gridwright import InputError
from gridwright.policies import find
from gridwright.simulation import replicate
from gridwright.testbed import Experiment, LoopConduct, Run, conduct, report, virtually

BATCH: dict[str, Any] = {
    "name": "batch",
    "arrivals": [2, 1],
    "rates": [[2, 1], [1, 2]],
    "pmf": {"width": 0.1},
    "deadlines": {"factor": 2, "best": 2},
    "batch": {"queue_limit": 3, "tasks": 24},
}
CHAINS: dict[str, Any] = {
    "system": "Wisnesky:2",
    "policy": "chain_mct",
    "time_unit": 0.02,
    "duration": 120,
}


OVERLAP: dict[str, Any] = {
    "name": "overlaps",
    "template": [
        {"name": "a", "rate": 0.1, "times": [[3, 4], [5, 2]], "latency": 40, "overlap": 0.5}
    ],
}


@pytest.mark.slow
def test_a_killed_process_and_a_run_that_was_stopped_lose_no_task(tmp_path: Path) -> None:
    experiment = Experiment(system=BATCH, policy="mm", time_unit=0.1, duration=1000)
    killed: list[psutil.Process] = []

    class StopError(Exception):
        pass

    def kill(conducting: LoopConduct) -> None:
        if not killed and conducting.running and len(conducting.record.jobs) > 4:
            machine = next(iter(conducting.running))
            process = conducting.executor._all[machine].process  # type: ignore[attr-defined]
            killed.append(psutil.Process(process.pid))
            killed[0].kill()
        elif killed and sum(conducting.record.done.values()) > 10:
            raise StopError

    with pytest.raises(StopError):
        conduct(experiment, path=tmp_path / "1.sqlite", watch=kill)
    with Run(tmp_path / "1.sqlite") as run:
        assert run.state == "stopped"
        before = run.journal.count()["finished"]
        assert before > 10
        conduct(run)
        assert run.state == "done"
        kept = [each.job for each in run.journal.jobs()]
        assert [job.number for job in kept] == list(range(24))
        assert {job.stage for job in kept} == {"finished"}
        ends = [each.job for each in run.journal.events("finished")]
        assert len(ends) == len(set(ends)) == 24
        assert "down" in {each.kind for each in run.journal.events("down")}
        assert sum(job.lost for job in kept) >= 1
        found = report(run, expected=False)
        outcome = found.statistics.outcome
        assert outcome["on_time"] + outcome["late"] == 24
        assert found.twin.overall.finished == 24
        assert found.as_json()["outcome"] == outcome


@pytest.mark.slow
@pytest.mark.parametrize("parts", [{}, {"system": OVERLAP}])
def test_chains_run_on_real_machines_with_their_customers(
    tmp_path: Path, parts: dict[str, Any]
) -> None:
    run = conduct(Experiment(**{**CHAINS, **parts}), path=tmp_path / "1.sqlite")
    found = report(run, expected=False)
    assert found.statistics.overall.arrived == found.twin.overall.arrived == len(run.jobs) > 5
    measured, twin = found.statistics.outcome, found.twin.outcome
    assert set(measured) == set(twin) >= {"ok", "late", "in_progress", "failure_share"}
    assert measured["ok"] + measured["late"] == found.statistics.overall.finished
    ends = [each.job for each in run.journal.events("finished")]
    assert len(ends) > len(set(ends))  # a job has several applications
    run.close()


def test_the_twin_is_the_simulation() -> None:
    experiment = Experiment(**{**CHAINS, "system": "Wisnesky:8", "duration": 500, "seed": 4})
    twin = virtually(experiment)
    run = replicate(
        experiment.system, find("chain_mct"), horizon=500, seed=np.random.SeedSequence(4)
    )
    names = ("ok", "late", "in_progress")
    assert {name: run.more[name] for name in names} == {name: twin.outcome[name] for name in names}
    assert twin.overall.arrived == run.tasks
    ended_last = int(run.responded.sum()) - twin.overall.finished  # at the horizon itself
    assert 0 <= ended_last <= 8
    assert twin.overall.finished > 10


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({"timeout": 3}, "timeout is given, but chain_mct is a chain policy"),
        ({"failures": [["1", 2, 3]]}, "failures are a trace"),
        ({"policy": "mm"}, "mm is a batch policy"),
    ],
)
def test_what_does_not_suit_is_refused(parts: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        Experiment(**{**CHAINS, **parts})
