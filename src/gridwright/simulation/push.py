"""The push loop without an event list: departures are known when a task is assigned.

Serves systems whose machines neither fail nor change, under policies that hold nothing back.
A machine's departures are retired when an arrival looks at it.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import hook
from ..policies.view import View
from .reason import DRAWS, HELD, POOL, SLICE, TRACE
from .shape import low, shape_draw
from .state import State, shown
from .trace import ARRIVE, ASSIGN, FINISH, START, note

__all__ = ["account", "loop"]

ALLOCATES_NOTHING = True


def loop(
    s: State,
    arguments: Any,
    until: float,
    warmup: float,
    horizon: float,
    tasks: Generator,
    own: Generator,
) -> int:
    """Go on until a time, or until something is needed; return the reason."""
    classes, machines = s.rate.shape
    c = s.count[0]
    if c.started == 0:
        if low(s.shapes):
            return DRAWS
        c.started = 1
        for i in range(classes):
            gap = shape_draw(s.shapes, s.table, s.stream[i].gap_shape, tasks)
            s.stream[i].next = gap * s.stream[i].gap
    tracing = len(s.trace) > 0
    area, inside = 0.0, c.inside
    while True:
        i, t = 0, s.stream[0].next
        for k in range(1, classes):
            if s.stream[k].next < t:
                i, t = k, s.stream[k].next
        if t >= until:
            break
        reason = SLICE
        if c.free < 0:
            reason = POOL
        elif low(s.shapes):
            reason = DRAWS
        elif tracing and c.traced + 8 > len(s.trace):
            reason = TRACE
        if reason != SLICE:
            c.area += area
            c.inside = inside
            return reason
        for j in range(machines):
            if s.due[j] <= t:
                inside -= retire(s, j, t)
        s.classes[i].arrived += 1
        k = decide(i, shown(s, t, own), *arguments)
        if k < 0 or k >= machines or s.plan[i, k] <= 0.0 or s.truth[i, k] <= 0.0:
            return HELD
        q = s.stream[i]
        q.next = t + shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
        work = shape_draw(s.shapes, s.table, q.work_shape, tasks)
        begin, end, more = place(s, i, k, t, work, warmup, horizon)
        area += more
        inside += 1
        if tracing:
            note(s, t, ARRIVE, c.tasks, i, -1)
            note(s, t, ASSIGN, c.tasks, i, k)
            note(s, begin, START, c.tasks, i, k)
            note(s, end, FINISH, c.tasks, i, k)
        c.tasks += 1
    for j in range(machines):
        if s.due[j] <= until:
            inside -= retire(s, j, until)
    c.area += area
    c.inside = inside
    c.now = until
    return SLICE


def place(
    s: State, i: int, k: int, t: float, work: float, warmup: float, horizon: float
) -> tuple[float, float, float]:
    """Put a task at the end of a machine's queue; return its begin, its end, and what it counts.

    Its response is known at once, so it is counted at once.
    """
    m, o = s.machines[k], s.server[k]
    begin = o.last if o.last > t else t
    end = begin + work / s.truth[i, k]
    o.last = end
    x = s.count[0].free
    ticket = s.ticket[x]
    s.count[0].free = ticket.next
    ticket.next = -1
    ticket.due = end
    ticket.expected = s.expected[i, k]
    if m.backlog == 0:
        o.head = x
        s.due[k] = end
    else:
        s.ticket[o.tail].next = x
    o.tail = x
    m.backlog += 1
    m.work += ticket.expected
    m.serving = i if m.backlog == 1 else m.serving
    ticket.task_class = i
    s.assigned[i, k] += 1
    s.stream[i].arrived += t >= warmup
    return begin, end, account(s, i, k, t, begin, end, warmup, horizon)


def account(
    s: State, i: int, k: int, t: float, begin: float, end: float, warmup: float, horizon: float
) -> float:
    """Count a task; return what it adds to the integral of the number in system."""
    q, o = s.stream[i], s.server[k]
    if t >= warmup and end <= horizon:  # as nearly always
        q.responded += 1
        q.response += end - t
        q.queued += begin - t
        q.finished += 1
        o.busy += end - begin
        return end - t
    if end <= warmup:
        return 0.0
    if end <= horizon:
        q.finished += 1
    o.busy += max(min(end, horizon) - max(begin, warmup), 0.0)
    return min(end, horizon) - max(t, warmup)


def retire(s: State, j: int, t: float) -> int:
    """Let the tasks go that have left a machine by now; return how many."""
    m = s.machines[j]
    o = s.server[j]
    x, gone = o.head, 0
    while x >= 0 and s.ticket[x].due <= t:
        ticket = s.ticket[x]
        m.work -= ticket.expected
        following = ticket.next
        ticket.next = s.count[0].free
        s.count[0].free = x
        x = following
        gone += 1
    o.head = x
    m.backlog -= gone
    if x < 0:
        m.work = 0.0
        m.serving = -1
        s.due[j] = np.inf
    else:
        m.serving = s.ticket[x].task_class
        s.due[j] = s.ticket[x].due
    return gone


@hook
def decide(task_class: int, view: View) -> int:
    """Stand in for the policy."""
    return -1
