"""The loops of batches and chains event by event: the same events as in a simulation."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gridwright import InputError, System, load
from gridwright.policies import find
from gridwright.simulation import KINDS, replicate
from gridwright.simulation.live import Happened, LiveLoop

BATCH = System(
    arrivals=[2, 1],
    rates=[[2, 1], [1, 2]],
    pmf={"width": 0.1},
    deadlines={"factor": 2, "best": 2, "discard": "both"},
    batch={"queue_limit": 3},
)
CHAINS = load("Wisnesky:4").replace(failures={"mean_uptime": 60, "mean_repair": 5})
FAR = CHAINS.replace(links={"latency": 3})
OVERLAP = System(
    templates=[
        {
            "name": "a",
            "rate": 0.1,
            "times": [[6, 4], [5, 9], [3, 2]],
            "latency": 40,
            "overlap": 0.6,
        },
        {"name": "b", "rate": 0.05, "times": [[2, 8], [9, 1]], "latency": 20, "overlap": 0.3},
    ],
    counts=[2, 1],
    links={"latency": [[1, 2.5], [2.5, 1]]},
)


def virtually(loop: LiveLoop) -> list[Happened]:
    """Let tasks take as long as the loop says."""
    due: dict[int, float] = {}
    found: list[Happened] = []
    while (time := min(loop.upcoming(), *due.values(), np.inf)) < loop.horizon:
        for machine in [machine for machine, at in due.items() if at <= time]:
            loop.end(machine, due.pop(machine))
        for event in loop.advance(time):
            found.append(event)
            if event.kind == "start":
                due[event.machine] = event.time + event.length
            elif event.kind == "failure":
                due.pop(event.machine, None)
    for machine, at in due.items():
        loop.end(machine, at)
    return found


@pytest.mark.parametrize(
    ("system", "policy", "horizon"),
    [
        (BATCH, "mm", 20.0),
        (BATCH, "mect", 20.0),
        (CHAINS, "chain_mct", 100.0),
        (FAR, "chain_mct", 100.0),
        (OVERLAP, "chain_mct", 200.0),
        (OVERLAP, "chain_fcfs", 200.0),
    ],
)
def test_if_tasks_take_as_long_as_the_loop_says_it_is_the_simulation(
    system: System, policy: str, horizon: float
) -> None:
    chosen = find(policy)
    loop = LiveLoop(system, chosen, horizon=horizon, seed=3, interpreted=True)
    events = [event[:5] for event in virtually(loop)]
    seed = np.random.SeedSequence(3)
    run = replicate(system, chosen, horizon=horizon, seed=seed, trace=True, interpreted=True)
    expected = [(e.time, KINDS[e.kind], e.task, e.task_class, e.machine) for e in run.trace]
    assert events == [event for event in expected if event[0] < horizon]
    assert len(events) > 80
    measured = loop.close()
    for name, value in run.more.items():
        if np.isscalar(value):
            assert measured[name] == pytest.approx(value), name


@given(seed=st.integers(0, 10**6), longest=st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=8, deadline=None)
def test_however_long_tasks_take_each_leaves_once(seed: int, longest: float) -> None:
    """Tasks that are late are discarded, and a machine runs one at a time."""
    system, rng = BATCH.replace(batch={"queue_limit": 2, "tasks": 10}), np.random.default_rng(seed)
    loop = LiveLoop(system, find("mm"), horizon=1e6, seed=seed, interpreted=True)
    busy: dict[int, tuple[float, int]] = {}
    inside: set[int] = set()
    came = 0
    while (time := min(loop.upcoming(), *(end for end, _ in busy.values()), np.inf)) < np.inf:
        ended = [machine for machine, (end, _) in busy.items() if end <= time]
        for machine in ended:
            loop.end(machine, busy.pop(machine)[0])
        for event in loop.advance(time):
            if event.kind == "arrival":
                came += 1
                inside.add(event.task)
            elif event.kind == "start":
                assert event.machine not in busy
                assert event.task in inside
                busy[event.machine] = event.time + rng.uniform(0.01, longest), event.task
            elif event.kind in ("finish", "discard"):
                inside.remove(event.task)
    assert came == 10
    assert inside == set()


@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.2, 1.0, 3.0]))
@example(seed=178, spread=3.0)  # the third begins when the input of the second is not complete yet
@settings(max_examples=8, deadline=None)
def test_however_long_applications_take_none_ends_before_its_predecessor(
    seed: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    loop = LiveLoop(OVERLAP, find("chain_mct"), horizon=300, seed=seed, interpreted=True)
    due: dict[int, float] = {}
    begun: dict[int, list[int]] = {}
    ended: dict[int, list[int]] = {}
    overlaps = 0
    while (time := min(loop.upcoming(), *due.values(), np.inf)) < loop.horizon:
        for machine in [machine for machine, at in due.items() if at <= time]:
            loop.end(machine, due.pop(machine))
        for event in loop.advance(time):
            if event.kind == "start":
                assert event.machine not in due
                due[event.machine] = event.time + event.length * rng.uniform(1, 1 + spread)
                begun.setdefault(event.task, []).append(event.machine)
                overlaps += len(begun[event.task]) - len(ended.get(event.task, ())) > 1
            elif event.kind == "finish":
                ended.setdefault(event.task, []).append(event.machine)
    assert overlaps > 3
    for task, machines in ended.items():
        assert machines == begun[task][: len(machines)]
    measured = loop.close()
    assert measured["ok"] + measured["late"] >= sum(len(each) == 3 for each in ended.values()) > 3


def test_a_task_that_takes_longer_keeps_its_machine() -> None:
    loop = LiveLoop(BATCH, find("mm"), horizon=100, seed=1, interpreted=True)
    first = next(event for event in loop.advance(20.0) if event.kind == "start")
    machines = [event.machine for event in loop.advance(50.0) if event.kind == "start"]
    assert first.machine not in machines
    loop.end(first.machine, 50.0)
    kinds = [event.kind for event in loop.advance(50.0)]
    assert kinds[0] == "finish"


def test_other_policies_are_refused() -> None:
    with pytest.raises(InputError, match="expected batch or chain"):
        LiveLoop(load("2.B"), find("mct"), horizon=10, seed=1)
