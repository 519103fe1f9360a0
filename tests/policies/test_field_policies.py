"""The policies of the field, against exact chains and theory."""

from collections.abc import Callable, Sequence
from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import spsolve

from gridwright import InputError, System, simulate
from gridwright.experiments import Result
from gridwright.policies import find
from gridwright.statistics.estimate import student

Queues = tuple[int, ...]
Split = dict[int, float]


def check(found: Result, exact: float) -> None:
    """A mean lies within 4.5 standard errors of the exact one, and is not vague."""
    mean = found.figure(found.holding)
    error = mean.half_width / student(len(found.replications) - 1)
    assert mean.mean == pytest.approx(exact, abs=4.5 * error)
    assert mean.half_width < 0.05 * exact


def mean_of_chain(
    states: Sequence[Queues],
    moves: Callable[[Queues], list[tuple[Queues, float]]],
    cost: Callable[[Queues], float],
) -> float:
    """Return the long-run mean cost of a Markov chain; moves out of the states are left out."""
    place = {state: k for k, state in enumerate(states)}
    rows, columns, rates = [], [], []
    for state in states:
        for to, rate in moves(state):
            if to in place and rate > 0:
                rows += [place[to], place[state]]
                columns += [place[state]] * 2
                rates += [rate, -rate]
    size = len(states)
    flow = csc_array(coo_array((rates, (rows, columns)), (size, size)))
    weights = np.append(1.0, spsolve(flow[1:, 1:], -flow[1:, [0]].toarray().ravel()))
    mean = sum(p * cost(state) for p, state in zip(weights, states, strict=True)) / weights.sum()
    return float(mean)


def pushed(
    arrivals: float, rates: list[float], most: int, rule: Callable[[Queues], Split]
) -> float:
    """Return the mean number of tasks of one class that a rule sends to machines."""

    def moves(state: Queues) -> list[tuple[Queues, float]]:
        found = [(changed(state, j, 1), arrivals * share) for j, share in rule(state).items()]
        return found + [(changed(state, j, -1), rates[j]) for j in range(len(rates)) if state[j]]

    states = list(product(range(most), repeat=len(rates)))
    return mean_of_chain(states, moves, sum)


def changed(state: Queues, j: int, by: int) -> Queues:
    return (*state[:j], state[j] + by, *state[j + 1 :])


def shortest(queues: Queues, among: tuple[int, ...]) -> Split:
    """Split a task evenly among the shortest queues of some machines."""
    least = min(queues[j] for j in among)
    best = [j for j in among if queues[j] == least]
    return {j: 1 / len(best) for j in best}


def of_two(queues: Queues) -> Split:
    """Split a task by JSQ(2) on three machines."""
    split: Split = {}
    for pair in ((0, 1), (0, 2), (1, 2)):
        for j, share in shortest(queues, pair).items():
            split[j] = split.get(j, 0.0) + share / 3
    return split


def test_jsq_and_jsq_d_on_equal_machines() -> None:
    three = System(arrivals=[1.8], rates=[[1.0] * 3])
    jsq = pushed(1.8, [1.0] * 3, 14, lambda queues: shortest(queues, (0, 1, 2)))
    drawn = pushed(1.8, [1.0] * 3, 14, of_two)
    assert drawn > 1.04 * jsq
    for policy, exact in [("jsq", jsq), ("jsq:tie=lowest", jsq), ("jsq_d", drawn), ("jfsq", jsq)]:
        check(simulate(three, policy, 20_000, 10, warmup=500), exact)
    alone = simulate(three, "jsq_d:d=1", 20_000, 10, warmup=500)
    check(alone, 3 * 0.6 / 0.4)  # each is an M/M/1 queue
    assert simulate(three, "jsq_d", 100, 2).information.mean == 2
    assert simulate(three, "jsq_d:d=5", 100, 2).information.mean == 3


