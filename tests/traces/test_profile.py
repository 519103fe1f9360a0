"""The mean day of a trace as a profile of arrivals."""

import numpy as np
import pytest

import gridwright as gw
from gridwright.testbed import JobList
from gridwright.traces import JobTrace, characterise

HOUR = 3600.0


def trace_of(system: gw.System, seconds: float) -> JobTrace:
    jobs = JobList.drawn(system, seconds, seed=4)
    columns = {"submit": jobs.times, "run_time": jobs.works * 100, "user": jobs.task_classes}
    return JobTrace({name: column.tolist() for name, column in columns.items()})


@pytest.mark.slow
def test_a_profile_is_found_again() -> None:
    factors = np.array([[0.5] * 12 + [1.5] * 12, [2.0] * 6 + [2 / 3] * 18])
    day = {"durations": [HOUR] * 24, "factors": factors.tolist()}
    system = gw.System(arrivals=[0.05, 0.05], rates=[[1.0], [1.0]], profile=day)
    trace = trace_of(system, 20.25 * 24 * HOUR)
    found = characterise(trace, "user", machines="20x1", profile=True).system
    assert found.profile is not None
    order = [int(name.split()[-1]) for name in found.classes]  # the largest class is first
    # the number of jobs in an hour of twenty days is Poisson with a mean of 1800 to 7200
    assert np.abs(found.profile.factors - factors[order]).max() < 4.5 * 1.5 / 1800**0.5
    assert found.profile.means(2) == pytest.approx([1.0, 1.0], abs=1e-6)
    assert found.arrival_rates == pytest.approx([0.05, 0.05], rel=0.02)
    for each in found.per_class(found.interarrival):  # as drawn: the profile explains the rest
        assert abs(each.variance / each.mean**2 - 1) < 0.05
    plain = characterise(trace, "user", machines="20x1").system
    assert plain.profile is None


def test_less_than_a_day_is_refused() -> None:
    trace = JobTrace({"submit": [0, 60, 7200], "run_time": [9, 5, 7]})
    with pytest.raises(gw.InputError, match="expected at least 24 for a profile"):
        characterise(trace, machines="2x1", profile=True)
