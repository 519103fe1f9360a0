"""Failure traces and job lists: drawn from the distributions, written, edited, read."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from gridwright import InputError, System, load
from gridwright.testbed import (
    Fault,
    JobList,
    check_faults,
    draw_faults,
    read_faults,
    rows_of,
    spells,
    write_faults,
)

FAILING = load("MGST.HiHi:3")
SYSTEM = load("MGST.HiHi:1")


def test_faults_follow_the_distributions() -> None:
    faults = draw_faults(FAILING, 200_000, seed=1)
    lengths = np.array([fault.end - fault.start for fault in faults])
    assert lengths.mean() == pytest.approx(2, rel=0.04)
    assert len(faults) == pytest.approx(6 * 200_000 / 52, rel=0.04)
    for machine in range(6):
        own = [fault for fault in faults if fault.machine == machine]
        assert all(a.end < b.start for a, b in itertools.pairwise(own))
    assert draw_faults(load("MGST.HiHi:1"), 100, seed=1) == ()
    some = FAILING.replace(failures={"mean_uptime": [5, *[float("inf")] * 5], "mean_repair": 1})
    assert {fault.machine for fault in draw_faults(some, 100, seed=1)} == {0}


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    faults = draw_faults(FAILING, 300, seed=4)
    write_faults(tmp_path / "faults.csv", faults, FAILING)
    assert read_faults(tmp_path / "faults.csv", FAILING) == faults
    (tmp_path / "mine.csv").write_text("machine,start,end\n2,5,6\n1,1,2.5\n")
    assert read_faults(tmp_path / "mine.csv", FAILING) == (Fault(0, 1, 2.5), Fault(1, 5, 6))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("start,end\n", "the first line is 'start,end'; expected machine,start,end"),
        ("machine,start,end\n7,1,2\n", "line 2: no machine '7'"),
        ("machine,start,end\n1,1\n", "line 2: 2 fields"),
        ("machine,start,end\n1,x,2\n", "line 2: expected numbers"),
        ("machine,start,end\n1,3,2\n", "line 2: expected an end after the start"),
        ("machine,start,end\n1,1,3\n1,2,4\n", "two faults of machine 1 overlap at 2"),
    ],
)
def test_a_wrong_trace_is_refused(text: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "faults.csv").write_text(text)
    with pytest.raises(InputError, match=wrong):
        read_faults(tmp_path / "faults.csv", FAILING)


def test_a_trace_stands_in_the_experiment_itself() -> None:
    faults = draw_faults(FAILING, 300, seed=4)
    rows = rows_of(faults, FAILING)
    assert check_faults(reversed(rows), FAILING) == faults
    with pytest.raises(InputError, match="failures, entry 2: no machine '7'"):
        check_faults([("1", 1, 2), ("7", 1, 2)], FAILING)
    with pytest.raises(InputError, match="two faults of machine 1 overlap at 1"):
        check_faults([("1", 1, 2), ("1", 0, 1.5)], FAILING)


def test_a_trace_has_the_times_that_it_was_drawn_with() -> None:
    faults = draw_faults(FAILING, 100_000, seed=2)
    for machine in range(6):
        found = spells(faults, machine)
        assert found.up == pytest.approx(50, rel=0.1)
        assert found.down == pytest.approx(2, rel=0.1)
    assert spells(faults, 6).faults == 0


def test_jobs_arrive_as_the_system_has_it() -> None:
    jobs = JobList.drawn(SYSTEM, 4000, seed=3)
    assert (np.diff(jobs.times) >= 0).all()
    for i, rate in enumerate(SYSTEM.arrival_rates):
        own = jobs.task_classes == i
        assert own.sum() == pytest.approx(4000 * rate, rel=4 / np.sqrt(4000 * rate))
        assert jobs.works[own].mean() == pytest.approx(1, rel=4 / np.sqrt(own.sum()))
        assert jobs.works[own].std() == pytest.approx(1, rel=0.1), "exponential"


def test_other_distributions_and_one_stream_a_class() -> None:
    even = SYSTEM.replace(interarrival="deterministic", execution="deterministic")
    jobs = JobList.drawn(even, 10, seed=1)
    own = jobs.times[jobs.task_classes == 1]
    assert np.diff(own) == pytest.approx(1 / 4.5)
    assert (jobs.works == 1).all()
    fewer = SYSTEM.replace(arrivals=[2.25, 0.1, 7.2, 12.6])
    one, other = JobList.drawn(SYSTEM, 50, seed=1), JobList.drawn(fewer, 50, seed=1)
    assert (one.times[one.task_classes == 3] == other.times[other.task_classes == 3]).all()


def test_the_same_jobs_come_again(tmp_path: Path) -> None:
    jobs = JobList.drawn(SYSTEM, 20, seed=1)
    assert jobs == JobList.drawn(SYSTEM, 20, seed=1)
    assert jobs != JobList.drawn(SYSTEM, 20, seed=2)
    jobs.write(tmp_path / "jobs.csv", SYSTEM)
    assert JobList.read(tmp_path / "jobs.csv", SYSTEM) == jobs, "to the last digit"
    assert JobList.from_json(jobs.as_json()) == jobs


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "the first line is ''; expected time,class,work"),
        ("time,class,work\n", "no job in it"),
        ("time,class,work\n1,9,1\n", "line 2: no class '9'"),
        ("time,class,work\n1,1,1\n2,1\n", "line 3: 2 fields"),
        ("time,class,work\nsoon,1,1\n", "line 2: expected numbers"),
        ("time,class,work\n1,1,-1\n", "line 2: expected a time of at least 0 and work above 0"),
        ("time,class,work\nnan,1,1\n", "line 2: expected a time"),
    ],
)
def test_a_wrong_list_is_refused(text: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(InputError, match=wrong):
        JobList.read(tmp_path / "jobs.csv", SYSTEM)
    with pytest.raises(InputError, match="cannot be read"):
        JobList.read(tmp_path, SYSTEM)
    with pytest.raises(InputError, match="cannot be written"):
        JobList([1.0], [0], [1.0]).write(tmp_path, System(arrivals=[1], rates=[[1]]))
