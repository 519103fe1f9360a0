"""The optimum, against what is known exactly and against simulation."""

from math import factorial
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, allocate, load, optimum, simulate
from gridwright.allocation import prices, situation
from gridwright.experiments import random_systems
from gridwright.experiments.markov_decision import (
    NEVER,
    Chain,
    Preemptive,
    Pull,
    UnsolvedError,
    evaluate,
    solve,
)
from gridwright.experiments.optimum import lower_bound
from gridwright.experiments.variation import varied


def mmc(arrivals: float, machines: int) -> float:
    """Return the mean number in an M/M/c queue with rate 1 a machine."""
    waits = arrivals**machines / factorial(machines) * machines / (machines - arrivals)
    total = sum(arrivals**k / factorial(k) for k in range(machines)) + waits
    return arrivals + waits / total * arrivals / (machines - arrivals)


@pytest.mark.parametrize(("arrivals", "machines"), [(0.5, 1), (0.9, 1), (1.6, 2), (2.4, 3)])
def test_one_class_is_a_known_queue(arrivals: float, machines: int) -> None:
    found = optimum(System(arrivals=[arrivals], rates=[[1.0] * machines]), [], accuracy=1e-8)
    assert found.preemptive is not None
    assert found.pull is not None
    assert found.preemptive.mean_number == pytest.approx(mmc(arrivals, machines), abs=1e-6)
    assert found.pull.mean_number == pytest.approx(mmc(arrivals, machines), abs=1e-6)
    assert found.bound <= found.preemptive.mean_number + found.preemptive.error


def test_one_machine_serves_the_shortest_first() -> None:
    arrivals, rates = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    found = optimum(System(arrivals=arrivals, rates=rates[:, None]), [], accuracy=1e-9)
    assert found.preemptive is not None
    assert found.pull is not None
    load_1, load_2 = arrivals / rates
    residual = (arrivals / rates**2).sum()
    # class 2 first: alone when preemptive, behind the task in service when not
    preemptive = load_2 / (1 - load_2) + arrivals[0] * (
        1 / (1 - load_2) + residual / ((1 - load_2) * (1 - load_1 - load_2))
    )
    waits = residual / (1 - load_2), residual / ((1 - load_2) * (1 - load_1 - load_2))
    kept = arrivals[1] * (waits[0] + 0.5) + arrivals[0] * (waits[1] + 1.0)
    assert found.preemptive.mean_number == pytest.approx(preemptive, abs=1e-6)
    assert found.pull.mean_number == pytest.approx(kept, abs=1e-6)


def small_systems() -> list[System]:
    """Eight systems of two classes and two machines, and two of three and three."""
    rng = np.random.default_rng(4)
    found = []
    for k in range(10):
        size = 2 if k < 8 else 3
        rates = np.exp(rng.normal(0, 0.8, (size, size))).round(3)
        arrivals = rng.dirichlet(np.ones(size)) + 0.1
        system = System(name=f"small {k}", arrivals=arrivals, rates=rates)
        found.append(varied(system, "load", [0.3, 0.5, 0.7, 0.8][k % 4] if k < 8 else 0.3))
    return found


POLICIES = ["pas", "pas_dg", "mct", "gcmu"]


@pytest.mark.slow
@pytest.mark.parametrize("system", small_systems(), ids=lambda system: system.name)
def test_the_table_is_as_good_as_computed_and_nothing_is_better(system: System) -> None:
    horizon = 10_000 / float(system.arrival_rates.sum())
    found = optimum(system, POLICIES, horizon, replications=8, accuracy=1e-3)
    assert found.preemptive is not None
    assert found.pull is not None
    assert found.policy is not None
    assert found.bound <= found.preemptive.mean_number <= found.pull.mean_number + 1e-9
    played = simulate(system, found.policy, horizon, 8, warmup=horizon / 10).mean_number
    wide = 2.5 * played.half_width  # one of ten thousand runs is beyond
    assert abs(played.mean - found.pull.mean_number) < wide + found.pull.error
    for each in found.policies:
        assert each.mean_number.mean + 2 * each.mean_number.half_width > found.pull.mean_number
        assert each.gap == pytest.approx(each.mean_number.mean / found.pull.mean_number - 1)


def test_more_room_raises_the_value() -> None:
    arrivals, rates = np.array([4.0, 6.0]), np.array([[8.0, 3.0], [4.0, 10.0]])
    good = np.ones((2, 2))
    for kind in (Preemptive, Pull):
        models = [kind(arrivals, rates, most, np.ones(2)) for most in (10, 20, 40)]
        values = [solve(model, model.first(good))[0] for model in models]
        assert values[0] < values[1] < values[2]


