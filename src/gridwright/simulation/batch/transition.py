"""What can happen to a task of a batch: it arrives, joins a queue, begins, is done or discarded."""

import numpy as np

from ..trace import ARRIVE, ASSIGN, DISCARD, FINISH, START, note
from .state import State

__all__ = [
    "arrive",
    "complete_task",
    "forget_expired",
    "join",
    "take_next",
]

ALLOCATES_NOTHING = True
GRAIN = 1e-9
"""Part of a bin by which a time may pass a deadline through rounding alone."""


def arrive(s: State, t: float, warmup: float) -> None:
    """Let the next task join the batch."""
    c = s.count[0]
    new = s.arrival[c.coming]
    c.coming += 1
    x = c.free
    ticket, q = s.ticket[x], s.stream[new.task_class]
    c.free = ticket.next
    ticket.born = t
    ticket.deadline = t + q.allowance
    ticket.quantile = new.quantile
    ticket.task_class = new.task_class
    ticket.number = c.tasks
    ticket.next = -1
    s.place[c.waiting] = x
    c.waiting += 1
    c.tasks += 1
    c.inside += 1
    q.arrived += t >= warmup
    if len(s.trace) > 0:
        note(s, t, ARRIVE, ticket.number, ticket.task_class, -1)


def complete_task(s: State, j: int, t: float, warmup: float) -> None:
    """Let the task go that a machine has done."""
    c, o = s.count[0], s.server[j]
    x = o.head
    ticket = s.ticket[x]
    q = s.stream[ticket.task_class]
    o.busy += t - o.begun
    o.finish = np.inf
    late = t > ticket.deadline + GRAIN * s.count[0].width
    q.finished += 1
    if ticket.born >= warmup:
        q.responded += 1
        q.response += t - ticket.born
        q.waited += ticket.sent - ticket.born
        q.queueing += o.begun - ticket.sent
        q.late += late
        q.on_time += not late
        c.wasted += t - o.begun if late else 0.0
    if len(s.trace) > 0:
        note(s, t, FINISH, ticket.number, ticket.task_class, j)
    drop_head(s, j)
    release(s, x)
    c.last = t


def take_next(s: State, j: int, t: float, warmup: float, discard: int) -> None:
    """Let an idle machine begin the next task of its queue, without those that are too late."""
    o = s.server[j]
    while o.head >= 0:
        x = o.head
        o.work -= s.mean[s.ticket[x].task_class, j]
        if discard < 2 or s.ticket[x].deadline > t:
            begin(s, j, t)
            break
        drop_head(s, j)
        throw_away(s, x, t, j, warmup)
    if o.queued < 2:
        o.work = 0.0


def begin(s: State, j: int, t: float) -> None:
    """Begin the first task of a machine's queue."""
    o = s.server[j]
    ticket = s.ticket[o.head]
    i = ticket.task_class
    cdf = s.truth[i, j]
    low, high = 0, s.length[i, j] - 1
    while low < high:  # the first bin by which it is over with at least its quantile
        middle = (low + high) // 2
        if cdf[middle] < ticket.quantile:
            low = middle + 1
        else:
            high = middle
    o.begun = t
    o.finish = t + low * s.count[0].width
    if len(s.trace) > 0:
        note(s, t, START, ticket.number, i, j)


def drop_head(s: State, j: int) -> None:
    """Take the first task off a machine's queue."""
    o = s.server[j]
    o.head = s.ticket[o.head].next
    o.queued -= 1
    if o.head < 0:
        o.tail = -1


def release(s: State, x: int) -> None:
    """Give a ticket back: its task has left the system."""
    c = s.count[0]
    s.ticket[x].next = c.free
    c.free = x
    c.inside -= 1


def throw_away(s: State, x: int, t: float, machine: int, warmup: float) -> None:
    """Discard a task."""
    ticket = s.ticket[x]
    if ticket.born >= warmup:
        s.stream[ticket.task_class].discarded += 1
    if len(s.trace) > 0:
        note(s, t, DISCARD, ticket.number, ticket.task_class, machine)
    release(s, x)


def forget_expired(s: State, t: float, warmup: float) -> None:
    """Discard the tasks of the batch whose deadline has passed."""
    c = s.count[0]
    kept = 0
    for k in range(c.waiting):
        x = s.place[k]
        if s.ticket[x].deadline > t:
            s.place[kept] = x
            kept += 1
        else:
            throw_away(s, x, t, -1, warmup)
    c.waiting = kept


def join(s: State, x: int, j: int, t: float) -> None:
    """Put a task at the end of a machine's queue; it begins if the machine is idle."""
    ticket, o = s.ticket[x], s.server[j]
    ticket.sent = t
    ticket.next = -1
    if len(s.trace) > 0:
        note(s, t, ASSIGN, ticket.number, ticket.task_class, j)
    if o.tail >= 0:
        s.ticket[o.tail].next = x
    o.tail = x
    o.queued += 1
    if o.head >= 0:
        o.work += s.mean[ticket.task_class, j]
        return
    o.head = x
    begin(s, j, t)
