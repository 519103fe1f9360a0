"""A replication of a central system, push or pull: its loop driven slice by slice, and read off."""

from __future__ import annotations

from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import System
from ..policies import Policy
from .central_setup import (
    Delays,
    Streams,
    choose_loop,
    choose_planner,
    is_static,
    make_plan,
    make_state,
)
from .central_state import State, grow
from .driver import Conditions, Replication, slice_ends
from .interrupts import ASK, DRAWS, HELD, PLAN, POOL, SLICE, TRACE
from .sampling import refill

__all__ = ["read_off", "run", "turn_page"]

Floats = NDArray[np.float64]


def run(system: System, policy: Policy, conditions: Conditions) -> Replication:
    """Simulate one replication of a push or pull system."""
    lazy = not policy.kind.pulls and is_static(system) and conditions.delays is None
    result = _run(system, policy, conditions, lazy=lazy)
    if result is None:  # the policy holds tasks back, which needs an event list
        result = _run(system, policy, conditions, lazy=False)
    assert result is not None
    return result


def _run(
    system: System, policy: Policy, conditions: Conditions, *, lazy: bool
) -> Replication | None:
    horizon, warmup, trace = conditions.horizon, conditions.warmup, conditions.trace
    interpreted, delays = conditions.interpreted, conditions.delays or Delays()
    streams = Streams.spawn(conditions.seed)
    state, distributions = make_state(system, policy, streams, delays, trace=trace)
    loop = choose_loop(policy, state, lazy=lazy, interpreted=interpreted)
    rest: tuple[Any, ...] = (warmup, horizon, streams.tasks, streams.policy)
    if not lazy:
        changing = system.failures is not None or bool(np.max(delays.reporting) > 0)
        plan = choose_planner(policy, state, changing=changing, interpreted=interpreted)
        rest = (warmup, *plan, *streams[:4])
    arguments = policy.arguments(system.shape)
    plans: dict[bytes, Floats] = {}
    pages: list[Any] = []
    times, number = [0.0], [0.0]
    seconds = 0.0
    for until, is_sample in slice_ends(system, horizon, warmup):
        reason = -1
        while reason != SLICE:
            before = thread_time()
            reason = loop(state, arguments, until, *rest)
            seconds += thread_time() - before if until > 0 else 0.0
            if reason == POOL:
                state = grow(state)
            elif reason == DRAWS:
                refill(distributions, state.shapes, state.table, streams)
            elif reason == TRACE:
                turn_page(state, pages)
            elif reason == PLAN:
                _plan_in_python(state, policy, plans)
            elif reason == HELD:
                return None
        if until == warmup and until > 0 and not lazy:
            _forget(state)
        if until > 0 and is_sample:
            times.append(until)
            number.append(float(state.count[0].inside))
        conditions.on_slice(until / horizon)
    if trace:
        turn_page(state, pages)
    return read_off(
        state, horizon, warmup, np.array(times), np.array(number), seconds, pages if trace else None
    )


def _plan_in_python(state: State, policy: Policy, plans: dict[bytes, Floats]) -> None:
    """Make the plan that the loop asks for, or recall it: situations come back."""
    key = state.present.tobytes()
    if key not in plans:
        plans[key] = make_plan(policy, state)
    state.plan[:] = plans[key]
    state.count[0].pending = ASK


def turn_page(state: State, pages: list[Any]) -> None:
    """Keep a full page of the event log, and start another."""
    pages.append(state.trace[: state.count[0].traced].copy())
    state.count[0].traced = 0


def _forget(state: State) -> None:
    """Start the statistics anew at the end of the warm-up."""
    state.count[0].area = 0.0
    state.stream["finished"] = 0
    state.server["busy"] = 0.0
    serving = state.server["ticket"] >= 0
    state.server["busy"][serving] = state.server["begun"][serving] - state.count[0].now


def read_off(
    state: State,
    horizon: float,
    warmup: float,
    times: Floats,
    number: Floats,
    seconds: float,
    pages: list[Any] | None,
) -> Replication:
    """Return what was measured, at the end of a run."""
    length = horizon - warmup
    stream, server, count = state.stream, state.server, state.count[0]
    busy = server["busy"].copy()
    serving = server["ticket"] >= 0
    busy[serving] += horizon - server["begun"][serving]
    responded = stream["responded"].copy()

    def mean(total: Floats) -> Floats:
        return np.divide(total, responded, out=np.full(len(total), np.nan), where=responded > 0)

    return Replication(
        mean_number=float(count.area) / length,
        response=mean(stream["response"]),
        waiting=mean(stream["waited"]),
        queueing=mean(stream["queued"]),
        responded=responded,
        throughput=stream["finished"] / length,
        utilisation=busy / length,
        lost=int(stream["lost"].sum()),
        tasks=int(count.tasks),
        refusals=int(count.refusals),
        held=int(count.held),
        asked=int(count.asked),
        replans=int(count.replans),
        tally=state.tally.copy(),
        permitted=np.count_nonzero(state.plan, axis=1).astype(float),
        memory=state.memory.copy(),
        times=times,
        number=number,
        seconds=seconds,
        trace=None if pages is None else np.concatenate(pages).view(np.recarray),
    )