def test_jfsq_and_min_drift_on_unequal_machines() -> None:
    rates = [1.0, 3.0]
    two = System(arrivals=[2.4], rates=[rates])
    jfsq = pushed(2.4, rates, 45, lambda q: {0 if q[0] < q[1] else 1: 1.0})
    drift = pushed(2.4, rates, 45, lambda q: {0 if q[0] * 9 < q[1] else 1: 1.0})
    assert jfsq > 1.05 * drift
    check(simulate(two, "jfsq", 20_000, 10, warmup=500), jfsq)
    check(simulate(two, "min_drift", 20_000, 10, warmup=500), drift)


def test_jfiq_on_unequal_machines() -> None:
    rates = [1.0, 3.0]

    def rule(queues: Queues) -> Split:
        idle = [j for j in (1, 0) if queues[j] == 0]
        return {idle[0]: 1.0} if idle else {0: 0.5, 1: 0.5}

    system = System(arrivals=[1.4], rates=[rates])
    check(simulate(system, "jfiq", 20_000, 10, warmup=500), pushed(1.4, rates, 45, rule))


def test_fpi_improves_the_split() -> None:
    """With one class and an even load on all machines, it is the rule of mct."""
    rates = [1.0, 3.1]
    exact = pushed(2.4, rates, 45, lambda q: {0 if 3.1 * (q[0] + 1) < q[1] + 1 else 1: 1.0})
    system = System(arrivals=[2.4], rates=[rates])
    check(simulate(system, "fpi", 20_000, 10, warmup=500), exact)
    two = System(arrivals=[1.0, 1.2], rates=[[2.0, 1.0], [0.5, 2.0]], costs=[1, 2])
    improved, split = (simulate(two, name, 20_000, 10) for name in ("fpi", "lp_static"))
    assert improved.figure("mean_cost").high < split.figure("mean_cost").low


N_ARRIVALS, N_RATES = (0.9, 0.8), np.array([[1.0, 1.0], [0.0, 1.2]])


def check_on_the_n_model(
    policy: str, costs: tuple[float, float], taken: Callable[[int, list[int]], int]
) -> None:
    """Compare with the exact chain; ``taken`` answers 1 or 2 for a class, 0 for none.

    The state is the numbers waiting and the class on each machine, 0 for none.
    """

    def moves(state: Queues) -> list[tuple[Queues, float]]:
        found = []
        for i in (0, 1):
            waiting, on = list(state[:2]), list(state[2:])
            waiting[i] += 1
            for j in (0, 1):  # of equally fast idle machines the first one asks first
                on[j] = on[j] or taken(j, waiting)
                waiting[on[j] - 1] -= on[j] != state[2 + j]
            found.append(((*waiting, *on), N_ARRIVALS[i]))
        for j in (0, 1):
            if state[2 + j]:
                waiting, on = list(state[:2]), list(state[2:])
                on[j] = taken(j, waiting)
                if on[j]:
                    waiting[on[j] - 1] -= 1
                found.append(((*waiting, *on), float(N_RATES[state[2 + j] - 1, j])))
        return found

    def cost(state: Queues) -> float:
        return sum(costs[i] * (state[i] + state[2:].count(i + 1)) for i in (0, 1))

    states = list(product(range(60), range(60), (0, 1), (0, 1, 2)))
    system = System(arrivals=N_ARRIVALS, rates=N_RATES, costs=costs)
    found = simulate(system, policy, 20_000, 10, warmup=500)
    check(found, mean_of_chain(states, moves, cost))


def test_maxweight_on_the_n_model() -> None:
    costs = (1.0, 3.0)

    def taken(machine: int, waiting: list[int]) -> int:
        weights = [costs[i] * waiting[i] * N_RATES[i, machine] for i in (0, 1)]
        return int(np.argmax(weights)) + 1 if max(weights) > 0 else 0

    check_on_the_n_model("maxweight:idle=every", costs, taken)


