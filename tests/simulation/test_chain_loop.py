"""The loop against schedules by hand, a tick-by-tick reference, and theory."""

from math import ceil, exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import System, chain, simulate
from gridwright.policies import CHAIN, Policy, find, policies
from gridwright.simulation import KINDS, Replication, replicate
from gridwright.simulation.chain import Chains
from gridwright.simulation.chain_loop import enqueue, pop, release, take
from gridwright.simulation.driver import Conditions, grow

ALWAYS = 100.0
"""A rate at which a job arrives in every tick."""
POLICIES = [p.name for p in policies().values() if p.kind is CHAIN] + ["chain_rr:by=application"]
TWO: list[dict[str, Any]] = [
    {"name": "a", "rate": 0.09, "times": [[3, 5], [6, 2], [4, 4]], "latency": 30},
    {"name": "b", "rate": 0.06, "times": [[2, 9]], "latency": 8},
]


def run(system: System, policy: str | Policy, horizon: float, **options: Any) -> Replication:
    seed = np.random.SeedSequence(options.pop("seed", 1))
    return replicate(system, find(policy), horizon=horizon, seed=seed, **options)


def events(found: Replication, kind: str) -> list[tuple[float, int, int]]:
    """List the events of a kind: when, which job, which machine."""
    log = found.trace[found.trace.kind == KINDS.index(kind)]
    return [(float(e.time), int(e.task), int(e.machine)) for e in log]


def test_a_schedule_by_hand_on_one_node() -> None:
    """A job a tick, two ticks each: job n runs from 2n to 2n + 2."""
    template = {"name": "a", "rate": ALWAYS, "times": [[2]], "latency": 4, "customer": "c"}
    system = System(templates=[template], customers=[{"name": "c", "max_failures": 2, "window": 2}])
    found = run(system, "chain_fcfs", 10, trace=True)
    assert [t for t, _, _ in events(found, "arrival")] == list(range(10))
    assert events(found, "start") == [(2 * n, n, 0) for n in range(5)]
    assert events(found, "finish") == [(2 * n + 2, n, 0) for n in range(5)]
    more = found.more
    assert (more["ok"], more["late"], more["in_progress"]) == (3, 2, 5)
    assert more["performance"] == 0.6
    # jobs 3 and 4 were late, job 5 is at tick 10; their windows hold 0, 1, 2, 0, 0 of them
    assert more["customer_failures"].tolist() == [3]
    assert more["least_margin"].tolist() == [0]
    assert more["mean_margin"].tolist() == [pytest.approx(7 / 5)]
    assert more["adequate"].tolist() == [0]
    assert more["failure_share"] == 0.3
    assert found.mean_number == pytest.approx(sum(min(2 * n + 2, 10) - n for n in range(10)) / 10)
    assert found.utilisation.tolist() == [1]


def test_a_schedule_by_hand_on_two_nodes() -> None:
    """Three jobs of two applications: where they go, and in which order they are served."""
    template = {"name": "a", "rate": ALWAYS, "times": [[1, 4], [4, 1]], "latency": 9}
    system = System(templates=[template])
    starts = {
        # each application where it is fastest; what waits at node 2 waits by age
        "chain_mct": [(0, 0, 0), (1, 1, 0), (1, 0, 1), (2, 2, 0), (2, 1, 1)],
        # a job stays on its node: 0 and 2 on the first, 1 on the second
        "chain_rr": [(0, 0, 0), (1, 0, 0), (1, 1, 1), (5, 1, 1), (5, 2, 0)],
        # one queue: job 0's second application comes before job 1, which arrives later
        "chain_fcfs": [(0, 0, 0), (1, 0, 0), (1, 1, 1), (5, 2, 0), (5, 3, 1)],
    }
    for policy, expected in starts.items():
        found = run(system, policy, 6, trace=True)
        assert sorted(events(found, "start"))[: len(expected)] == sorted(expected), policy


