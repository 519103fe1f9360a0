"""Queues of tasks: linked tickets from one pool, so memory follows what is in the system."""

import numpy as np

from ..compiler.link import rare
from .state import State

__all__ = ["append", "insert", "pop", "release", "take"]

ALLOCATES_NOTHING = True


def take(s: State) -> int:
    """Take a free ticket; the loop has made sure that there is one."""
    x = s.count[0].free
    s.count[0].free = s.ticket[x].next
    s.ticket[x].next = -1
    return x


def release(s: State, x: int) -> None:
    """Give a ticket back."""
    s.ticket[x].next = s.count[0].free
    s.count[0].free = x


def append(s: State, x: int) -> None:
    """Put a task at the end of its class's queue."""
    i = s.ticket[x].task_class
    q = s.stream[i]
    if q.head < 0:
        q.head = x
    else:
        s.ticket[q.tail].next = x
    q.tail = x
    _count_in(s, i)


@rare
def insert(s: State, x: int) -> None:
    """Put a task that comes back where its arrival time belongs in its class's queue."""
    ticket = s.ticket[x]
    q = s.stream[ticket.task_class]
    previous, following = -1, q.head
    while following >= 0 and s.ticket[following].born <= ticket.born:
        previous, following = following, s.ticket[following].next
    ticket.next = following
    if previous < 0:
        q.head = x
    else:
        s.ticket[previous].next = x
    if following < 0:
        q.tail = x
    _count_in(s, ticket.task_class)


def pop(s: State, i: int) -> int:
    """Take the first task of a class out of its queue."""
    q = s.stream[i]
    x = q.head
    q.head = s.ticket[x].next
    s.ticket[x].next = -1
    view = s.classes[i]
    view.waiting -= 1
    if q.head < 0:
        view.oldest = np.inf
        s.count[0].waiting &= ~(1 << i)
    else:
        view.oldest = s.ticket[q.head].born
    return x


def _count_in(s: State, i: int) -> None:
    view = s.classes[i]
    view.waiting += 1
    view.oldest = s.ticket[s.stream[i].head].born
    s.count[0].waiting |= 1 << i
