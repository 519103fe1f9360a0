"""A replication of a grid of chains: its loop driven slice by slice, and read off."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.link import bind, link
from ..model import Customer, System
from ..policies import Policy
from ..policies.view import records
from .central_setup import Streams
from .central_state import EVENT
from .chain_loop import loop
from .chain_setup import make_state, room_for_a_step
from .chain_state import ChainState, grow
from .driver import Conditions, Replication, slice_ends
from .interrupts import DRAWS, POOL, SLICE, TRACE
from .sampling import BUFFERED, draw, draw_exponential, is_low, never_low, refill

__all__ = [
    "adequacy",
    "margins",
    "run",
]

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


def adequacy(state: ChainState, system: System, horizon: float, warmup: float) -> dict[str, Any]:
    """Measure every customer: jobs, late ones, and δ = β^max − α over its windows.

    α counts the jobs that arrived in a window and took longer than acceptable: those that
    finished late, and those in progress that are too late already. With them f, the share of
    arrivals that fail.
    """
    failed = state.failed + _overdue(state, horizon, warmup)
    customers = system.customers or (Customer(name="all"),)
    found = [
        margins(each, state.arrived[c], failed[c], horizon, warmup)
        for c, each in enumerate(customers)
    ]
    known = [each[~np.isnan(each)] for each in found]
    total = int(state.arrived.sum())
    return {
        "failure_share": float(failed.sum()) / total if total else 0.0,
        "customer_jobs": state.arrived.sum(axis=1),
        "customer_failures": failed.sum(axis=1),
        "least_margin": np.array([each.min() if len(each) else np.nan for each in known]),
        "mean_margin": np.array([each.mean() if len(each) else np.nan for each in known]),
        "adequate": np.array([float((each > 0).all()) for each in known]),
    }


def margins(
    customer: Customer, arrived: Any, failed: Any, horizon: float, warmup: float
) -> np.ndarray[Any, Any]:
    """Return δ of every window that lies after the warm-up; NaN where nothing is to be judged.

    A share of no jobs is no limit. A customer without limits has no margins.

    >>> limited = Customer(name="bank", max_failures=2, window=10)
    >>> margins(limited, np.array([3, 0, 5]), np.array([1, 0, 3]), 30, 0)
    array([ 1.,  2., -1.])
    """
    windows = int(np.ceil(horizon / customer.window - 1e-9))
    if np.isnan(customer.limits(1)[0]):
        return np.full(1, np.nan)
    limit = customer.limits(windows)
    if customer.max_share is not None:
        limit = np.where(arrived[:windows] > 0, limit * arrived[:windows], np.nan)
    limit[np.arange(windows) * customer.window < warmup] = np.nan
    return limit - failed[:windows]


def _overdue(state: ChainState, horizon: float, warmup: float) -> Any:
    """Count the jobs in progress that are late already, by customer and window."""
    overdue = np.zeros_like(state.failed)
    jobs = state.jobs[state.ticket["active"]]
    template = state.templates[jobs["template"]]
    late = (horizon - jobs["arrived"] > template["latency"]) & (jobs["arrived"] >= warmup)
    customer = template["customer"][late]
    window = (jobs["arrived"][late] / state.window[customer]).astype(np.int64)
    np.add.at(overdue, (customer, window), 1)
    return overdue