def reference(arrivals: list[tuple[int, int]], policy: str, ticks: int) -> dict[int, int]:
    """Go through the ticks one by one, as the rules are stated; return when jobs finish."""
    nodes = 2
    queues: list[list[int]] = [[] for _ in range(nodes)]
    central: list[int] = []
    stage = [0] * len(arrivals)
    running = [-1] * nodes
    left = [0.0] * nodes
    finished, turn = {}, 0
    home: dict[int, int] = {}

    def times(job: int) -> Any:
        return TWO[arrivals[job][1]]["times"][stage[job]]

    def ready(job: int) -> None:
        nonlocal turn
        if policy == "chain_fcfs":
            central.append(job)
        elif policy == "chain_mct":
            queues[int(np.argmin(times(job)))].append(job)
        else:
            if job not in home or "application" in policy:
                home[job], turn = turn, (turn + 1) % nodes
            queues[home[job]].append(job)

    for tick in range(ticks):
        for job, (at, _) in enumerate(arrivals):
            if at == tick:
                ready(job)
        for node in range(nodes):
            waiting = central if policy == "chain_fcfs" else queues[node]
            if running[node] < 0 and waiting:
                job = waiting[0] if policy == "chain_fcfs" else min(waiting)
                waiting.remove(job)
                running[node], left[node] = job, times(job)[node]
        done = []
        for node in range(nodes):
            if running[node] >= 0:
                left[node] -= 1
                if left[node] <= 0:
                    done.append(node)
        for node in done:
            job, running[node] = running[node], -1
            stage[job] += 1
            if stage[job] < len(TWO[arrivals[job][1]]["times"]):
                ready(job)
            else:
                finished[job] = tick + 1
    return finished


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("one_at_a_time", [True, False])
def test_the_same_as_tick_by_tick(policy: str, one_at_a_time: bool) -> None:
    system = System(templates=TWO, one_at_a_time=one_at_a_time)
    found = run(system, policy, 2000, trace=True)
    log = found.trace[found.trace.kind == 0]
    arrivals = [(int(e.time), int(e.task_class)) for e in log]
    assert 200 < len(arrivals) < 400
    expected = reference(arrivals, policy, 2000)
    last = {job: t for t, job, _ in events(found, "finish")}
    assert {job: last[job] for job in expected} == expected
    latency = {j: expected[j] - arrivals[j][0] for j in expected}
    ok = sum(latency[j] <= TWO[arrivals[j][1]]["latency"] for j in expected)
    assert (found.more["ok"], found.more["late"]) == (ok, len(expected) - ok)
    assert found.more["in_progress"] == len(arrivals) - len(expected)
    # Little's law on sojourns cut at the horizon
    area = sum(expected.get(job, 2000) - at for job, (at, _) in enumerate(arrivals))
    assert found.mean_number == pytest.approx(area / 2000)


@pytest.mark.parametrize("policy", POLICIES)
def test_interpreted_is_bit_identical(policy: str) -> None:
    system = System(
        templates=TWO,
        perturbation={"reading": "mixture", "variation": 0.3, "arrivals": 0.2},
        failures={"mean_uptime": 60, "mean_repair": 9, "repair": "deterministic"},
    )
    one, other = (run(system, policy, 600, trace=True, interpreted=i) for i in (False, True))
    assert one.trace.tobytes() == other.trace.tobytes()
    assert one.more["ok"] == other.more["ok"]
    assert one.mean_number == other.mean_number
    assert one.lost == other.lost > 0


@pytest.mark.parametrize("time", [2, 3.4, 5])
def test_one_node_is_a_discrete_time_queue(time: float) -> None:
    """Geo/D/1: the mean wait is p s (s − 1) / 2 (1 − p s), with s the time in whole ticks."""
    rate, ticks = 0.15, ceil(time)
    system = System(templates=[{"name": "a", "rate": rate, "times": [[time]], "latency": 100}])
    found = simulate(system, "chain_mct", 20_000, 20, threads=2)
    p = 1 - exp(-rate)
    wait = p * ticks * (ticks - 1) / (2 * (1 - p * ticks))
    half = found.mean_queueing.half_width * 4.8 / 2.093  # 1 in 10,000, not 1 in 20
    assert abs(found.mean_queueing.mean - wait) < half
    assert found.mean_waiting.mean == 0
    assert found.mean_response.mean == pytest.approx(found.mean_queueing.mean + ticks)