def test_thresholds_on_the_n_model() -> None:
    """If class 1 is dear, machine 2 leaves up to 3 of its tasks to machine 1."""

    def taken(machine: int, waiting: list[int]) -> int:
        if machine == 0 or waiting[0] > 3:
            return 1 if waiting[0] else 0
        return 2 if waiting[1] else 0

    check_on_the_n_model("thresholds", (3.0, 1.0), taken)


def test_thresholds_on_the_n_model_if_the_class_of_both_machines_is_the_root() -> None:
    """If class 2, which machine 2 alone can run, is dear, no threshold is needed."""

    def taken(machine: int, waiting: list[int]) -> int:
        if machine == 1 and waiting[1]:
            return 2
        return 1 if waiting[0] else 0

    check_on_the_n_model("thresholds:idle=every", (1.0, 3.0), taken)


def test_shadow_routing_balances_the_load_without_knowing_the_arrivals() -> None:
    """The least load of the busiest machine is 0.75 here; the fastest machines have 0.625, 0.8."""
    system = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]], assumed={"arrivals": [9, 1]})
    found = simulate(system, "shadow", 4_000, 4, warmup=400)
    for each in found.utilisation:
        assert each.mean == pytest.approx(0.75, abs=0.015)
    pools = System(arrivals=[8], rates=[[1, 2]], counts=[4, 3])
    found = simulate(pools, "shadow", 2_000, 4, warmup=400)
    for pool in (found.utilisation[:4], found.utilisation[4:]):
        assert np.mean([each.mean for each in pool]) == pytest.approx(0.8, abs=0.02)
    assert 3 < found.information.mean < 4


def test_the_fluid_policy_keeps_to_the_allocation() -> None:
    """Under too much work every class gets the same share of it done, the largest possible."""
    system = System(arrivals=[10, 16], rates=[[8, 3], [4, 10]])
    found = simulate(system, "fluid", 2_000, 4)
    for each, arrivals in zip(found.classes, (10, 16), strict=True):
        assert each.throughput.mean == pytest.approx(arrivals / 1.5, rel=0.015)


def test_maxweight_and_min_drift_are_stable_where_fcfs_and_jsq_are_not() -> None:
    two = System(arrivals=[0.8, 0.8], rates=[[1.0, 0.1], [0.1, 1.0]])
    for policy in ("maxweight", "min_drift"):
        assert simulate(two, policy, 20_000, 4).stable is True
    for policy in ("fcfs", "jsq", "jsq_d"):
        assert simulate(two, policy, 20_000, 4).stable is False


def test_qir_keeps_the_ratio_of_the_queues() -> None:
    """On one pool, classes that are alike form one M/M/c queue, whatever the ratio."""
    arrivals, machines = [1.8, 1.8], 4
    pool = System(arrivals=arrivals, rates=np.ones((2, 1)), counts=[machines])
    total = sum(arrivals)
    waits = total**machines / factorial(machines) * machines / (machines - total)
    others = sum(total**k / factorial(k) for k in range(machines))
    waiting = waits / (waits + others) * total / (machines - total)
    result = simulate(pool, "qir:ratio=3 1", 30_000, 10, warmup=500)
    check(result, total + waiting)
    first, second = np.mean([run.class_number for run in result.replications], axis=0)
    assert 2.2 < (first - 1.8) / (second - 1.8) < 3.0  # 3, less what rounding to whole tasks takes


def test_qir_keeps_the_ratio_of_the_idle_machines() -> None:
    """A task goes to the pool with more idle machines than its share, fast or not."""
    pools = System(arrivals=[6.0], rates=[[1.0, 2.0]], counts=[9, 3])
    result = simulate(pools, "qir", 5_000, 4, warmup=100)
    busy = np.mean([run.utilisation for run in result.replications], axis=0)
    idle = [9 - busy[:9].sum(), 3 - busy[9:].sum()]
    assert idle[0] / idle[1] == pytest.approx(3.0, rel=0.15)


def test_a_count_is_at_least_one() -> None:
    with pytest.raises(InputError, match="jsq_d: d is 0; expected at least 1"):
        find("jsq_d:d=0")
