"""The loop of a decentralised system: every machine decides for the tasks that arrive at it.

The time that a task takes is settled when it begins, at the rate then in force. When rates change,
a task in service continues as it began.

Names as in ``central_state``; also ``p`` state of the peers, ``d`` its diary, ``home`` the machine
that a task arrives at.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import allocates_nothing, hook
from ..policies.view import View
from .central_state import State, draw_first_arrivals
from .event_log import ARRIVE, ASSIGN, FINISH, START, note
from .interrupts import DRAWS, PLAN, POOL, SLICE, TRACE
from .peer_state import PeerState, known, learn, meet, replan
from .push import account
from .sampling import low, shape_draw


@allocates_nothing
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
    tracing = len(s.trace) > 0
    reason = SLICE
    while True:
        i, t = 0, s.stream[0].next
        for k in range(1, classes):
            if s.stream[k].next < t:
                i, t = k, s.stream[k].next
        if tracing and c.traced + events_per_step(s) > len(s.trace):
            reason = TRACE
            break
        if d.change < t and d.change < until:
            alter(p, warmup, horizon, events)
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
        if k < 0 or k >= machines or p.plan[home, i, k] <= 0.0 or s.truth[i, k] <= 0.0:
            c.refusals += 1
            k = _instead(p, home, i)
        q = s.stream[i]
        q.next = t + shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
        work = shape_draw(s.shapes, s.table, q.work_shape, tasks)
        join(p, i, k, t, work)
        q.arrived += t >= warmup
        p.assigned[home, i, k] += 1
        d.home = -1
        if tracing:
            note(s, t, ARRIVE, c.tasks, i, home)
            note(s, t, ASSIGN, c.tasks, i, k)
        c.tasks += 1
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
    return 2 * s.count[0].inside + 8


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
    """Return where a task goes after an impossible answer: home, if it can run there."""
    if p.central.truth[i, home] > 0.0:
        return home
    best = -1
    for j in range(p.arrival.shape[1]):
        if p.central.truth[i, j] > 0.0 and best < 0:
            best = j
    return best


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


def join(p: PeerState, i: int, j: int, now: float, work: float) -> None:
    """Put a task at the end of a queue; it begins if the queue is empty."""
    s = p.central
    c, m, o = s.count[0], s.machines[j], s.server[j]
    x = c.free
    ticket = s.ticket[x]
    c.free = ticket.next
    ticket.next = -1
    ticket.born = now
    ticket.work = work
    ticket.leaves = np.inf
    ticket.task_class = i
    ticket.number = c.tasks
    if m.backlog == 0:
        o.head = x
        _begin(s, x, j, now)
    else:
        s.ticket[o.tail].next = x
    o.tail = x
    m.backlog += 1
    m.work += s.expected[i, j]
    p.there[i, j] += 1
    s.assigned[i, j] += 1
    c.inside += 1


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


def _begin(s: State, x: int, j: int, now: float) -> None:
    ticket = s.ticket[x]
    s.server[j].begun = now
    ticket.leaves = now + ticket.work / s.truth[ticket.task_class, j]
    s.due[j] = ticket.leaves
    s.machines[j].serving = ticket.task_class