@pytest.mark.parametrize("broken", [None, {"mean_uptime": 300, "mean_repair": 40}])
def test_a_response_is_waiting_queueing_and_running(broken: dict[str, float] | None) -> None:
    """Waiting ends when an application is sent to a node, queueing when it starts there."""
    template = {"name": "a", "rate": 0.1, "times": [[4, 4], [3, 3]], "latency": 40}
    system = System(templates=[template], failures=broken)
    central, sent = (run(system, policy, 3000) for policy in ("chain_fcfs", "chain_mct"))
    for found in (central, sent):
        assert found.response[0] == pytest.approx(found.waiting[0] + found.queueing[0] + 7)
    assert central.queueing[0] == 0
    assert central.waiting[0] > 0
    assert sent.queueing[0] > 0
    assert (sent.waiting[0] > 0) == (broken is not None)


def test_arrivals_are_the_same_under_every_policy() -> None:
    system = System(templates=TWO, perturbation={"reading": "halved", "variation": 0.5})
    first, second = (run(system, policy, 500, trace=True) for policy in ("chain_mct", "chain_rr"))
    kept = ["time", "task", "task_class"]
    one, other = (f.trace[f.trace.kind == 0][kept].tolist() for f in (first, second))
    assert one == other


def test_impossible_answers_are_refused_and_the_application_waits_for_any_node() -> None:
    @chain
    def wrong(job, stage, view):  # type: ignore[no-untyped-def]
        """Name a node that is not there for every second job (made up)."""
        return 7 if view.jobs[job].number % 2 else -1

    system = System(templates=TWO)
    found = simulate(system, wrong, 300, 2)
    queue = simulate(system, "chain_fcfs", 300, 2)
    assert found.refusals > 0
    assert found.figures == queue.figures


def test_a_node_that_fails_loses_its_application_and_others_go_on() -> None:
    template = {"name": "a", "rate": 0.02, "times": [[4, 4], [4, 4]], "latency": 40}
    broken = {"mean_uptime": [20, float("inf")], "mean_repair": 10**6}
    system = System(templates=[template], failures=broken)
    for policy in POLICIES:
        found = run(system, policy, 3000, trace=True)
        (down,) = [t for t, _, _ in events(found, "failure")]
        assert not [t for t, _, j in events(found, "start") if j == 0 and t >= down]
        assert found.more["in_progress"] <= 3
        assert found.more["ok"] > 30
        assert found.refusals == 0


def test_a_share_of_the_cpu_makes_times_longer() -> None:
    template = {"name": "a", "rate": 0.01, "times": [[4]], "latency": 100}
    found = run(System(templates=[template], availability=[0.5]), "chain_mct", 5000)
    assert found.response[0] - found.waiting[0] - found.queueing[0] == pytest.approx(8)


def chains() -> Chains:
    template = {"name": "a", "rate": 0.1, "times": [[1]], "latency": 4}
    system = System(templates=[template])
    return Chains(
        system, find("chain_mct"), Conditions(100, np.random.SeedSequence(1), interpreted=True)
    )


@given(st.permutations(range(40)), st.integers(0, 39))
def test_in_order(keys: list[int], early: int) -> None:
    s = chains().state
    out = []
    for key in keys:
        job = take(s)
        s.ticket[job].key = key
        enqueue(s, 0, job)
        if key == early:
            out.append(s.ticket[pop(s, 0)].key)
    while s.root[0] >= 0:
        out.append(s.ticket[pop(s, 0)].key)
    assert sorted(out) == list(range(40))
    assert out[1:] == sorted(out[1:])


def test_roomgrows_and_is_given_back() -> None:
    mechanism = chains()
    s = mechanism.state
    size = len(s.ticket)
    taken = [take(s) for _ in range(size)]
    assert s.count[0].spare == 0
    grow(mechanism)
    s = mechanism.state
    taken += [take(s) for _ in range(size)]
    assert sorted(taken) == list(range(2 * size))
    for job in taken:
        release(s, job)
    assert s.count[0].spare == 2 * size
    assert not s.ticket["active"].any()
