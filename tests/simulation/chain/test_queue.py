"""Queues give jobs back in the order of their keys, whatever the order they came in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gridwright import System
from gridwright.policies import find
from gridwright.simulation.central_setup import Streams
from gridwright.simulation.chain_loop import enqueue, pop, release, take
from gridwright.simulation.chain_setup import make_state
from gridwright.simulation.chain_state import ChainState, grow


def state() -> ChainState:
    template = {"name": "a", "rate": 0.1, "times": [[1]], "latency": 4}
    streams = Streams.spawn(np.random.SeedSequence(1))
    system = System(templates=[template])
    return make_state(system, find("chain_mct"), streams, 100, trace=False)[0]


@given(st.permutations(range(40)), st.integers(0, 39))
def test_in_order(keys: list[int], early: int) -> None:
    s = state()
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
    s = state()
    size = len(s.ticket)
    taken = [take(s) for _ in range(size)]
    assert s.count[0].spare == 0
    s = grow(s)
    taken += [take(s) for _ in range(size)]
    assert sorted(taken) == list(range(2 * size))
    for job in taken:
        release(s, job)
    assert s.count[0].spare == 2 * size
    assert not s.ticket["active"].any()
