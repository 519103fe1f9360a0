"""The loop against schedules by hand, a tick-by-tick reference, and theory."""

from math import ceil, exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError, System, chain, simulate
from gridwright.model import by_application
from gridwright.policies import CHAIN, Policy, find, policies
from gridwright.policies.policy import policy_of
from gridwright.simulation import KINDS, Replication, replicate
from gridwright.simulation.chain import Chains
from gridwright.simulation.chain_loop import enqueue, pop, release, take
from gridwright.simulation.driver import Conditions, grow

ALWAYS = 100.0
"""A rate at which a job arrives in every tick."""
SHIPPED = [p.name for p in policies().values() if p.kind is CHAIN and p.is_shipped]
POLICIES = [*SHIPPED, "chain_rr:by=application"]
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


def test_applications_run_only_where_they_can() -> None:
    """The first application needs node 0 or 1, the second node 2: whatever the policy says."""
    inf = float("inf")
    templates = [
        {"name": "a", "rate": 0.1, "times": [[3, 5, inf], [inf, inf, 2]], "latency": 30},
        {"name": "b", "rate": 0.2, "times": [[inf, 1, 4]], "latency": 30},
    ]
    system = System(templates=templates, failures={"mean_uptime": 100, "mean_repair": 5})
    assert system.rates.tolist() == [[0, 0, 0], [0, 1, 0.25]]
    assert by_application(system).rates[1].tolist() == [0, 0, 0.5]

    def everywhere(job: int, stage: int, view: Any) -> int:
        return (job + stage) % 3

    anywhere = policy_of(everywhere, CHAIN)
    for policy in (*map(find, POLICIES), anywhere):
        found = run(system, policy, 800, trace=True)
        same_in_python = run(system, policy, 800, trace=True, interpreted=True)
        assert found.trace.tobytes() == same_in_python.trace.tobytes()
        assert sum(found.more[each] for each in ("ok", "late")) > 200
        log = found.trace[found.trace.kind == KINDS.index("start")]
        assert set(log.machine[log.task_class == 1]) == {1, 2}
        assert set(log.machine[log.task_class == 0]) == {0, 1, 2}
        assert (found.refusals > 0) == (policy is anywhere)


def test_an_idle_node_takes_the_first_application_that_it_can_run() -> None:
    """Jobs of one kind in every tick; those of the other wait behind them, not for them."""
    inf = float("inf")
    templates = [
        {"name": "a", "rate": ALWAYS, "times": [[4, inf]], "latency": 99},
        {"name": "b", "rate": ALWAYS, "times": [[inf, 1]], "latency": 99},
    ]
    found = run(System(templates=templates), "chain_fcfs", 12, trace=True)
    starts = events(found, "start")
    assert [t for t, _, node in starts if node == 0] == [0, 4, 8]
    assert [t for t, _, node in starts if node == 1] == list(range(12))


def test_times_that_no_node_can_do() -> None:
    inf = float("inf")
    base = {"name": "a", "rate": 1, "latency": 9}
    with pytest.raises(InputError, match="row 2 is all infinite"):
        System(templates=[{**base, "times": [[1, 2], [inf, inf]]}])
    with pytest.raises(InputError, match="column 2 can run no application"):
        System(templates=[{**base, "times": [[1, inf], [3, inf]]}])


def spans(system: System, policy: str, horizon: float) -> list[tuple[int, float, float]]:
    """List where and from when to when each application of the first job ran."""
    found = run(system, policy, horizon, trace=True)
    again = run(system, policy, horizon, trace=True, interpreted=True)
    assert found.trace.tobytes() == again.trace.tobytes()
    starts = [(node, t) for t, job, node in events(found, "start") if job == 0]
    ends = {node: t for t, job, node in events(found, "finish") if job == 0}
    return [(node, t, ends[node]) for node, t in starts]


INF = float("inf")


def apart(first: float, second: float, **parts: Any) -> System:
    """Return a system of two nodes: the first application runs on one, the second on the other."""
    links = parts.pop("links", None)
    times = [[first, INF], [INF, second]]
    return System(
        templates=[{"name": "a", "rate": 0.9, "times": times, "latency": 50, **parts}], links=links
    )


