"""The planner that solves the allocation LP as a textbook does."""

import numpy as np
import pytest

from gridwright import InputError, allocate, load
from gridwright.allocation import Situation, dantzig, situation, vertex


def permitted(name: str) -> list[str]:
    """Return the classes that every machine may serve, for example ``"13"``."""
    plan = dantzig(situation(load(name)))
    return ["".join(str(i + 1) for i in np.flatnonzero(column)) for column in plan.T]


def test_the_vertices_behind_printed_class_means() -> None:
    """Found by simulating the optimal vertices; no order of filling groups gives all three."""
    six, eight, ten = (permitted(f"MGST.{name}") for name in ("LoHi:6", "HiLo:8", "LoLo:10"))
    assert six[6:9] == ["134", "1", "1"]
    assert eight[6:9] == ["23", "2", "2"]
    assert eight[12:15] == ["14", "1", "1"]
    assert ten[3:6] == ["3", "23", "2"]
    assert ten[6] == "3"
    assert sorted(ten[7:9]) == ["3", "34"]


@pytest.mark.parametrize("name", ["3.A:alpha1:1", "3.A:alpha2:3", "3.4.4:alpha:1", "MGST.HiHi:2"])
def test_it_is_a_vertex_with_the_largest_capacity(name: str) -> None:
    system = load(name)
    now, capacity = situation(system), allocate(system).capacity
    plan = dantzig(now)
    assert plan.sum(axis=0) == pytest.approx(now.availability)
    assert (plan * now.rates).sum(axis=1) == pytest.approx(capacity * now.arrivals)
    assert np.count_nonzero(plan) == sum(plan.shape) - 1


def test_only_what_arrives_and_can_run_is_planned() -> None:
    now = Situation(
        rates=np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]]),
        arrivals=np.array([1.0, 1.0, 1.0, 0.0]),
        availability=np.array([1.0, 0.5, 0.0]),
        group=np.arange(3),
    )
    plan = dantzig(now)
    assert plan[2:].sum() == 0
    assert plan[:2].any(axis=1).all()
    assert (plan.sum(axis=0) <= now.availability).all()
    assert dantzig(now._replace(availability=np.zeros(3))).sum() == 0


def test_rounding_starves_no_class() -> None:
    rates = np.random.default_rng(1).uniform(1, 5, (3, 4))
    now = Situation(rates, np.array([1.0, 1e-11, 2.0]), np.ones(4), np.arange(4))
    assert np.array_equal(dantzig(now), vertex(now))


def test_thousands_of_machines_are_too_many() -> None:
    with pytest.raises(InputError, match="4 classes on 3000 machines need"):
        dantzig(situation(load("3.F:alpha:2")))
