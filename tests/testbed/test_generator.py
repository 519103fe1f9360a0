"""Job lists: drawn class by class, written, read, and drawn the same again."""

from pathlib import Path

import numpy as np
import pytest

from gridwright import InputError, System, load
from gridwright.testbed import JobList

SYSTEM = load("MGST.HiHi:1")


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
