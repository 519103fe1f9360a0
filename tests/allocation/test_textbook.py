"""The planners that solve the allocation LP as textbooks do."""

from collections.abc import Callable

import numpy as np
import pytest

from gridwright import InputError, allocate, load
from gridwright.allocation import Situation, dantzig, dual, situation, vertex

Planner = Callable[[Situation], np.ndarray]
both = pytest.mark.parametrize("planner", [dantzig, dual])


def permitted(planner: Planner, name: str) -> list[str]:
    """Return the classes that every machine may serve, for example ``"13"``."""
    plan = planner(situation(load(name)))
    return ["".join(str(i + 1) for i in np.flatnonzero(column)) for column in plan.T]


@both
def test_the_vertices_behind_printed_class_means(planner: Planner) -> None:
    """Found by simulating the optimal vertices; no order of filling groups gives all three."""
    names = ("LoHi:6", "HiLo:8", "LoLo:10")
    six, eight, ten = (permitted(planner, f"MGST.{name}") for name in names)
    assert six[6] == "134"
    assert six[7:9] == ["1", "1"]
    assert eight[6] == "23"
    assert eight[7:9] == ["2", "2"]
    assert eight[12] == "14"
    assert eight[13:15] == ["1", "1"]
    assert ten[3:6] == ["3", "23", "2"]
    assert ten[6] == "3"
    assert sorted(ten[7:9]) == ["3", "34"]


@both
@pytest.mark.parametrize("name", ["3.A:alpha1:1", "3.A:alpha2:3", "3.4.4:alpha:1", "MGST.HiHi:2"])
def test_it_is_a_vertex_with_the_largest_capacity(name: str, planner: Planner) -> None:
    system = load(name)
    now, capacity = situation(system), allocate(system).capacity
    plan = planner(now)
    assert plan.sum(axis=0) == pytest.approx(now.availability)
    assert (plan * now.rates).sum(axis=1) == pytest.approx(capacity * now.arrivals)
    assert np.count_nonzero(plan) == sum(plan.shape) - 1


@both
def test_only_what_arrives_and_can_run_is_planned(planner: Planner) -> None:
    now = Situation(
        rates=np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]]),
        arrivals=np.array([1.0, 1.0, 1.0, 0.0]),
        availability=np.array([1.0, 0.5, 0.0]),
        group=np.arange(3),
    )
    plan = planner(now)
    assert plan[2:].sum() == 0
    assert plan[:2].any(axis=1).all()
    assert (plan.sum(axis=0) <= now.availability).all()
    assert planner(now._replace(availability=np.zeros(3))).sum() == 0
    alone = now._replace(availability=np.array([0.0, 0.0, 1.0]))
    assert planner(alone).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


@both
def test_rounding_starves_no_class(planner: Planner) -> None:
    rates = np.random.default_rng(1).uniform(1, 5, (3, 4))
    now = Situation(rates, np.array([1.0, 1e-11, 2.0]), np.ones(4), np.arange(4))
    assert np.array_equal(planner(now), vertex(now))


def test_where_machines_of_a_group_are_equal_the_dual_lp_plans_as_vertex_does() -> None:
    """Up to their order; Dantzig's rule does not."""
    group = situation(load("MGST.LoHi:5")).group.tolist()
    plans = [
        sorted(zip(group, permitted(planner, "MGST.LoHi:5"), strict=True))
        for planner in (vertex, dual, dantzig)
    ]
    assert plans[1] == plans[0] != plans[2]


@both
def test_thousands_of_machines_are_too_many(planner: Planner) -> None:
    with pytest.raises(InputError, match="4 classes on 3000 machines need"):
        planner(situation(load("3.F:alpha:2")))
