"""The static split with the fewest tasks, and the plan that follows from it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import System
from gridwright.allocation import (
    Situation,
    allocate,
    make_workspace,
    situation,
    steady,
    tolls,
    weights,
)
from gridwright.allocation.planner import solve
from gridwright.allocation.split import ALMOST, delayed, marginal, split
from gridwright.experiments import random_systems

TWO = System(arrivals=[5.0, 8.0], rates=[[8.0, 3.0], [4.0, 10.0]])


def flows(now: Situation) -> np.ndarray:
    space = make_workspace(now)
    solve(now, space)
    split(now, space)
    return space.time


@pytest.mark.parametrize("arrivals", [1.0, 3.0, 5.5])
def test_one_class_is_split_by_the_square_root_rule(arrivals: float) -> None:
    rates = np.array([4.0, 2.0])
    found = flows(Situation(rates[None], np.array([arrivals]), np.ones(2), np.arange(2)))[0]
    best = rates - np.sqrt(rates) * (rates.sum() - arrivals) / np.sqrt(rates).sum()
    if best.min() < 0:
        best = np.array([arrivals, 0.0])
    mean = (best / (rates - best)).sum()
    assert found.sum() == pytest.approx(arrivals)
    assert (found / (rates - found)).sum() == pytest.approx(mean, rel=5e-3)


def test_no_flow_costs_more_than_it_would_elsewhere() -> None:
    """Near the capacity, too, where a small part of a flow is more than a machine can take."""
    for system in random_systems(40, 5, machines=(2, 8), loads=(0.5, 0.98)):
        now = situation(system)
        space = make_workspace(now)
        solve(now, space)
        split(now, space)
        for i, flow in enumerate(space.time):
            sums = zip(space.each[i], space.flow, space.busy, space.squares, strict=True)
            costs = np.array([marginal(*each, 0.0) for each in sums])
            assert costs[flow > 0].max() <= costs.min() * (1 + ALMOST) * (1 + 1e-9), system.name
            assert flow.sum() == pytest.approx(system.arrival_rates[i])


@pytest.mark.parametrize("load", [0.2, 0.4, 0.6, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("elsewhere", [1.5, 3.0, 4.5, 10.0, 20.0])
def test_a_queue_gets_as_long_as_is_best(load: float, elsewhere: float) -> None:
    """A machine does a task in 1; any other way a task costs so much. How many should it hold?"""

    def cost(most: int) -> float:
        chance = load ** np.arange(most + 1.0)
        chance /= chance.sum()
        return float(chance @ np.arange(most + 1) + load * chance[-1] * elsewhere)

    best = min(range(1, 60), key=cost)
    toll = load * min(delayed(1 - load, elsewhere), elsewhere - 1)
    assert abs(elsewhere // (1 + toll) - best) <= 1


def test_equal_machines_share_their_group() -> None:
    rates = np.array([[2.0, 2.0, 1.0]])
    three = Situation(rates, np.array([3.0]), np.ones(3), np.array([0, 0, 1]))
    group = np.repeat([0, 0, 1], 2)
    six = Situation(np.repeat(rates, 2, axis=1), np.array([6.0]), np.ones(6), group)
    np.testing.assert_allclose(flows(six), 2 * flows(three), rtol=1e-9)


@pytest.mark.parametrize("planner", [tolls, steady])
def test_more_machine_than_work_and_less(planner: Callable[[Situation], np.ndarray]) -> None:
    for availability in (np.array([1.0, 0.0]), np.zeros(2)):
        now = situation(TWO)._replace(availability=availability)
        plan = planner(now)
        assert np.isfinite(plan).all()
        assert ((plan > 0) == (weights(now) > 0)).all()


def test_steady_weights_are_a_mean_of_two() -> None:
    """By the prices, and by what one more task adds: with three machines this counts a third."""
    system = System(arrivals=[5.0, 8.0], rates=[[8.0, 3.0, 1.0], [4.0, 10.0, 1.0]])
    now = situation(system)
    space = make_workspace(now)
    solve(now, space)
    split(now, space)
    sums = space.flow, space.busy, space.squares
    added = np.array(
        [[marginal(*each, 0.0) for each in zip(row, *sums, strict=True)] for row in space.each]
    )
    second = (added.min(axis=1, keepdims=True) / added) ** -np.log(1 - allocate(system).load)
    np.testing.assert_allclose(steady(now), weights(now) ** (2 / 3) * second ** (1 / 3))


def test_steady_weights_jump_half_as_far_where_prices_jump() -> None:
    """Both machines are about as busy with a class each; which class helps out changes prices."""
    times = np.array([[0.16, 0.08], [0.04, 0.16]])

    def plans(first: float) -> tuple[np.ndarray, np.ndarray]:
        now = Situation(1 / times, np.array([first, 20.0]), np.ones(2), np.arange(2))
        return weights(now), steady(now)

    (before, mild_before), (after, mild_after) = plans(9.99), plans(10.01)
    assert before[0, 0] < 0.1
    assert after[0, 0] == 1
    far = after[0, 0] / before[0, 0]
    assert mild_after[0, 0] / mild_before[0, 0] == pytest.approx(np.sqrt(far), rel=0.1)


def test_a_toll_of_nothing_leaves_the_weights() -> None:
    now = situation(TWO)
    np.testing.assert_array_equal(tolls(now, toll=0.0), weights(now))
    dear, cheap = tolls(now, toll=2.0), tolls(now)
    assert ((dear < cheap) & (cheap < weights(now))).all()


def test_a_task_on_the_only_machine_makes_all_wait_that_come_until_it_is_free() -> None:
    now = Situation(np.array([[4.0]]), np.array([3.0]), np.ones(1), np.zeros(1, np.int64))
    assert tolls(now)[0, 0] == pytest.approx(1 / (1 + 3.0 / (1 - 0.75) / 4.0))


def test_on_many_equal_machines_hardly_anybody_waits_for_one() -> None:
    now = Situation(np.full((1, 50), 4.0), np.array([150.0]), np.ones(50), np.zeros(50, np.int64))
    assert tolls(now)[0] == pytest.approx(1 / (1 + 3.0 / (1 - 0.75) / 4.0 * 0.75**49))


@pytest.mark.parametrize("slower", [8.0, 4.0])
def test_those_that_find_another_machine_free_lose_what_they_take_longer_there_or_wait(
    slower: float,
) -> None:
    """The second class uses the slow machine, which is busy a tenth of the time."""
    rates = np.array([[10.0, slower], [1e-9, slower]])
    now = Situation(rates, np.array([1.0, slower / 10]), np.ones(2), np.arange(2))
    np.testing.assert_allclose(flows(now), [[1.0, 0.0], [0.0, slower / 10]])
    longer, wait = 1 / slower - 0.1, 0.1 * delayed(0.9, 10 / slower / 0.9)
    assert (longer < wait) == (slower == 8.0), "both happen"
    fast = 0.9 * min(longer, wait) + 0.1 * 0.1 / 0.9
    slow = 0.1 / 0.9  # the second class has no other machine
    np.testing.assert_allclose(tolls(now)[0], weights(now)[0] / [1 + fast, 1 + slow])


def test_no_class_pays_less_than_the_mean_over_the_time_of_the_machine() -> None:
    """Long tasks pay what others lose by them; short ones the mean, which is more than that."""
    now = Situation(np.array([[1.0], [10.0]]), np.array([0.3, 1.0]), np.ones(1), np.arange(1))
    wait = np.array([1.0, 0.1]) / (1 - 0.4)
    own = 1.3 * wait
    mean = (0.3 * own[0] + 0.1 * own[1]) / 0.4
    np.testing.assert_allclose(tolls(now)[:, 0], 1 / (1 + np.array([own[0], mean])))


@pytest.mark.parametrize("planner", [tolls, steady, weights])
@given(
    rates=st.lists(st.lists(st.floats(0.5, 10.0), min_size=3, max_size=3), min_size=2, max_size=4),
    shares=st.lists(st.sampled_from([1.0, 0.5, 0.25, 0.125]), min_size=3, max_size=3),
    load=st.floats(0.3, 0.98),
)
def test_machines_with_a_share_of_their_cpu_are_slower_machines(
    planner: Callable[[Situation], np.ndarray],
    rates: list[list[float]],
    shares: list[float],
    load: float,
) -> None:
    """The third group has two machines. Powers of two: no sum is rounded otherwise."""
    group = np.array([0, 1, 2, 2])
    nominal, share = np.array(rates)[:, group], np.array(shares)[group]
    arrivals = np.ones(len(rates))
    slow = System(arrivals=arrivals, rates=nominal * share)
    arrivals *= load * allocate(slow).capacity
    one = planner(Situation(nominal, arrivals, share, group))
    other = planner(Situation(nominal * share, arrivals, np.ones(4), group))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_of_equal_machines_one_with_half_the_cpu_pays_less() -> None:
    """Half the toll if the group is always busy, and all of it if hardly ever."""
    now = Situation(
        np.full((1, 3), 4.0), np.array([6.0]), np.array([1.0, 1.0, 0.5]), np.zeros(3, np.int64)
    )
    toll = 1 / tolls(now)[0] - 1
    assert toll[0] == pytest.approx(toll[1])
    assert toll[2] / toll[0] == pytest.approx(0.5**0.6)
