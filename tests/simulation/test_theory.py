"""The simulator against theory: known queues, and exact Markov chains solved here.

A simulated mean must lie within 4.5 standard errors of the exact one: with fixed seeds this is
settled once; with any seeds it would fail by chance less than once in a hundred thousand.
"""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import spsolve

from gridwright import System, load, push, simulate
from gridwright.allocation import allocate
from gridwright.experiments import Result
from gridwright.policies import find
from gridwright.statistics import Estimate
from gridwright.statistics.estimate import estimate, student


def check(found: Estimate, exact: float, replications: int) -> None:
    error = found.half_width / student(replications - 1)
    assert found.mean == pytest.approx(exact, abs=4.5 * error + 1e-12)
    assert found.half_width < 0.15 * exact, "too short to tell anything"


def run(system: System, policy: str, horizon: float = 4000, **options: Any) -> Result:
    return simulate(system, policy, horizon, 20, seed=7, warmup=horizon / 10, **options)


def chain_mean(
    rates: Callable[[int, int], list[tuple[int, int, float]]],
    first: int,
    second: int,
    measure: Callable[[int, int], float],
) -> float:
    """Solve a Markov chain on pairs exactly, up to its cut, and return a long-run mean."""
    size = first * second
    generator = lil_matrix((size, size))
    for a in range(first):
        for b in range(second):
            for to_a, to_b, rate in rates(a, b):
                if 0 <= to_a < first and 0 <= to_b < second:
                    generator[a * second + b, to_a * second + to_b] += rate
                    generator[a * second + b, a * second + b] -= rate
    balance = generator.T.tolil()
    balance[0, :] = 1.0
    right = np.zeros(size)
    right[0] = 1.0
    shares = spsolve(balance.tocsc(), right)
    values = [measure(a, b) for a in range(first) for b in range(second)]
    return float(shares @ np.array(values))


@pytest.mark.parametrize("policy", ["mct", "met", "lpas", "fcfs", "gcmu", "lpas_dg"])
def test_one_machine(policy: str) -> None:
    result = run(System(arrivals=[0.7], rates=[[1.0]]), policy)
    check(result.mean_number, 0.7 / 0.3, 20)
    check(result.mean_response, 1 / 0.3, 20)
    check(result.utilisation[0], 0.7, 20)
    check(result.classes[0].throughput, 0.7, 20)


@pytest.mark.parametrize(
    ("execution", "scv"),
    [
        ("deterministic", 0.0),
        ({"kind": "hyperexponential", "scv": 4}, 4.0),
        ({"kind": "erlang", "stages": 3}, 1 / 3),
        ({"kind": "gamma", "shape": 0.5}, 2.0),
        ({"kind": "lognormal", "scv": 1.5}, 1.5),
        ({"kind": "uniform", "low": 0, "high": 2}, 1 / 3),
        ({"kind": "pmf", "values": [1, 3], "probabilities": [0.5, 0.5]}, 0.25),
        ({"kind": "weibull", "shape": 2}, 4 / np.pi - 1),
    ],
)
@pytest.mark.parametrize("policy", ["mct", "fcfs"])
def test_one_machine_with_general_times(execution: Any, scv: float, policy: str) -> None:
    system = System(arrivals=[1.2], rates=[[2.0]], execution=execution)
    load_ = 0.6
    waiting = load_**2 * (1 + scv) / (2 * (1 - load_))
    check(run(system, policy, 6000).mean_number, load_ + waiting, 20)


def test_renewal_arrivals() -> None:
    """D/M/1: the queue seen by an arrival is geometric with the root of σ = exp(−(1 − σ)/ρ)."""
    system = System(arrivals=[0.8], rates=[[1.0]], interarrival="deterministic")
    sigma = 0.5
    for _ in range(200):
        sigma = np.exp(-(1 - sigma) / 0.8)
    check(run(system, "fcfs", 6000).mean_response, 1 / (1 - sigma), 20)


