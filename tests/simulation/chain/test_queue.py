"""Queues give jobs back in the order of their keys, whatever the order they came in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gridwright import System
from gridwright.policies import find
from gridwright.simulation.chain import Chains
from gridwright.simulation.chain_loop import enqueue, pop, release, take
from gridwright.simulation.driver import Conditions, _grow


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


def test_room_grows_and_is_given_back() -> None:
    mechanism = chains()
    s = mechanism.state
    size = len(s.ticket)
    taken = [take(s) for _ in range(size)]
    assert s.count[0].spare == 0
    _grow(mechanism)
    s = mechanism.state
    taken += [take(s) for _ in range(size)]
    assert sorted(taken) == list(range(2 * size))
    for job in taken:
        release(s, job)
    assert s.count[0].spare == 2 * size
    assert not s.ticket["active"].any()
