"""The loop of a decentralised system: every machine decides for the tasks that arrive at it.

The time that a task takes is settled when it begins, at the rate then in force. When rates change,
a task in service continues as it began; when the availability of its machine changes as a chain, it
keeps the work that it has left. A machine that is down answers nobody and keeps its queue; tasks
that arrive at it wait until it is repaired.

Names as in ``central_state``; also ``p`` state of the peers, ``d`` its diary, ``home`` the machine
that a task arrives at.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import allocates_nothing, hook, rare, slow_to_compile
from ..policies.view import View
from .availability import move_on, start_chains
from .central_state import State, draw_first_arrivals
from .event_log import ARRIVE, ASSIGN, FAIL, FINISH, LOSE, REPAIR, SHIFT, START, note
from .interrupts import DRAWS, PLAN, POOL, SLICE, TRACE
from .peer_state import PeerState, known, learn, meet, replan
from .push import account
from .sampling import low, shape_draw


@allocates_nothing
@slow_to_compile
def loop(
    p: PeerState,
    arguments: Any,
    until: float,
    warmup: float,
    horizon: float,
    make_plan: Any,
    planning: Any,
    tasks: Generator,
    events: Generator,
    homes: Generator,
    own: Generator,
) -> int:
    """Run until a time, or until something is needed; return the reason (see ``interrupts``)."""
    s = p.central
    c, d = s.count[0], p.diary[0]
    classes, machines = s.rate.shape
    if c.started == 0:
        if low(s.shapes):
            return DRAWS
        c.started = 1
        draw_first_arrivals(s, tasks)
        d.change = events.standard_exponential() * d.interval
        _start_machines(p, events)
    tracing = len(s.trace) > 0
    reason = SLICE
    while True:
        i, t = 0, s.stream[0].next
        for k in range(1, classes):
            if s.stream[k].next < t:
                i, t = k, s.stream[k].next
        x = -1
        if d.resumed >= 0:
            x = p.held[d.resumed, 0]
            if x < 0:
                d.resumed = -1
                continue
            i, t, d.home = s.ticket[x].task_class, d.resumed_at, d.resumed
        if tracing and c.traced + events_per_step(s) > len(s.trace):
            reason = TRACE
            break
        if x < 0 and d.change < t and d.change < until and d.change <= d.event:
            alter(p, warmup, horizon, events)
            continue
        if x < 0 and d.event < t and d.event < until:
            if low(s.shapes):
                reason = DRAWS
                break
            happen(p, warmup, horizon, events)
            continue
        if t >= until:
            break
        if c.free < 0:
            reason = POOL
        elif low(s.shapes):
            reason = DRAWS
        else:
            if d.home < 0:
                d.home = _home(p, i, homes)
            if not s.machines[d.home].up:
                _hold(p, i, t, warmup, tasks)
                continue
            if p.outdated[d.home] and c.planned > 0:
                reason = SLICE if replan(p, d.home, make_plan, planning) else PLAN
        if reason != SLICE:
            break
        home = d.home
        for j in range(machines):
            if s.due[j] <= t:
                leave(p, j, t, warmup, horizon)
        meet(p, home, i, t)
        p.classes[home, i].arrived += 1
        k = decide(i, home, known(p, home, t, own), *arguments)
        possible = 0 <= k < machines
        if possible:
            possible = p.plan[home, i, k] > 0.0 and s.truth[i, k] > 0.0 and p.machines[home, k].up
        if not possible:
            c.refusals += k >= 0  # −1: none of those that it knows to be up
            k = _instead(p, home, i)
        if x < 0:
            x = _admit(p, i, t, warmup, tasks)
        else:
            p.held[home, 0] = s.ticket[x].next
            s.ticket[x].next = -1
        join(p, x, k, t)
        p.assigned[home, i, k] += 1
        d.home = -1
        if tracing:
            note(s, t, ASSIGN, s.ticket[x].number, i, k)
    if reason == SLICE:
        for j in range(machines):
            if s.due[j] <= until:
                leave(p, j, until, warmup, horizon)
        c.now = until
        if until >= horizon:
            settle(p, warmup, horizon)
    return reason


def events_per_step(s: State) -> int:
    """Return how many events one step of the loop may log."""
    return 2 * s.count[0].inside + 12


def _home(p: PeerState, i: int, homes: Generator) -> int:
    """Draw the machine that a task of a class arrives at."""
    low, high = 0, p.arrival.shape[1] - 1
    u = homes.random() * p.arrival_sum[i, high]
    while low < high:
        middle = (low + high) // 2
        if u < p.arrival_sum[i, middle]:
            high = middle
        else:
            low = middle + 1
    return low


def _instead(p: PeerState, home: int, i: int) -> int:
    """Return where a task goes that the policy sends nowhere: home, if it can run there.

    Otherwise it goes to the first machine that can run it and is not known to be down.
    """
    if p.central.truth[i, home] > 0.0:
        return home
    best, up = -1, False
    for j in range(p.arrival.shape[1]):
        better = best < 0 or (p.machines[home, j].up and not up)
        if p.central.truth[i, j] > 0.0 and better:
            best, up = j, p.machines[home, j].up
    return best


def _admit(p: PeerState, i: int, now: float, warmup: float, tasks: Generator) -> int:
    """Let a task arrive; return its ticket, and draw when the next one arrives."""
    s = p.central
    c, q = s.count[0], s.stream[i]
    q.next = now + shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
    x = c.free
    ticket = s.ticket[x]
    c.free = ticket.next
    ticket.next = -1
    ticket.born = now
    ticket.work = shape_draw(s.shapes, s.table, q.work_shape, tasks)
    ticket.leaves = np.inf
    ticket.task_class = i
    ticket.number = c.tasks
    q.arrived += now >= warmup
    if len(s.trace) > 0:
        note(s, now, ARRIVE, c.tasks, i, p.diary[0].home)
    c.tasks += 1
    c.inside += 1
    return x


def _hold(p: PeerState, i: int, now: float, warmup: float, tasks: Generator) -> None:
    """Let a task wait at the machine where it arrived, which is down."""
    home = p.diary[0].home
    x = _admit(p, i, now, warmup, tasks)
    if p.held[home, 0] < 0:
        p.held[home, 0] = x
    else:
        p.central.ticket[p.held[home, 1]].next = x
    p.held[home, 1] = x
    p.diary[0].home = -1


@hook
def decide(task_class: int, home: int, view: View) -> int:
    """Stand in for the policy."""
    return -1


def alter(p: PeerState, warmup: float, horizon: float, events: Generator) -> None:
    """Change rates as the system says, and draw when they change next."""
    d = p.diary[0]
    now = d.change
    d.change = now + events.standard_exponential() * d.interval
    d.changes += 1
    for j in range(len(p.version)):
        if p.central.due[j] <= now:
            leave(p, j, now, warmup, horizon)
    classes, machines = p.arrival.shape
    arrivals, rates = len(p.arrival_factors), len(p.rate_factors)
    if arrivals + rates > 0:
        kinds = int(arrivals > 0) + int(rates > 0)
        n = int(events.random() * kinds * classes * machines)
        i, j = n // kinds // machines, n // kinds % machines
        if arrivals > 0 and n % kinds == 0:
            _change_arrival(p, i, j, now, events)
        else:
            _change_rate(p, i, j, events)
        _tell(p, j)
    if len(p.availabilities) > 0:
        for j in range(machines):
            p.speed[j] = p.availabilities[int(events.random() * len(p.availabilities))]
            _tell(p, j)


def _change_arrival(p: PeerState, i: int, j: int, now: float, events: Generator) -> None:
    q = p.central.stream[i]
    factor = p.arrival_factors[int(events.random() * len(p.arrival_factors))]
    p.arrival[i, j] = p.first_arrival[i, j] * factor
    if p.diary[0].redraw:
        p.error_arrival[i, j] = 1.0 + p.diary[0].doubt_arrivals * (2.0 * events.random() - 1.0)
    total = 0.0
    for k in range(p.arrival.shape[1]):
        total += p.arrival[i, k]
        p.arrival_sum[i, k] = total
    # the same arrivals as before, on a clock that goes faster or slower
    q.next = now + (q.next - now) / (q.gap * total)
    q.gap = 1.0 / total


def _change_rate(p: PeerState, i: int, j: int, events: Generator) -> None:
    factor = p.rate_factors[int(events.random() * len(p.rate_factors))]
    p.nominal_now[i, j] = p.first_rate[i, j] * factor
    if p.diary[0].redraw:
        p.error_rate[i, j] = 1.0 + p.diary[0].doubt_rates * (2.0 * events.random() - 1.0)


@rare
def _start_machines(p: PeerState, events: Generator) -> None:
    """Draw when machines fail and change; a machine knows how fast it is."""
    s = p.central
    start_chains(s, events)
    for j in range(len(p.version)):
        o = s.server[j]
        if o.mean_uptime < np.inf:
            o.fault = shape_draw(s.shapes, s.table, o.uptime, events) * o.mean_uptime
        if o.chain >= 0:
            p.speed[j] = o.speed
            _tell(p, j)
    _look_ahead(p)


@rare
def _look_ahead(p: PeerState) -> None:
    """Find out when something happens to a machine next."""
    at = np.inf
    for j in range(len(p.version)):
        at = min(at, p.central.server[j].fault, p.central.server[j].change)
    p.diary[0].event = at


@rare
def happen(p: PeerState, warmup: float, horizon: float, events: Generator) -> None:
    """Let the first machine that is due fail, be repaired, or change its availability."""
    s, now = p.central, p.diary[0].event
    j = 0
    while min(s.server[j].fault, s.server[j].change) > now:
        j += 1
    o = s.server[j]
    if s.due[j] <= now:
        leave(p, j, now, warmup, horizon)
    if o.change <= now:
        _shift(p, j, now)
    elif s.machines[j].up:
        _fail(p, j, now, warmup, horizon, events)
    else:
        _repair(p, j, now, events)
    _look_ahead(p)


@rare
def _shift(p: PeerState, j: int, now: float) -> None:
    """Change a machine's availability; a running task keeps the work that it has left."""
    s = p.central
    o = s.server[j]
    before = o.speed
    move_on(s, j)
    p.speed[j] = o.speed
    if s.due[j] < np.inf:
        s.due[j] = now + (s.due[j] - now) * before / o.speed
        s.ticket[o.head].leaves = s.due[j]
    _tell(p, j)
    if len(s.trace) > 0:
        note(s, now, SHIFT, -1, -1, j)


