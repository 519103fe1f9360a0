"""A replication of a decentralised system: its state at time 0, its loop driven, and read off."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import groups_of, make_workspace
from ..compiler.link import bind, link, point
from ..model import InputError, System
from ..policies import Policy
from ..policies.view import CLASS, MACHINE, records
from .central import read_off, turn_page
from .central_setup import Delays, Streams, is_static, make_state
from .central_state import EVENT, State, grow
from .driver import Conditions, Replication, slice_ends
from .event_log import START, note
from .interrupts import DRAWS, PLAN, POOL, SLICE, TRACE
from .peer_loop import loop
from .peer_state import DIARY, PeerState, situation
from .planning import PLANS, Planning, plan_in_python
from .sampling import BUFFERED, draw, draw_exponential, is_low, never_low, refill

__all__ = [
    "check",
    "make_peers",
    "run",
]

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
    planning = Planning(make_workspace(now), numbers, p.load)
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


def make_peers(system: System, central: State, streams: Streams) -> PeerState:
    """Build the state at time 0 around that of the machines and their tasks."""
    classes, machines = system.shape
    changes, assumed = system.changes, system.assumed
    diary = records(1, DIARY)
    diary["home"], diary["change"] = -1, np.inf
    diary["interval"] = np.inf if changes is None else changes.mean_interval
    diary["redraw"] = changes is not None and changes.redraw_errors
    error_arrival = np.ones((classes, machines))
    if assumed is not None:
        wrong = assumed.inaccuracy
        diary["doubt_arrivals"], diary["doubt_rates"] = wrong.arrivals, wrong.rates
        if assumed.arrivals is not None:
            error_arrival *= (np.array(assumed.arrivals) / system.arrival_rates)[:, None]
        spread = (classes, machines)
        error_arrival *= 1 + streams.beliefs.uniform(-wrong.arrivals, wrong.arrivals, spread)
    rates = np.array(system.nominal, order="C")
    error_rate = np.divide(central.nominal, rates, out=np.ones_like(rates), where=rates > 0)
    rates_change = changes is not None and len(changes.rates) > 0

    def everyone(array: Floats) -> Floats:
        return np.repeat(array[None], machines, axis=0)

    known = records((machines, machines), MACHINE)
    known["up"], known["serving"] = True, -1
    known["availability"] = central.machines["availability"]
    watched = records((machines, classes), CLASS)
    watched["oldest"] = np.inf
    p = PeerState(
        central=central,
        diary=diary,
        first_arrival=system.arrivals.copy(),
        first_rate=rates,
        arrival=system.arrivals.copy(),
        arrival_sum=np.cumsum(system.arrivals, axis=1),
        nominal_now=rates.copy(),
        speed=np.array(system.mean_availability),
        error_arrival=error_arrival,
        error_rate=error_rate,
        there=np.zeros((classes, machines), np.int64),
        version=np.zeros(machines, np.int64),
        known_version=np.zeros((machines, machines), np.int64),
        heard=np.zeros((machines, machines)),
        machines=known,
        classes=watched,
        arrivals=everyone(system.arrivals * error_arrival),
        nominal=everyone(central.nominal),
        rate=everyone(central.rate),
        expected=everyone(central.expected),
        availability=everyone(central.machines["availability"]),
        assigned=np.zeros((machines, classes, machines), np.int64),
        plan=everyone(central.plan),
        memory=np.zeros((machines, classes, machines)),
        outdated=np.full(machines, assumed is not None),
        group=np.arange(machines) if rates_change else groups_of(central.nominal),
        load=np.zeros(classes),
        arrival_factors=np.array(changes.arrivals if changes else (), dtype=float),
        rate_factors=np.array(changes.rates if changes else (), dtype=float),
        availabilities=np.array(changes.availability if changes else (), dtype=float),
    )
    for q in range(machines):
        situation(p, q)  # fills in the arrival rates that it believes
    return p