def test_a_chain_that_never_gets_back_to_the_empty_state_has_no_value() -> None:
    """State 2 has no way out: its equation is no equation, whatever a solver makes of it."""
    chain = Chain(np.array([0, 1, 1, 2]), np.array([1, 0, 2, 2]), np.array([1.0, 2.0, 1.0, 1.0]))
    with pytest.raises(UnsolvedError):
        evaluate(chain, np.arange(3.0), 2, np.zeros((3, 2)))


def test_states_that_the_chain_never_enters_may_have_no_way_out() -> None:
    """From 2 it may get to 3, and from 3 nowhere; 0 and 1 are a queue with room for one task."""
    source, target = np.array([0, 1, 2, 2, 3]), np.array([1, 0, 1, 3, 3])
    chain = Chain(source, target, np.array([1.0, 2.0, 1.0, 1.0, 1.0]))
    mean, value, _ = evaluate(chain, np.arange(4.0), 2, np.zeros((4, 2)))
    assert mean == pytest.approx(1 / 3)
    assert value[:2] == pytest.approx([0, 1 / 3])
    assert (value[2:] == NEVER).all()


def test_slow_machines_leave_a_few_tasks_to_the_fast_ones_at_first() -> None:
    """An optimum of the LP uses all machines for class 1, one of them 150 times as slow."""
    system = next(random_systems(1, 35, classes=(2, 3), machines=(2, 4), loads=(0.3, 0.95)))
    good = prices(situation(system))
    assert (good[0] > 0).all()
    assert np.ptp(np.log(system.rates[0])) > np.log(150)
    model = Pull(system.arrival_rates, np.array(system.effective), 13, system.holding_costs)
    actions = model.first(good)
    first = evaluate(model.chain(actions), model.cost, 2, np.zeros((len(model.cost), 2)))[0]
    assert first < 1.01 * solve(model, actions)[0]


def test_waiting_for_the_fast_machine_can_be_best() -> None:
    # a machine a hundred times slower is never worth using at such a load
    slow = optimum(System(arrivals=[0.3], rates=[[1.0, 0.01]]), [], accuracy=1e-6)
    assert slow.pull is not None
    assert slow.pull.mean_number == pytest.approx(0.3 / 0.7, abs=1e-4)
    assert slow.policy is not None
    table, most = slow.policy.own["table"].array.reshape(-1, 2, 2, 2), slow.policy.own["most"]
    assert table.shape[0] == most + 1
    assert (table[1:8, 1, 0, 1] == -1).all()


@pytest.mark.slow
def test_the_bound_holds_on_random_systems() -> None:
    for system in random_systems(20, seed=5):
        busy = allocate(system).load
        bound = lower_bound(system)
        horizon = 20_000 / float(system.arrival_rates.sum())
        found = simulate(system, "pas", horizon, 4, warmup=horizon / 10).mean_number
        assert bound < found.mean + 3 * found.half_width
        assert bound >= 0.2 * busy


def test_large_systems_have_a_bound_only() -> None:
    found = optimum("2.D", ["pas"], horizon=300, replications=2)
    assert found.preemptive is None
    assert found.pull is None
    assert found.policy is None
    assert found.least == found.bound > 4
    assert found.policies[0].gap > 0


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (System(arrivals=[2.0], rates=[[1.0]]), "no policy can keep up"),
        (load("3.A:alpha1:2"), "machines that fail or change"),
        (
            System(arrivals=[0.5], rates=[[1.0]], execution={"kind": "deterministic"}),
            "execution times that are not exponential",
        ),
    ],
)
def test_what_has_no_optimum_here(system: System, message: str) -> None:
    with pytest.raises(InputError, match=message):
        optimum(system, [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon is 0; expected a number > 0"),
        ({"replications": 0}, "replications is 0; expected at least 1"),
        ({"seed": -1}, "seed is -1"),
        (
            {"policies": ["mct", "moc"]},
            "moc is a batch policy; the optimum is for push and pull policies",
        ),
    ],
)
def test_wrong_arguments_are_refused_before_it_is_computed(
    changes: dict[str, Any], message: str
) -> None:
    begun: list[str] = []
    with pytest.raises(InputError, match=message):
        optimum("2.A", progress=lambda doing, done: begun.append(doing), **changes)
    assert not begun
