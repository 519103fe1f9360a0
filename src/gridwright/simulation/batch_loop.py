"""The loop of a batch system: arrivals, completions, and a mapping event after each.

Tasks wait centrally until a mapping event sends them to the short queues of the machines.

Names as in ``central_state``; also ``v`` the view of the policy, ``w`` a waiting task in it.
"""

from math import floor
from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.checks import readonly
from ..compiler.link import allocates_nothing, hook, slow_to_compile
from ..policies.view import BatchView
from ..statistics.histogram import bin_of
from .batch_state import State
from .event_log import ARRIVE, ASSIGN, DISCARD, FINISH, START, note
from .interrupts import DRAWS, POOL, SLICE, TRACE


@allocates_nothing
@slow_to_compile
def loop(
    s: State,
    v: BatchView,
    arguments: Any,
    until: float,
    warmup: float,
    limit: int,
    discard: int,
    own: Generator,
) -> int:
    """Run until a time, or until something is needed; return the reason (see ``interrupts``).

    The limit is that of a queue, 0 in immediate mode. Discard 0: never, 1: from the batch, 2: also
    from queues.
    """
    c = s.count[0]
    tracing = len(s.trace) > 0
    while True:
        j = 0
        for k in range(1, len(s.server)):
            if s.server[k].finish < s.server[j].finish:
                j = k
        if c.coming == c.known and c.complete == 0:
            return DRAWS
        arrives = s.arrival[c.coming].time if c.coming < c.known else np.inf
        t = min(arrives, s.server[j].finish)
        if t > until or t == np.inf:
            break
        if c.free < 0:
            return POOL
        if tracing and c.traced + events_per_step(s) > len(s.trace):
            return TRACE
        c.area += c.inside * (t - c.now)
        c.now = t
        if arrives < s.server[j].finish:
            arrive(s, t, warmup)
        else:
            complete_task(s, j, t, warmup)
            take_next(s, j, t, warmup, discard)
        if c.coming < c.known and s.arrival[c.coming].time == t:
            continue  # tasks that arrive together are mapped together
        if discard > 0:
            forget_expired(s, t, warmup)
        if c.waiting > 0 and (limit == 0 or has_room(s, limit)):
            c.mapped += 1
            show(s, v, t, limit)
            count = decide(s.waiting[: c.waiting], at_time(v, t, own), *arguments)
            send(s, v.chosen, t, count, limit)
    if until < np.inf:
        c.area += c.inside * (until - c.now)
        c.now = until
    return SLICE


def events_per_step(s: State) -> int:
    """Return how many events one step of the loop may log."""
    return 3 * s.count[0].inside + 8


def has_room(s: State, limit: int) -> bool:
    """Tell whether a machine takes another task."""
    found = False
    for j in range(len(s.server)):
        found = found or s.server[j].queued < limit
    return found


def show(s: State, v: BatchView, t: float, limit: int) -> None:
    """Show the policy what machines hold, and which tasks of each class wait."""
    for j in range(len(s.server)):
        show_machine(s, v, j, t, limit)
    for i in range(len(v.classes)):
        v.classes[i].first = -1
    for k in range(s.count[0].waiting - 1, -1, -1):
        w, ticket = s.waiting[k], s.ticket[s.place[k]]
        w.task_class = ticket.task_class
        w.arrival = ticket.born
        w.deadline = ticket.deadline
        w.machine = -1
        w.following = v.classes[w.task_class].first
        v.classes[w.task_class].first = k


def show_machine(s: State, v: BatchView, j: int, t: float, limit: int) -> None:
    """Show what a machine holds, and when it is expected to finish it."""
    o, m = s.server[j], v.machines[j]
    m.queued = o.queued
    m.free = limit - o.queued if limit > 0 else len(s.waiting)
    m.serving, m.ready = -1, t
    if o.head < 0:
        return
    i = s.ticket[o.head].task_class
    m.serving, m.begun = i, o.begun
    past = floor((t - o.begun) / v.width + GRAIN)
    if past < v.bins[i, j] and v.after[i, j, past] > 0.0:
        m.ready = o.begun + v.after[i, j, past]
    m.ready += o.work
    if limit > 0:
        x = o.head
        for place in range(o.queued):
            v.queue[j, place].task_class = s.ticket[x].task_class
            v.queue[j, place].deadline = s.ticket[x].deadline
            x = s.ticket[x].next


def at_time(v: BatchView, t: float, own: Generator) -> BatchView:
    """Return the view at a time."""
    classes, machines = len(v.classes), len(v.machines)
    return BatchView(
        t,
        v.machines,
        v.classes,
        v.queue,
        readonly(v.mean, classes, machines),
        readonly(v.mass),
        readonly(v.cdf),
        readonly(v.bins, classes, machines),
        readonly(v.after),
        v.width,
        v.chosen,
        v.chance,
        v.done,
        v.given,
        v.room,
        v.best,
        v.order,
        v.memory,
        v.tally,
        own,
    )


def send(s: State, chosen: Any, t: float, count: int, limit: int) -> None:
    """Send tasks where the policy says; refuse and count impossible answers."""
    c = s.count[0]
    waiting, machines = c.waiting, len(s.server)
    for n in range(count if count <= len(chosen) else 0):
        place, j = chosen[n].place, chosen[n].machine
        possible = 0 <= place < waiting and 0 <= j < machines
        x = s.place[place] if possible else -1
        if x >= 0:
            possible = limit == 0 or s.server[j].queued < limit
            possible = possible and s.length[s.ticket[x].task_class, j] > 0
        if x >= 0 and possible:
            s.place[place] = -1  # it does not wait any more
            join(s, x, j, t)
        else:
            c.refusals += 1
    kept = 0
    for k in range(waiting):
        if s.place[k] >= 0:
            s.place[kept] = s.place[k]
            kept += 1
    c.waiting = kept


@hook
def decide(waiting: Any, view: BatchView) -> int:
    """Stand in for the policy."""
    return 0


GRAIN = 1e-9
"""A time may pass a deadline by this part of a bin, which is rounding."""


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
    """Count and remove the task that a machine has finished."""
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
        if len(s.responses) > 0:
            s.responses[ticket.task_class, bin_of(t - ticket.born)] += 1
        q.waited += ticket.sent - ticket.born
        q.queued += o.begun - ticket.sent
        q.late += late
        q.on_time += not late
        c.wasted += t - o.begun if late else 0.0
    if len(s.trace) > 0:
        note(s, t, FINISH, ticket.number, ticket.task_class, j)
    drop_head(s, j)
    release(s, x)
    c.last = t


def take_next(s: State, j: int, t: float, warmup: float, discard: int) -> None:
    """Let an idle machine begin the next task of its queue; discard those that are too late."""
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
    """Free a ticket: its task has left the system."""
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