@rare
def _fail(
    p: PeerState, j: int, now: float, warmup: float, horizon: float, events: Generator
) -> None:
    """Let a machine fail: it keeps its queue, and its task has to start again."""
    s = p.central
    o, m = s.server[j], s.machines[j]
    o.fault = now + shape_draw(s.shapes, s.table, o.repair, events) * o.mean_repair
    m.up = False
    p.version[j] += 1
    if len(s.trace) > 0:
        note(s, now, FAIL, -1, -1, j)
    if o.head >= 0:
        ticket = s.ticket[o.head]
        q = s.stream[ticket.task_class]
        o.busy += max(min(now, horizon) - max(o.begun, warmup), 0.0)
        if len(s.trace) > 0:
            note(s, o.begun, START, ticket.number, ticket.task_class, j)
            note(s, now, LOSE, ticket.number, ticket.task_class, j)
        if s.count[0].same_work == 0:
            ticket.work = shape_draw(s.shapes, s.table, q.work_shape, events)
        ticket.leaves = np.inf
        q.lost += 1
    o.begun = np.inf
    s.due[j] = np.inf
    m.serving = -1


@rare
def _repair(p: PeerState, j: int, now: float, events: Generator) -> None:
    """Bring a machine back: it tells all others, and decides about the tasks that wait there."""
    s, d = p.central, p.diary[0]
    o = s.server[j]
    o.fault = now + shape_draw(s.shapes, s.table, o.uptime, events) * o.mean_uptime
    s.machines[j].up = True
    p.version[j] += 1
    learn(p, j, j)
    for q in range(len(p.version)):
        if q != j:
            d.met += 1
            learn(p, q, j)
            p.heard[q, j] = now
    if o.head >= 0:
        _begin(s, o.head, j, now)
    d.resumed, d.resumed_at = j, now
    if len(s.trace) > 0:
        note(s, now, REPAIR, -1, -1, j)


