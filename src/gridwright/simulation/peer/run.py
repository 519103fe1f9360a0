"""A replication of a decentralised system: its state at time 0, its loop driven, and read off."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...allocation import make_room
from ...compiler.link import bind, link, point
from ...model import InputError, System
from ...policies import Policy
from ...policies.view import records
from ..central import read_off, turn_page
from ..plan import PLANS, Planning, plan_in_python
from ..reason import DRAWS, PLAN, POOL, SLICE, TRACE
from ..replication import Conditions, Replication, slice_ends
from ..setup import Delays, Streams, is_static, make_state
from ..shape import BUFFERED, draw, draw_exponential, is_low, never_low, refill
from ..state import EVENT, State, grow
from ..trace import START, note
from .knowledge import situation
from .loop import loop
from .setup import make_peers
from .state import PeerState

__all__ = ["check", "run"]

MOST_MACHINES = 1000
"""What every machine knows of every other takes room with the square of their number."""

Floats = NDArray[np.float64]


def check(system: System, policy: Policy) -> None:
    """Refuse a system in which no peer policy can run."""
    name = system.name or "the system"
    if not is_static(system):
        raise InputError(
            f"{name} has machines that fail or whose availability is a chain; peer policies know "
            "only changes at times, as [changes]"
        )
    if system.shape[1] > MOST_MACHINES:
        raise InputError(f"{name} has {system.shape[1]} machines; expected at most {MOST_MACHINES}")
    if system.assumed is not None and system.assumed.inaccuracy.availability:
        raise InputError(f"{name}: peer policies know inaccurate arrivals and rates, not shares")


def run(system: System, policy: Policy, conditions: Conditions) -> Replication:
    """Simulate one replication of a decentralised system."""
    horizon, warmup, trace = conditions.horizon, conditions.warmup, conditions.trace
    streams = Streams.spawn(conditions.seed)
    central, distributions = make_state(system, policy, streams, Delays(), trace=trace)
    p = make_peers(system, central, streams)
    go = _linked(policy, central, conditions.interpreted)
    make_plan, planning = _planner(policy, p, conditions.interpreted)
    own = (streams.tasks, streams.faults, streams.repeats, streams.policy)
    rest = (warmup, horizon, make_plan, planning, *own)
    arguments = policy.arguments(system.shape)
    pages: list[Any] = []
    times, number, ages, disputes = [0.0], [0.0], [], []
    seconds = 0.0
    for until, is_sample in slice_ends(system, horizon, warmup):
        reason = -1
        while reason != SLICE:
            before = thread_time()
            reason = go(p, arguments, until, *rest)
            seconds += thread_time() - before if until > 0 else 0.0
            if reason == POOL:
                p = p._replace(central=grow(p.central))
            elif reason == DRAWS:
                refill(distributions, p.central.shapes, p.central.table, streams)
            elif reason == TRACE:
                p = p._replace(central=_next_page(p.central, pages))
            elif reason == PLAN:
                _plan_in_python(p, policy)
        if until > 0 and is_sample:
            times.append(until)
            number.append(float(p.central.count[0].inside))
            ages.append(_ages(p, until))
            disputes.append(_disagreement(p.plan))
        conditions.on_slice(until / horizon)
    if trace:
        _note_running(p.central, pages)
    found = read_off(
        p.central,
        horizon,
        warmup,
        np.array(times),
        np.array(number),
        seconds,
        pages if trace else None,
    )
    return found._replace(
        memory=p.memory.sum(axis=0), more=_measured(p, np.array(ages), np.array(disputes))
    )


def _linked(policy: Policy, central: State, interpreted: bool) -> Callable[..., int]:
    kinds = central.shapes["kind"]
    hooks: dict[str, Any] = {
        "decide": policy.decide,
        "shape_draw": draw if kinds.any() else draw_exponential,
        "low": is_low if (kinds == BUFFERED).any() else never_low,
    }
    if interpreted:
        return bind(loop, **hooks)
    return link(loop, allocating=policy.allocating, inlined=True, **hooks)


def _planner(policy: Policy, p: PeerState, interpreted: bool) -> tuple[Any, Planning]:
    plan: Any = plan_in_python
    numbers = np.zeros(0)
    if policy.planner in PLANS:
        plan, numbers = PLANS[policy.planner], np.array([*policy.planning.values()], dtype=float)
    now = situation(p, 0)
    planning = Planning(make_room(now), numbers, p.load)
    if interpreted:
        return plan, planning
    import numba

    typeof: Any = numba.typeof
    takes = (typeof(now), typeof(planning), typeof(p.plan[0]))
    return point(plan, numba.types.boolean, *takes), planning


def _plan_in_python(p: PeerState, policy: Policy) -> None:
    q = int(p.diary[0].home)
    p.plan[q] = policy.plan(situation(p, q))
    p.outdated[q] = False
    p.central.count[0].replans += 1


def _next_page(central: State, pages: list[Any]) -> State:
    """Turn a page of the log; a longer one where many tasks may leave at once."""
    turn_page(central, pages)
    needed = 4 * int(central.count[0].inside) + 64
    return (
        central if len(central.trace) >= needed else central._replace(trace=records(needed, EVENT))
    )


def _note_running(central: State, pages: list[Any]) -> None:
    """Write down that the tasks now in service have begun."""
    for j, server in enumerate(central.server):
        if server.head >= 0:
            if central.count[0].traced == len(central.trace):
                turn_page(central, pages)
            ticket = central.ticket[server.head]
            note(central, ticket.begun, START, ticket.number, ticket.task_class, j)
    turn_page(central, pages)


def _ages(p: PeerState, now: float) -> Floats:
    """Return how long ago every machine heard of the others, on average."""
    machines = len(p.version)
    ages = now - p.heard
    np.fill_diagonal(ages, 0.0)
    return np.asarray(ages.sum(axis=1) / max(machines - 1, 1))


def _disagreement(plan: Floats) -> float:
    """Return the share of zeros and non-zeros in which two machines' plans differ, on average."""
    machines = len(plan)
    if machines < 2:
        return 0.0
    share = np.count_nonzero(plan, axis=0) / machines
    return float(np.mean(2 * share * (1 - share)) * machines / (machines - 1))


def _measured(p: PeerState, ages: Floats, disputes: Floats) -> MappingProxyType[str, Any]:
    d = p.diary[0]
    return MappingProxyType(
        {
            "met": int(d.met),
            "considered": int(d.considered),
            "changes": int(d.changes),
            "view_age": float(ages.mean()),
            "disagreement": float(disputes.mean()),
            "view_ages": ages,  # [sample, machine]
            "disagreements": disputes,  # [sample]
        }
    )
