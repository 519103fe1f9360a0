"""Prices, efficiencies, and what is planned off the bottleneck."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import System, allocate, load
from gridwright.allocation import (
    Situation,
    grouped,
    make_workspace,
    prices,
    situation,
    steady,
    tolls,
    vertex,
    weights,
)
from gridwright.allocation.bottlenecks import optimum
from gridwright.allocation.planner import permit
from gridwright.catalogue import entries

PUBLISHED = [
    entry.name
    for entry in entries()
    if entry.shape is not None and entry.shape[1] < 100 and not entry.down
    if entry.has_capacity and entry.system.arrivals.ndim == 1
]

ROUNDING = 1e-9
"""Of a capacity, divided by the step below, where a price is 0."""


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Draw systems whose rates are few different numbers, so that ties and zeros are common."""
    classes, machines = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rate = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 7.5])
    rates = np.array(
        draw(
            st.lists(
                st.lists(rate, min_size=machines, max_size=machines),
                min_size=classes,
                max_size=classes,
            )
        )
    )
    for i in range(classes):
        rates[i, i % machines] = max(rates[i, i % machines], 1.0)
    for j in range(machines):
        rates[j % classes, j] = max(rates[j % classes, j], 1.0)
    arrival = st.sampled_from([0.25, 0.5, 1.0, 3.0])
    return System(arrivals=draw(st.lists(arrival, min_size=classes, max_size=classes)), rates=rates)


@settings(max_examples=200, deadline=None)
@given(systems())
def test_prices_are_an_optimal_dual(system: System) -> None:
    found = allocate(system)
    y, z = found.class_prices, found.machine_prices
    assert (y @ system.arrival_rates) == pytest.approx(1)
    assert (z.sum()) == pytest.approx(found.capacity)
    assert (y[:, None] * system.nominal <= z * (1 + 1e-9)).all()


@settings(max_examples=200, deadline=None)
@given(systems())
def test_what_the_allocation_uses_is_efficient_and_nothing_is_more(system: System) -> None:
    found = allocate(system)
    assert (found.efficiencies[found.shares > 0] == 1).all()
    assert (found.efficiencies <= 1).all()
    assert (found.efficiencies[system.nominal == 0] == 0).all()
    assert (found.loads <= found.load * (1 + 1e-9)).all()
    served = (found.shares * system.nominal).sum(axis=1)
    assert (served >= system.arrival_rates / found.loads * (1 - 1e-7)).all()


@settings(max_examples=100, deadline=None)
@given(systems(), st.randoms(use_true_random=False))
def test_prices_do_not_depend_on_the_order_of_anything(system: System, random: object) -> None:
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    rows, columns = (rng.permutation(size) for size in system.shape)
    other = System(arrivals=system.arrival_rates[rows], rates=system.nominal[np.ix_(rows, columns)])
    found, again = allocate(system).efficiencies, allocate(other).efficiencies
    assert again == pytest.approx(found[np.ix_(rows, columns)], abs=1e-9)


def test_pieces_are_priced_midway() -> None:
    # each machine serves its own class only, both equally loaded: any prices between two bounds
    # would do, and midway both temptations are the same
    system = System(arrivals=[4, 9], rates=[[8, 3], [6, 18]])
    e = allocate(system).efficiencies
    assert e[0, 0] == e[1, 1] == 1
    assert e[0, 1] == pytest.approx(e[1, 0]) == pytest.approx(np.sqrt(3 * 6 / (8 * 18)))


def blocks(first: System, second: System) -> System:
    """Put two systems side by side that share nothing."""
    a, b = first.nominal, second.nominal
    rates = np.block([[a, np.zeros((len(a), b.shape[1]))], [np.zeros((len(b), a.shape[1])), b]])
    return System(arrivals=[*first.arrival_rates, *second.arrival_rates], rates=rates)


@pytest.mark.parametrize("planner", [vertex, grouped, prices, weights])
@pytest.mark.parametrize("scale", [0.3, 1.0, 1.7])
def test_unconnected_parts_are_planned_as_each_alone(planner, scale: float) -> None:  # type: ignore[no-untyped-def]
    first = load("2.D")
    second = System(arrivals=scale * np.array([5.0, 8.0]), rates=[[8, 3], [4, 10]])
    both = planner(situation(blocks(first, second)))
    assert both[:4, :7] == pytest.approx(planner(situation(first)), abs=1e-12)
    assert both[4:, 7:] == pytest.approx(planner(situation(second)), abs=1e-12)
    assert not both[:4, 7:].any()
    assert not both[4:, :7].any()


