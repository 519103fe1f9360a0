"""Failure traces: drawn from the distributions, written, edited, read."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from gridwright import InputError, load
from gridwright.testbed import (
    Fault,
    check_faults,
    draw_faults,
    read_faults,
    rows_of,
    spells,
    write_faults,
)

SYSTEM = load("MGST.HiHi:3")


def test_faults_follow_the_distributions() -> None:
    faults = draw_faults(SYSTEM, 200_000, seed=1)
    lengths = np.array([fault.end - fault.start for fault in faults])
    assert lengths.mean() == pytest.approx(2, rel=0.04)
    assert len(faults) == pytest.approx(6 * 200_000 / 52, rel=0.04)
    for machine in range(6):
        own = [fault for fault in faults if fault.machine == machine]
        assert all(a.end < b.start for a, b in itertools.pairwise(own))
    assert draw_faults(load("MGST.HiHi:1"), 100, seed=1) == ()
    some = SYSTEM.replace(failures={"mean_uptime": [5, *[float("inf")] * 5], "mean_repair": 1})
    assert {fault.machine for fault in draw_faults(some, 100, seed=1)} == {0}


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    faults = draw_faults(SYSTEM, 300, seed=4)
    write_faults(tmp_path / "faults.csv", faults, SYSTEM)
    assert read_faults(tmp_path / "faults.csv", SYSTEM) == faults
    (tmp_path / "mine.csv").write_text("machine,start,end\n2,5,6\n1,1,2.5\n")
    assert read_faults(tmp_path / "mine.csv", SYSTEM) == (Fault(0, 1, 2.5), Fault(1, 5, 6))


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
        read_faults(tmp_path / "faults.csv", SYSTEM)


def test_a_trace_stands_in_the_experiment_itself() -> None:
    faults = draw_faults(SYSTEM, 300, seed=4)
    rows = rows_of(faults, SYSTEM)
    assert check_faults(reversed(rows), SYSTEM) == faults
    with pytest.raises(InputError, match="failures, entry 2: no machine '7'"):
        check_faults([("1", 1, 2), ("7", 1, 2)], SYSTEM)
    with pytest.raises(InputError, match="two faults of machine 1 overlap at 1"):
        check_faults([("1", 1, 2), ("1", 0, 1.5)], SYSTEM)


def test_a_trace_has_the_times_that_it_was_drawn_with() -> None:
    faults = draw_faults(SYSTEM, 100_000, seed=2)
    for machine in range(6):
        found = spells(faults, machine)
        assert found.up == pytest.approx(50, rel=0.1)
        assert found.down == pytest.approx(2, rel=0.1)
    assert spells(faults, 6).faults == 0
