"""Push: every machine has a queue of its own.

``loop`` needs no event list, since a departure is known when its task is assigned. It serves
systems whose machines neither fail nor change, under policies that hold nothing back. A machine's
departures are retired when an arrival looks at it.

The functions that follow it make the loop with an event list (``event_loop``) a push system. A task
that the policy holds back waits centrally and is offered again, oldest first, after every event. A
machine that fails gives its tasks back.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import allocates_nothing, hook, rare
from ..policies.view import View
from ..statistics.histogram import bin_of
from .central_state import State, draw_first_arrivals, shown
from .event_log import ARRIVE, ASSIGN, FINISH, START, note
from .event_loop import begin, hand_over, insert, interrupt, lose, settle
from .interrupts import DRAWS, HELD, POOL, SLICE, TRACE
from .sampling import arrives, low, shape_draw


@allocates_nothing
def loop(
    s: State,
    arguments: Any,
    until: float,
    warmup: float,
    horizon: float,
    tasks: Generator,
    own: Generator,
) -> int:
    """Run until a time, or until something is needed; return the reason (see ``interrupts``)."""
    classes, machines = s.rate.shape
    c = s.count[0]
    if c.started == 0:
        if low(s.shapes):
            return DRAWS
        c.started = 1
        draw_first_arrivals(s, tasks)
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
        gap = shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
        q.next = arrives(s.stream, i, s.shapes, s.table, t, gap, tasks)
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
    """Put a task at the end of a machine's queue; return its begin, its end, and its area.

    The area is what it adds to the integral of the number in system. The response is known at
    once, so the task is counted at once.
    """
    m, o = s.machines[k], s.server[k]
    begin = o.free_at if o.free_at > t else t
    end = begin + work / s.truth[i, k]
    o.free_at = end
    x = s.count[0].free
    ticket = s.ticket[x]
    s.count[0].free = ticket.next
    ticket.next = -1
    ticket.leaves = end
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
    """Count a task; return what it adds to the integral of the number in system.

    Its arrival, begin and end are known; only what lies between warm-up and horizon counts.
    """
    q, o = s.stream[i], s.server[k]
    if t >= warmup and end <= horizon:  # as nearly always
        q.responded += 1
        q.response += end - t
        if len(s.responses) > 0:
            s.responses[i, bin_of(end - t)] += 1
        q.queued += begin - t
        q.finished += 1
        o.busy += end - begin
        q.area += end - t
        return end - t
    if end <= warmup:
        return 0.0
    if end <= horizon:
        q.finished += 1
    o.busy += max(min(end, horizon) - max(begin, warmup), 0.0)
    area = min(end, horizon) - max(t, warmup)
    q.area += area
    return area


def retire(s: State, j: int, t: float) -> int:
    """Remove the tasks that have left a machine by now; return how many."""
    m = s.machines[j]
    o = s.server[j]
    x, gone = o.head, 0
    while x >= 0 and s.ticket[x].leaves <= t:
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
        s.due[j] = s.ticket[x].leaves
    return gone


def placed(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Offer the tasks that wait to the policy, oldest first."""
    offer(s, arguments, own)


def freed(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Start the next task of the machine's own queue; offer what waits centrally."""
    continue_queue(s, j)
    if s.count[0].waiting != 0 and s.count[0].pending == 0:
        offer(s, arguments, own)


def continue_queue(s: State, j: int) -> None:
    """Start the next task of the machine's own queue."""
    o = s.server[j]
    if o.head >= 0:
        x = o.head
        o.head = s.ticket[x].next
        s.ticket[x].next = -1
        _begin(s, j, x)
    else:
        settle(s, j)


@rare
def returned(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """Put the tasks of a failed machine back, and offer them again."""
    take_back(s, j, repeats)
    if s.count[0].pending == 0:
        offer(s, arguments, own)


@rare
def take_back(s: State, j: int, repeats: Generator) -> None:
    """Put the tasks of a failed machine back into the central queues, and offer none."""
    o = s.server[j]
    if o.ticket >= 0:
        insert(s, interrupt(s, j, repeats))
    x = o.head
    while x >= 0:
        following = s.ticket[x].next
        if s.ticket[x].leaves > s.ticket[x].sent + o.before:  # it has begun: see ``catch_up``
            lose(s, j, x, repeats)
        insert(s, x)
        x = following
    o.head = -1


@rare
def recalled(s: State, room: Any, arguments: Any, own: Generator) -> None:
    """Offer the tasks that wait: the new plan may permit more."""
    offer(s, arguments, own)


def offer(s: State, arguments: Any, own: Generator) -> None:
    """Offer the oldest task of every class until the policy holds all of them back."""
    left = s.count[0].waiting
    while left != 0:
        i = oldest_of(s, left)
        left = place_or_hold(s, i, decide(i, shown(s, s.count[0].now, own), *arguments), left)


def oldest_of(s: State, left: int) -> int:
    """Return the class whose first task has waited longest, of some classes as bits."""
    i, oldest = -1, np.inf
    for k in range(len(s.classes)):
        if (left >> k) & 1 and s.classes[k].oldest < oldest:
            i, oldest = k, s.classes[k].oldest
    return i


def place_or_hold(s: State, i: int, j: int, left: int) -> int:
    """Send a task where the policy wants it, if possible; return the classes still to offer."""
    c = s.count[0]
    possible = 0 <= j < len(s.machines)
    if possible:
        possible = s.machines[j].up and s.plan[i, j] > 0.0 and s.truth[i, j] > 0.0
    if possible:
        send(s, i, j)
        return left & c.waiting
    c.held += 1
    if j >= 0:
        c.refusals += 1
    return left & ~(1 << i)


def send(s: State, i: int, j: int) -> None:
    """Put the first task of a class into a machine's queue."""
    x = hand_over(s, i, j)
    o = s.server[j]
    s.ticket[x].leaves = s.count[0].now + o.before
    if o.ticket < 0:
        _begin(s, j, x)
    elif o.head < 0:
        o.head = x
        o.tail = x
    else:
        s.ticket[o.tail].next = x
        o.tail = x


def _begin(s: State, j: int, x: int) -> None:
    """Start a task that has arrived at the machine, when the task before it has ended there."""
    start = max(s.count[0].now - s.server[j].lag, s.ticket[x].leaves)
    begin(s, j, x, start, start)


@hook
def decide(task_class: int, view: View) -> int:
    """Stand in for the policy."""
    return -1


HOOKS: dict[str, Any] = {
    "placed": placed,
    "freed": freed,
    "returned": returned,
    "recalled": recalled,
}
"""What the loop with an event list does when a task waits, a machine is free or has failed, or
there is a new plan."""
