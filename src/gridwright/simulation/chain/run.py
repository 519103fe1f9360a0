"""A replication of a grid of chains: its loop driven slice by slice, and read off."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.link import bind, link
from ...model import System
from ...policies import Policy
from ...policies.view import records
from ..reason import DRAWS, POOL, SLICE, TRACE
from ..replication import Conditions, Replication, slice_ends
from ..setup import Streams
from ..shape import BUFFERED, draw, draw_exponential, is_low, never_low, refill
from ..state import EVENT
from .adequacy import adequacy
from .loop import loop
from .setup import make_state, room_for_a_step
from .state import ChainState, grow

__all__ = ["run"]

FEWEST = 8
"""How often the number of jobs is noted at least: runs are short, and many."""

Floats = NDArray[np.float64]


def run(system: System, policy: Policy, conditions: Conditions) -> Replication:
    """Simulate one replication of a system of chains."""
    horizon, warmup, trace = conditions.horizon, conditions.warmup, conditions.trace
    streams = Streams.spawn(conditions.seed)
    state, distributions = make_state(system, policy, streams, horizon, trace=trace)
    go_on = _choose_loop(policy, state, interpreted=conditions.interpreted)
    arguments = policy.arguments(system.shape)
    rest = (warmup, horizon, *streams[:4])
    pages: list[Any] = []
    times, number = [0.0], [0.0]
    seconds = 0.0
    effort = float(state.templates["applications"].mean()) * (1 + system.shape[1] / 8)
    for until, is_sample in slice_ends(system, horizon, warmup, effort, FEWEST):
        reason = -1
        while reason != SLICE:
            before = thread_time()
            reason = go_on(state, arguments, until, *rest)
            seconds += thread_time() - before if until > 0 else 0.0
            if reason == POOL:
                state = grow(state)
            elif reason == DRAWS:
                refill(distributions, state.shapes, state.table, streams)
            elif reason == TRACE:
                state = _turn_page(state, pages)
        if until == warmup and until > 0:
            _forget(state)
        if until > 0 and is_sample:
            times.append(until)
            number.append(float(state.count[0].inside))
        conditions.on_slice(until / horizon)
    if trace:
        state = _turn_page(state, pages)
    log = np.concatenate(pages).view(np.recarray) if trace else None
    samples = (np.array(times), np.array(number))
    return _read_off(state, system, horizon, warmup, samples, seconds, log)


def _choose_loop(policy: Policy, state: ChainState, *, interpreted: bool) -> Callable[..., int]:
    kinds = state.shapes["kind"]
    hooks: dict[str, Any] = {
        "decide": policy.decide,
        "shape_draw": draw if kinds.any() else draw_exponential,
        "low": is_low if (kinds == BUFFERED).any() else never_low,
    }
    if interpreted:
        return bind(loop, **hooks)
    return link(loop, allocating=policy.allocating, **hooks)


def _turn_page(state: ChainState, pages: list[Any]) -> ChainState:
    """Keep what is written down, and make room for a step where there is too little."""
    pages.append(state.trace[: state.count[0].traced].copy())
    state.count[0].traced = 0
    needed = room_for_a_step(state)
    if needed > len(state.trace):
        return state._replace(trace=records(2 * needed, EVENT))
    return state


def _forget(state: ChainState) -> None:
    """Start the statistics anew at the end of the warm-up."""
    now = state.count[0].now
    state.count[0].area = 0.0
    state.stream["finished"] = 0
    state.server["busy"] = 0.0
    serving = state.server["job"] >= 0
    state.server["busy"][serving] = state.server["begun"][serving] - now


def _read_off(
    state: ChainState,
    system: System,
    horizon: float,
    warmup: float,
    samples: tuple[Floats, Floats],
    seconds: float,
    log: Any,
) -> Replication:
    length = horizon - warmup
    stream, server, count = state.stream, state.server, state.count[0]
    busy = server["busy"].copy()
    serving = server["job"] >= 0
    busy[serving] += horizon - server["begun"][serving]
    done = stream["ok"] + stream["late"]

    def mean(total: Floats) -> Floats:
        return np.divide(total, done, out=np.full(len(total), np.nan), where=done > 0)

    return Replication(
        mean_number=float(count.area) / length,
        response=mean(stream["response"]),
        waiting=mean(stream["waited"]),
        queueing=mean(stream["waited"]),
        responded=done,
        throughput=stream["finished"] / length,
        utilisation=busy / length,
        lost=int(count.lost),
        tasks=int(count.jobs),
        refusals=int(count.refusals),
        held=int(count.held),
        asked=int(count.asked),
        tally=state.tally.copy(),
        permitted=np.full(len(stream), float(len(server))),
        memory=state.memory.copy(),
        times=samples[0],
        number=samples[1],
        seconds=seconds,
        trace=log,
        more=MappingProxyType(_jobs(stream) | adequacy(state, system, horizon, warmup)),
    )


def _jobs(stream: Any) -> dict[str, Any]:
    """Count the jobs that arrived after the warm-up by what became of them."""
    arrived, ok, late = (int(stream[field].sum()) for field in ("arrived", "ok", "late"))
    return {
        "ok": ok,
        "late": late,
        "in_progress": arrived - ok - late,
        "performance": ok / (ok + late) if ok + late else 0.0,
    }
