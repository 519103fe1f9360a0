"""A machine's queue: how long a task takes is settled when it begins, at the rate then in force."""

import numpy as np

from ..push import account
from ..state import State
from ..trace import FINISH, START, note
from .state import PeerState

__all__ = ["join", "leave", "settle"]

ALLOCATES_NOTHING = True


def join(p: PeerState, i: int, j: int, now: float, work: float) -> None:
    """Put a task at the end of a queue; where nobody is before it, it begins."""
    s = p.central
    c, m, o = s.count[0], s.machines[j], s.server[j]
    x = c.free
    ticket = s.ticket[x]
    c.free = ticket.next
    ticket.next = -1
    ticket.born = now
    ticket.work = work
    ticket.begun = np.inf
    ticket.due = np.inf
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
        i, end = ticket.task_class, ticket.due
        c.area += account(s, i, j, ticket.born, ticket.begun, end, warmup, horizon)
        if len(s.trace) > 0:
            note(s, ticket.begun, START, ticket.number, i, j)
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
        x = s.server[j].head
        while x >= 0:
            ticket = s.ticket[x]
            i, born = ticket.task_class, ticket.born
            s.count[0].area += account(s, i, j, born, ticket.begun, ticket.due, warmup, horizon)
            x = ticket.next


def _begin(s: State, x: int, j: int, now: float) -> None:
    ticket = s.ticket[x]
    ticket.begun = now
    ticket.due = now + ticket.work / s.truth[ticket.task_class, j]
    s.due[j] = ticket.due
    s.machines[j].serving = ticket.task_class