def _tell(p: PeerState, j: int) -> None:
    """Let a machine know its own rates, which change the expected work of the tasks there."""
    s = p.central
    p.version[j] += 1
    learn(p, j, j)
    work = 0.0
    for i in range(len(p.load)):
        s.truth[i, j] = p.nominal_now[i, j] * p.speed[j]
        s.expected[i, j] = p.expected[j, i, j]
        if p.there[i, j] > 0:
            work += p.there[i, j] * s.expected[i, j]
    s.machines[j].work = work


def join(p: PeerState, x: int, j: int, now: float) -> None:
    """Put a task at the end of a queue; it begins if the queue is empty and the machine is up."""
    s = p.central
    m, o, i = s.machines[j], s.server[j], s.ticket[x].task_class
    if m.backlog == 0:
        o.head = x
        if m.up:
            _begin(s, x, j, now)
    else:
        s.ticket[o.tail].next = x
    o.tail = x
    m.backlog += 1
    m.work += s.expected[i, j]
    p.there[i, j] += 1
    s.assigned[i, j] += 1


def leave(p: PeerState, j: int, now: float, warmup: float, horizon: float) -> None:
    """Count the tasks that have left a machine by now, and let those behind them begin."""
    s = p.central
    c, m, o = s.count[0], s.machines[j], s.server[j]
    while s.due[j] <= now:
        x = o.head
        ticket = s.ticket[x]
        i, end = ticket.task_class, ticket.leaves
        c.area += account(s, i, j, ticket.born, o.begun, end, warmup, horizon)
        if len(s.trace) > 0:
            note(s, o.begun, START, ticket.number, i, j)
            note(s, end, FINISH, ticket.number, i, j)
        m.work -= s.expected[i, j]
        m.backlog -= 1
        p.there[i, j] -= 1
        c.inside -= 1
        o.head = ticket.next
        ticket.next = c.free
        c.free = x
        if o.head >= 0:
            _begin(s, o.head, j, end)
        else:
            m.work = 0.0
            m.serving = -1
            s.due[j] = np.inf


def settle(p: PeerState, warmup: float, horizon: float) -> None:
    """Count the tasks that are still there at the end."""
    s = p.central
    for j in range(len(p.version)):
        x, begun = s.server[j].head, s.server[j].begun
        while x >= 0:
            ticket = s.ticket[x]
            i, born = ticket.task_class, ticket.born
            s.count[0].area += account(s, i, j, born, begun, ticket.leaves, warmup, horizon)
            x, begun = ticket.next, np.inf
        x = p.held[j, 0]
        while x >= 0:
            i, born = s.ticket[x].task_class, s.ticket[x].born
            s.count[0].area += account(s, i, j, born, np.inf, np.inf, warmup, horizon)
            x = s.ticket[x].next


def _begin(s: State, x: int, j: int, now: float) -> None:
    ticket = s.ticket[x]
    s.server[j].begun = now
    ticket.leaves = now + ticket.work / s.truth[ticket.task_class, j]
    s.due[j] = ticket.leaves
    s.machines[j].serving = ticket.task_class
