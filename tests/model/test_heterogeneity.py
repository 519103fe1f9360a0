import numpy as np
import pytest

from gridwright import load
from gridwright.model import System, heterogeneity


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("3.B:alpha1:1", "HiHi"),
        ("3.C:alpha1:1", "LoHi"),
        ("3.D:alpha1:1", "HiLo"),
        ("3.E:alpha1:1", "LoLo"),
        ("MGST.HiHi:1", "HiHi"),
        ("MGST.LoHi:5", "LoHi"),
        ("MGST.HiLo:7", "HiLo"),
        ("MGST.LoLo:9", "LoLo"),
    ],
)
def test_published_systems_get_their_published_names(system: str, name: str) -> None:
    assert heterogeneity(load(system)).name == name


def test_alike_is_zero() -> None:
    measured = heterogeneity(System(arrivals=[1, 1], rates=[[2, 2], [2, 2]]))
    assert (measured.task, measured.machine, measured.consistent) == (0, 0, True)


def test_machines_of_a_group_count_each() -> None:
    grouped = System(arrivals=[1, 2], rates=[[8, 3], [4, 10]], counts=[3, 1])
    single = System(arrivals=[1, 2], rates=[[8, 8, 8, 3], [4, 4, 4, 10]])
    assert heterogeneity(grouped) == pytest.approx(heterogeneity(single))


def test_pairs_that_cannot_run_do_not_count() -> None:
    measured = heterogeneity(System(arrivals=[1, 1], rates=[[2, 0], [2, 2]]))
    assert (measured.task, measured.machine) == (0, 0)


def test_consistency() -> None:
    assert heterogeneity(System(arrivals=[1, 1], rates=[[3, 2], [9, 4]])).consistent
    assert not heterogeneity(System(arrivals=[1, 1], rates=[[3, 2], [4, 9]])).consistent
    assert np.isclose(heterogeneity(System(arrivals=[1], rates=[[1, 3]])).machine, 0.5)