def test_data_takes_its_time_from_node_to_node() -> None:
    rows = [[9, 3], [7, 9]]
    (_, began, _), (_, _, ended) = spans(apart(2, 4), "chain_mct", 60)
    assert ended - began == 6
    for latency in (3, rows):
        far = apart(2, 4, links={"latency": latency})
        first, second = spans(far, "chain_mct", 60)
        assert second[1] - first[2] == 3, "it travels, and the node may do something else"
        assert second[2] - first[1] == 2 + 3 + 4
        first, second = spans(far, "chain_fcfs", 60)
        assert second[1] == first[2], "the node that takes it waits for its input"
        assert second[2] - first[1] == 2 + 3 + 4
    near = System(
        templates=[{"name": "a", "rate": 0.1, "times": [[2], [4]], "latency": 50}],
        links={"latency": 100},
    )
    assert spans(near, "chain_mct", 100)[-1][2] < 100, "the same node has the input already"


def test_applications_may_overlap() -> None:
    """The next one starts when its share of the first is done, and ends after it."""
    first, second = spans(apart(4, 4, overlap=0.5), "chain_mct", 60)
    assert (second[1] - first[1], second[2] - first[1]) == (2, 6)
    first, second = spans(apart(4, 1, overlap=0.5), "chain_mct", 60)
    assert (second[1] - first[1], second[2] - first[1]) == (2, 4)
    late = apart(4, 1, overlap=0.5, links={"latency": 1})
    first, second = spans(late, "chain_mct", 60)
    assert (second[1] - first[1], second[2] - first[1]) == (3, 5)
    first, second = spans(late, "chain_fcfs", 60)
    assert (second[1] - first[1], second[2] - first[1]) == (2, 5)


@pytest.mark.parametrize("policy", POLICIES)
def test_overlaps_and_links_lose_no_job(policy: str) -> None:
    templates = [{**TWO[0], "overlap": 0.4}, {**TWO[1], "times": [[2, INF]], "latency": 12}]
    system = System(
        templates=templates,
        counts=[2, 2],
        links={"latency": [[1, 2.5], [2.5, 1]]},
        perturbation={"variation": 0.3},
    )
    found = run(system, policy, 3000, trace=True, warmup=100)
    same = run(system, policy, 3000, trace=True, warmup=100, interpreted=True)
    assert found.trace.tobytes() == same.trace.tobytes()
    more = found.more
    assert more["in_progress"] < 20
    finished = len(events(found, "finish"))
    arrived = np.bincount([int(e.task_class) for e in found.trace if e.kind == 0], minlength=2)
    assert abs(finished - 3 * arrived[0] - arrived[1]) < 40
    parts = found.waiting + found.queueing
    assert (parts >= 0).all()
    assert (parts < found.response).all()
    plain = run(system.replace(templates=[TWO[0], templates[1]]), policy, 3000, warmup=100)
    if policy != "chain_rr":  # which runs all applications of a job on one node
        assert found.response[0] < plain.response[0]


def test_links_and_failures_together() -> None:
    system = System(
        templates=[TWO[0]],
        counts=[2, 2],
        links={"latency": 4},
        failures={"mean_uptime": 40, "mean_repair": 5},
    )
    for policy in POLICIES:
        found = run(system, policy, 800, trace=True)
        assert (
            found.trace.tobytes()
            == run(system, policy, 800, trace=True, interpreted=True).trace.tobytes()
        )
        assert found.lost > 0
        assert found.more["in_progress"] < 20


def test_wrong_links_and_overlaps() -> None:
    with pytest.raises(InputError, match="expected a number, or 2 rows of 2 numbers"):
        System(templates=TWO, links={"latency": [[1, 2]]})
    with pytest.raises(InputError, match="links is for chains"):
        System(arrivals=[1], rates=[[2]], links={"latency": 1})
    with pytest.raises(InputError, match="for nodes that do not fail"):
        System(
            templates=[{**TWO[0], "overlap": 0.1}], failures={"mean_uptime": 9, "mean_repair": 1}
        )