@pytest.mark.parametrize("machines", [2, 5])
def test_many_machines_one_queue(machines: int) -> None:
    offered = 0.8 * machines
    below = sum(offered**k / factorial(k) for k in range(machines))
    top = offered**machines / factorial(machines) / 0.2
    queue = top / (below + top) * 0.8 / 0.2
    system = System(arrivals=[offered], rates=[[1.0]], counts=[machines])
    result = run(system, "fcfs", 3000)
    check(result.mean_number, offered + queue, 20)
    check(result.mean_waiting, queue / offered, 20)


def test_least_completion_on_two_machines_is_its_chain() -> None:
    fast, slow, arrivals = 2.0, 0.8, 2.0

    def rates(a: int, b: int) -> list[tuple[int, int, float]]:
        to_first = (a + 1) / fast <= (b + 1) / slow * (1 + 1e-12)
        arrival = (a + 1, b, arrivals) if to_first else (a, b + 1, arrivals)
        return [arrival, (a - 1, b, fast), (a, b - 1, slow)]

    exact = chain_mean(rates, 120, 60, lambda a, b: a + b)
    check(
        run(System(arrivals=[arrivals], rates=[[fast, slow]]), "mct", 6000).mean_number, exact, 20
    )


@pytest.mark.parametrize("policy", ["fcfs", "mct", "lpas_dg", "lpas"])
def test_one_machine_that_fails_is_its_chain(policy: str) -> None:
    arrivals, service, fails, repairs = 0.5, 1.0, 0.1, 0.4

    def rates(n: int, up: int) -> list[tuple[int, int, float]]:
        if up:
            return [(n + 1, up, arrivals), (n - 1, up, service), (n, 0, fails)]
        return [(n + 1, up, arrivals), (n, 1, repairs)]

    exact = chain_mean(rates, 400, 2, lambda n, up: n)
    system = System(
        arrivals=[arrivals],
        rates=[[service]],
        failures={"mean_uptime": 1 / fails, "mean_repair": 1 / repairs},
    )
    result = run(system, policy, 8000)
    check(result.mean_number, exact, 20)
    assert result.lost.mean > 0


