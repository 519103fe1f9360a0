"""Tasks on machines whose availability changes are worked out when they begin.

If the availability is reported, changes are events of their own: that is the way to compare with.
"""

from typing import Any

import numpy as np
import pytest

from gridwright import Delays, System
from gridwright.policies import find
from gridwright.simulation import KINDS, driver, replicate

CHAIN = {
    "states": [1, 0.5, 0.1],
    "transition": [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.5, 0.5]],
    "step": 0.3,
}
ONE = System(arrivals=[0.3, 0.2], rates=[[1.5], [0.9]], availability=[CHAIN])
SEED = np.random.SeedSequence(5)


def log_of(run: Any, kind: str) -> Any:
    rows = run.trace[run.trace.kind == KINDS.index(kind)]
    return rows[np.argsort(rows.time, kind="stable")]


@pytest.mark.parametrize("policy", ["fcfs", "gcmu", "jsq"])
@pytest.mark.parametrize("before", [0.0, 0.2])
def test_one_machine_is_as_with_an_event_for_each_change(policy: str, before: float) -> None:
    """It draws the same numbers in the same order both ways."""
    options: dict[str, Any] = {"horizon": 2000.0, "seed": SEED, "trace": True}
    ahead, events = (
        replicate(
            ONE.replace(delays=Delays(before=before, reporting=each)), find(policy), **options
        )
        for each in (0.0, 0.7)
    )
    assert ahead.tasks == events.tasks > 800
    assert ahead.response == pytest.approx(events.response, rel=1e-9)
    assert ahead.mean_number == pytest.approx(events.mean_number, rel=1e-9)
    assert log_of(ahead, "finish").time == pytest.approx(log_of(events, "finish").time, rel=1e-9)
    changes = log_of(ahead, "availability").time
    assert len(changes) > 1000
    assert changes == pytest.approx(log_of(events, "availability").time[: len(changes)], rel=1e-9)
    assert changes.max() <= 2000.0
    assert changes.max() > log_of(ahead, "start").time.max() - 20.0


def test_a_full_page_of_the_log_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"horizon": 300.0, "seed": SEED, "trace": True}
    slow = ONE.replace(availability=[{**CHAIN, "step": 0.01}])  # hundreds of changes in a task
    whole = replicate(slow, find("fcfs"), **options)
    monkeypatch.setattr(driver, "PAGE", 1)
    pages = replicate(slow, find("fcfs"), **options)
    untraced = replicate(slow, find("fcfs"), horizon=300.0, seed=SEED)
    assert np.array_equal(whole.trace, pages.trace)
    assert whole.mean_number == pages.mean_number == untraced.mean_number


def test_a_failure_that_sends_many_tasks_anew_fits_into_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures = {"mean_uptime": [5, float("inf")], "mean_repair": 1, "uptime": "deterministic"}
    system = System(arrivals=[40], rates=[[10, 10]], failures=failures)
    monkeypatch.setattr(driver, "PAGE", 1)
    found = replicate(system, find("mct"), horizon=7.0, seed=SEED, trace=True, interpreted=True)
    at_once = log_of(found, "assignment").time == log_of(found, "failure").time[0]
    assert at_once.sum() > 40
    assert len(log_of(found, "arrival")) == found.tasks


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        ("gcmu", Delays()),
        ("fcfs", Delays(before=0.1, after=0.1, detection=0.5)),
        ("fcfs", Delays(before=0.1, timeout=3.0)),
        ("jsq", Delays(before=0.1, detection=0.5)),
    ],
)
def test_machines_that_fail_are_as_with_an_event_for_each_change(
    policy: str, delays: Delays
) -> None:
    """These policies do not look at the availability, so reports of it change nothing else."""
    system = System(
        arrivals=[0.9, 0.5],
        rates=[[1.5, 0.6], [0.9, 1.2]],
        counts=[2, 1],
        availability=[CHAIN, CHAIN],
        failures={"mean_uptime": 6.0, "mean_repair": 1.0},
    )
    ahead, events = (
        replicate(system.replace(delays=each), find(policy), horizon=1000.0, seed=SEED, trace=True)
        for each in (delays, delays.model_copy(update={"reporting": 0.7}))
    )
    assert ahead.lost == events.lost > 50
    assert ahead.mean_number == pytest.approx(events.mean_number, rel=1e-9)
    assert ahead.response == pytest.approx(events.response, rel=1e-9)
    for kind in ("start", "finish", "failure"):
        one, other = log_of(ahead, kind), log_of(events, kind)
        assert one.time == pytest.approx(other.time, rel=1e-9)
        assert np.array_equal(one.machine, other.machine)


def test_all_policies_meet_the_same_changes() -> None:
    system = ONE.replace(rates=[[1.5, 0.6], [0.9, 1.2]], availability=[CHAIN, CHAIN])
    options: dict[str, Any] = {"horizon": 500.0, "seed": SEED, "trace": True}
    logs = [
        log_of(replicate(system, find(policy), **options), "availability")
        for policy in ("fcfs", "mct", "lpas_dg", "cmu:preempt=true")
    ]
    for machine in (0, 1):
        changes = [log.time[log.machine == machine] for log in logs]
        fewest = min(map(len, changes))
        assert fewest > 200
        for other in changes[1:]:  # the last of a machine that is idle at the end are not logged
            assert other[:fewest] == pytest.approx(changes[0][:fewest], rel=1e-12)
