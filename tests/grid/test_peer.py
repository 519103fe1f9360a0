"""Books of machines without a scheduler: against the simulator, and through deaths of machines."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import System, load
from gridwright.grid.job import Job, Stage
from gridwright.grid.peer import PeerJob
from gridwright.grid.peer_network import CHANGE, PeerNetwork
from gridwright.policies import PEER, find, policies
from gridwright.simulation import KINDS, replicate
from gridwright.simulation.driver import Streams
from gridwright.testbed.changes import Change, draw_changes, peer_of, rates_after

SEED = np.random.SeedSequence(5)
PEERS = [name for name, policy in policies().items() if policy.kind is PEER and policy.is_shipped]
SMALL = System(
    name="small",
    arrivals=[[1, 0.5, 0], [0, 1, 1]],
    rates=[[3, 0, 2], [1, 2, 4]],
    availability=[1, 0.7, 1],
    execution="deterministic",
    changes={
        "mean_interval": 2.0,
        "arrivals": [1, 1.5],
        "rates": [0.8, 1.1],
        "availability": [1, 0.7],
    },
)


def network(
    system: System,
    policy: str,
    changes: list[Change],
    latency: Callable[[int, int], float] = lambda sender, to: 0.0,
) -> PeerNetwork:
    """Return the machines of a system in virtual time, with their changes."""
    found = find(policy)
    so_far: list[Change] = []

    def duration(job: PeerJob, machine: int) -> float:
        now = rates_after(system, machine, so_far)
        return job.size / (now.nominal[job.task_class] * now.availability)

    net = PeerNetwork(
        system.shape[1],
        lambda machine: peer_of(system, found, machine, so_far, seed=1),
        duration,
        latency,
    )

    def change(new: Change) -> None:
        so_far.append(new)
        net.change(new.machine, rates_after(system, new.machine, so_far))

    for each in changes:
        net.at(each.time, partial(change, each), CHANGE)
    return net


LARGE = load("4.A").replace(
    execution=SMALL.execution, changes={**dict(load("4.A").changes or ()), "mean_interval": 0.5}
)


@pytest.mark.parametrize(
    ("system", "policy"), [*((SMALL, policy) for policy in PEERS), (LARGE, "lpas_dec")]
)
def test_the_books_decide_as_the_simulator_does(system: System, policy: str) -> None:
    horizon = 40.0 if system is SMALL else 4.0
    run = replicate(system, find(policy), horizon=horizon, seed=SEED, trace=True, interpreted=True)
    changes = draw_changes(system, horizon, Streams.spawn(SEED).faults)
    assert len({each.time for each in changes}) == run.more["changes"]
    net = network(system, policy, list(changes))
    events = {kind: run.trace[run.trace["kind"] == KINDS.index(kind)] for kind in KINDS}
    for e in events["arrival"]:
        job = Job(int(e.task), int(e.task_class), float(e.time))
        net.at(e.time, partial(net.submit, job, int(e.machine)))
    net.run(horizon)
    assert {d.job.number: d.choice for _, d in net.decisions} == {
        int(e.task): int(e.machine) for e in events["assignment"]
    }
    ends = {n: job.ended for n, job in net.jobs.jobs.items() if job.stage == Stage.finished}
    assert ends == {int(e.task): e.time for e in events["finish"]}
    asked = 2 * run.more["met"]
    assert net.messages["question"] + net.messages["answer"] == asked
    assert len(ends) > 80


@given(
    policy=st.sampled_from(PEERS),
    seed=st.integers(0, 10**6),
    mean=st.sampled_from([0.0, 0.01, 0.3]),
    faults=st.lists(
        st.tuples(st.floats(0.1, 15), st.integers(0, 2), st.floats(0.01, 8)), max_size=8
    ),
)
@settings(max_examples=25, deadline=None)
def test_no_job_is_lost_whoever_dies(
    policy: str, seed: int, mean: float, faults: list[tuple[float, int, float]]
) -> None:
    rng = np.random.default_rng(seed)
    net = network(
        SMALL,
        policy,
        list(draw_changes(SMALL, 15.0, rng)),
        latency=lambda sender, receiver: float(rng.exponential(mean)) if mean else 0.0,
    )
    homes = [(0, 0), (0, 1), (1, 1), (1, 2)]
    for number, time in enumerate(np.sort(rng.uniform(0, 15, 40)).tolist()):
        task_class, home = homes[int(rng.random() * len(homes))]
        job = Job(number, task_class, time)
        net.at(time, partial(net.submit, job, home, float(rng.exponential())))
    for time, machine, length in faults:
        net.at(time, partial(net.fail, machine))
        net.at(time + length, partial(net.repair, machine))
    for machine in range(3):
        net.at(30.0, partial(net.repair, machine))
    net.run()
    assert not net.jobs.unfinished()
    assert len(net.jobs.jobs) == 40
    assert not any(net.jobs.held)
    assert not any(net.jobs.pending)
    for peer in net.peers:
        assert peer is not None
        assert peer.refusals == 0, "to send a job nowhere is not impossible"
        left = [
            *peer.queue,
            *peer.cases,
            *peer.stranded,
            *(job for each in peer.handed for job in each),
        ]
        assert left == []
        assert peer.machines[peer.number].work == peer.there.sum() == 0
    if not faults:
        assert net.jobs.late == 0
        assert net.messages["handover"] == net.messages["receipt"]
        assert net.messages["question"] == net.messages["answer"]
