"""What makes the loop a push system: every machine has a queue of its own.

A task that the policy holds back waits centrally and is offered again, oldest first, whenever
something happens. A machine that fails gives its tasks back.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import hook, rare
from ..policies.view import View
from .calendar import settle
from .event import begin, interrupt
from .queue import insert, pop
from .state import State, shown
from .trace import ASSIGN, note

__all__ = ["freed", "placed", "recalled", "returned"]

ALLOCATES_NOTHING = True


def placed(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Offer the tasks that wait to the policy, oldest first."""
    offer(s, arguments, own)


def freed(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Start the next task of the machine's own queue; offer what waits centrally."""
    o = s.server[j]
    if o.head >= 0:
        x = o.head
        o.head = s.ticket[x].next
        s.ticket[x].next = -1
        begin(s, j, x)
    else:
        settle(s, j)
    if s.count[0].waiting != 0 and s.count[0].pending == 0:
        offer(s, arguments, own)


@rare
def returned(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """Put the tasks of a failed machine back into the central queues."""
    o, m = s.server[j], s.machines[j]
    if o.ticket >= 0:
        insert(s, interrupt(s, j, repeats))
    x = o.head
    while x >= 0:
        following = s.ticket[x].next
        insert(s, x)
        x = following
    o.head = -1
    m.backlog = 0
    m.work = 0.0
    if s.count[0].pending == 0:
        offer(s, arguments, own)


@rare
def recalled(s: State, arguments: Any, own: Generator) -> None:
    """Offer what waits: the plan may permit more now."""
    offer(s, arguments, own)


def offer(s: State, arguments: Any, own: Generator) -> None:
    """Offer the oldest task of every class until the policy holds all of them back."""
    c = s.count[0]
    left = c.waiting
    while left != 0:
        i, oldest = -1, np.inf
        for k in range(len(s.classes)):
            if (left >> k) & 1 and s.classes[k].oldest < oldest:
                i, oldest = k, s.classes[k].oldest
        j = decide(i, shown(s, s.count[0].now, own), *arguments)
        possible = 0 <= j < len(s.machines)
        if possible:
            possible = s.machines[j].up and s.plan[i, j] > 0.0 and s.truth[i, j] > 0.0
        if possible:
            send(s, i, j)
            left &= c.waiting
        else:
            left &= ~(1 << i)
            c.held += 1
            if j >= 0:
                c.refusals += 1


def send(s: State, i: int, j: int) -> None:
    """Put the first task of a class into a machine's queue."""
    x = pop(s, i)
    o, m, ticket = s.server[j], s.machines[j], s.ticket[x]
    ticket.due = s.count[0].now
    ticket.expected = 1.0 / s.rate[i, j] if s.rate[i, j] > 0.0 else 0.0
    m.backlog += 1
    m.work += ticket.expected
    s.assigned[i, j] += 1
    if len(s.trace) > 0:
        note(s, s.count[0].now, ASSIGN, ticket.number, i, j)
    if o.ticket < 0:
        begin(s, j, x)
    elif o.head < 0:
        o.head = x
        o.tail = x
    else:
        s.ticket[o.tail].next = x
        o.tail = x


@hook
def decide(task_class: int, view: View) -> int:
    """Stand in for the policy."""
    return -1