@pytest.mark.parametrize("policy", ["fcfs", "lpas_dg", "lpas_dg:planner=grouped"])
def test_machines_that_fail_are_their_chain(policy: str) -> None:
    arrivals, service, fails, repairs, machines = 1.8, 1.0, 0.1, 0.4, 3

    def rates(n: int, up: int) -> list[tuple[int, int, float]]:
        return [
            (n + 1, up, arrivals),
            (n - 1, up, min(n, up) * service),
            (n, up - 1, up * fails),
            (n, up + 1, (machines - up) * repairs),
        ]

    exact = chain_mean(rates, 300, machines + 1, lambda n, up: n)
    system = System(
        arrivals=[arrivals],
        rates=[[service]],
        counts=[machines],
        failures={"mean_uptime": 1 / fails, "mean_repair": 1 / repairs},
    )
    check(run(system, policy, 6000).mean_number, exact, 20)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_static_routing_is_a_bank_of_single_queues(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.uniform(1, 8, (3, 4))
    system = System(arrivals=rng.uniform(1, 3, 3), rates=rates)
    system = system.replace(arrivals=system.arrivals * 0.7 * allocate(system).capacity)
    flows = allocate(system).routing * system.arrival_rates[:, None]
    exact = 0.0
    for flow, rate in zip(flows.T, rates.T, strict=True):
        used = (flow / rate).sum()
        second = (flow * 2 / rate**2).sum()  # arrival rate × second moment
        exact += used + flow.sum() * second / (2 * (1 - used)) if used > 0 else 0.0
    check(run(system, "lp_static", 5000).mean_number, exact, 20)


def test_the_power_of_two_choices() -> None:
    """Two of many equal machines are asked: the share with k or more tasks is ρ^(2^k − 1)."""
    load_ = 0.9
    exact = 300 * sum(load_ ** (2**k - 1) for k in range(1, 12))
    system = System(arrivals=[300 * load_], rates=[[1.0]], counts=[300])
    found = simulate(system, "lpas_2k", 300, 6, seed=1, warmup=100).mean_number
    assert found.mean == pytest.approx(exact, rel=0.03)


def test_a_saturated_machine_works_at_its_mean_availability() -> None:
    chain = {"states": [1, 0.5, 0.25], "transition": CHAIN, "step": 2}
    system = System(arrivals=[5.0], rates=[[2.0]], availability=[chain])
    result = simulate(system, "fcfs", 5000, 20, seed=3)
    check(result.classes[0].throughput, 2.0 * system.mean_availability[0], 20)
    assert result.utilisation[0].mean > 0.999
    assert not result.stable


CHAIN = [[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]


def test_availability_that_changes_fast_is_its_mean() -> None:
    chain = {"states": [1, 0.5, 0.25], "transition": CHAIN, "step": 0.001}
    system = System(arrivals=[0.6], rates=[[1.0]], availability=[chain])
    used = 0.6 / system.mean_availability[0]
    check(simulate(system, "fcfs", 1500, 20, seed=3, warmup=100).mean_number, used / (1 - used), 20)


def test_delays_are_served_like_work() -> None:
    """M/D/1: no work to speak of, one time unit of sending and hearing."""
    system = System(arrivals=[0.6], rates=[[1e6]], execution="deterministic")
    result = run(system, "fcfs", 6000, delays={"before": 0.7, "after": 0.3})
    check(result.mean_number, 0.6 + 0.36 / (2 * 0.4), 20)


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    system = System(arrivals=[0.5], rates=[[1.0]])
    result = simulate(system, "mct", 1000, 2000, seed=1, warmup=50)
    found = [estimate(five) for five in np.reshape(result.values("mean_number"), (400, 5))]
    covered = sum(each.low <= 1.0 <= each.high for each in found)
    assert 0.92 <= covered / 400 <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("by_pairs", [False, True])
def test_a_guided_policy_keeps_to_its_bound(by_pairs: bool) -> None:
    """The bound that proves it stable, at every arrival (Al-Azzoni 2009, A.8)."""
    system = load("2.Sharifnia")
    routing = allocate(system).routing
    classes, machines = system.shape
    c = np.ones((classes, machines))
    if by_pairs:
        c = 0.2 + np.arange(classes * machines).reshape(classes, machines) % 5 / 2
    policy = find("guided_lpas")(c=c.tolist() if by_pairs else 1)
    events = simulate(system, policy, 400, 1, seed=5, trace=True).replications[0].trace
    events = events[np.argsort(events["time"], kind="stable")]
    checked = 0
    for i in range(classes):
        own = events[(events["task_class"] == i) & (events["kind"] <= 1)]
        sent = own["kind"] == 1
        arrived = np.cumsum(own["kind"] == 0)[sent, None]
        assigned = np.cumsum(own["machine"][sent, None] == np.arange(machines), axis=0)
        slack = c[i] * np.sqrt(own["time"][sent, None])
        upper = routing[i] * arrived + slack + 1
        others = slack.sum(axis=1, keepdims=True) - slack
        lower = routing[i] * arrived - machines + 1 - others
        used = routing[i] > 0
        assert (assigned[:, ~used] == 0).all()
        assert ((lower <= assigned) & (assigned < upper))[:, used].all()
        checked += assigned[:, used].size
    assert checked > 10_000


def test_guided_choices_differ_from_lpas_as_often_as_seen_before() -> None:
    result = simulate("2.Sharifnia", "guided_lpas", 5000, 4)
    assert 100 * result.excluded / result.tasks == pytest.approx(3.3, abs=0.6)
    assert simulate("2.Sharifnia", "guided_lpas:c=100", 5000, 2).excluded == 0


def test_a_policy_that_holds_tasks_back_is_one_queue() -> None:
    """Hold every task until a machine is free: M/M/2 in push form."""

    @push
    def wait_for_a_free_machine(task_class, view):  # type: ignore[no-untyped-def]
        """Send a task to a machine with nothing to do, or keep it."""
        for j in range(len(view.machines)):
            if view.machines[j].backlog == 0:
                return j
        return -1

    offered = 1.6
    top = offered**2 / 2 / 0.2
    exact = offered + top / (1 + offered + top) * 0.8 / 0.2
    system = System(arrivals=[offered], rates=[[1.0, 1.0]])
    check(run(system, wait_for_a_free_machine, 3000).mean_number, exact, 20)