def test_a_class_off_the_bottleneck_keeps_off_its_machines() -> None:
    # class 2 could run anywhere, class 1 only on the first machine, which it nearly fills
    system = System(arrivals=[0.9, 0.5], rates=[[1, 0], [1, 1]])
    found = allocate(system)
    assert found.bottleneck_classes == ("1",)
    assert found.efficiencies.tolist() == [[1, 0], [0, 1]]
    assert found.loads.tolist() == pytest.approx([0.9, 0.5])


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_little_more_of_a_machine_adds_its_price(name: str) -> None:
    system = load(name)
    base = allocate(system)
    step = 1e-6
    for machine in np.unique(system.column, return_index=True)[1][:8]:
        slopes = []
        for sign in (-1, 1):
            less = np.array(system.mean_availability)
            nominal = system.nominal.copy()
            nominal[:, machine] *= 1 + sign * step / less[machine]
            changed = System(
                arrivals=system.arrival_rates, rates=nominal, availability=less.tolist()
            )
            slopes.append(sign * (allocate(changed).capacity - base.capacity) / step)
        # at a kink a machine that fails costs more than one that is added brings
        price = base.machine_prices[machine]
        slack = 1e-4 * price or ROUNDING
        assert slopes[1] - slack <= price <= slopes[0] + slack
        gain = base.gain(int(machine)) * base.capacity
        assert gain <= price * less[machine] * (1 + 1e-6) + ROUNDING
        assert (gain > ROUNDING) == (price > 0)  # others than the limiting machines add nothing


def test_weights_go_from_none_to_all_as_the_load_rises() -> None:
    shape = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    e = allocate(shape).efficiencies
    for load_now in (0.01, 0.5, 0.9, 1 - 1e-9, 1.5):
        now = shape.replace(arrivals=shape.arrival_rates * load_now / allocate(shape).load)
        exponent = -np.log(max(1 - load_now, 1e-9))
        assert weights(situation(now)) == pytest.approx(e**exponent, rel=1e-5)


def test_power_is_where_pairs_are_permitted_from() -> None:
    system = load("2.E")
    e, busy = allocate(system).efficiencies, allocate(system).load
    for power in (0.0, 0.25, 0.5, 1.0):
        permitted = prices(situation(system), power=power) > 0
        assert (permitted == (e >= busy**power - 1e-9)).all()


def test_what_does_not_limit_the_capacity_is_not_wasted() -> None:
    """A solution of the whole may use all the time of the rest, and serve it as badly as the rest.

    The second class limits the capacity to 8; the others can have 150 / 17.
    """
    rates = [[0, 7.5, 1, 0, 2], [0, 0, 1, 1, 0], [1, 2, 7.5, 0, 2]]
    for order in permutations(range(5)):
        system = System(arrivals=[0.25, 0.25, 0.5], rates=np.array(rates)[:, order])
        found = allocate(system)
        served = (found.shares * system.nominal).sum(axis=1) / system.arrival_rates
        assert served == pytest.approx([150 / 17, 8, 150 / 17])


@pytest.mark.parametrize("planner", [weights, steady, tolls])
def test_plans_are_numbers_where_nothing_arrives_of_a_class(planner: Any) -> None:
    """A grid that learns may believe so; a machine may be able to run such classes only."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        classes, machines = rng.integers(1, 5, 2)
        rates = rng.uniform(0.1, 3, (classes, machines)) * (rng.random((classes, machines)) < 0.7)
        arrivals = rng.uniform(0.1, 1, classes) * (rng.random(classes) < 0.7)
        plan = planner(Situation(rates, arrivals, np.ones(machines), np.arange(machines)))
        assert np.isfinite(plan).all()
        assert (plan[rates <= 0] == 0).all()


def test_a_room_is_as_good_as_new() -> None:
    system = load("3.A:alpha1:1")
    now = situation(system)
    room, plan = make_workspace(now), np.empty(now.rates.shape)
    rng = np.random.default_rng(1)
    for _ in range(50):
        there = now._replace(availability=(rng.random(30) < 0.7) * rng.random(30))
        optimum(there, room)
        permit(there, room, plan, 0.5)
        assert (plan == prices(there, power=0.5)).all()
