"""Which idle machine of a pull system is asked first when a task waits."""

from typing import Any

from numpy.random import Generator

from . import pull
from .calendar import settle
from .idle import fastest_idle, leave, longest_idle, rejoin, relist
from .pull import answer, assign
from .state import State

__all__ = ["ORDERS"]

ALLOCATES_NOTHING = True


def ask_longest(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let idle machines that may serve the class ask, the longest idle first."""
    j = -1
    while s.stream[i].head >= 0:
        j = longest_idle(s, i, j)
        if j < 0:
            return
        asks(s, j, arguments, own)


def recall_longest(s: State, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns; those that are idle ask, the longest idle first."""
    relist(s)
    j = s.count[0].oldest
    while j >= 0 and s.count[0].waiting != 0:
        following = s.server[j].newer
        asks(s, j, arguments, own)
        j = following


def ask_fastest(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let idle machines that may serve the class ask, the fastest for it first."""
    j = -1
    while s.stream[i].head >= 0:
        j = fastest_idle(s, i, j)
        if j < 0:
            return
        asks(s, j, arguments, own)


def recall_fastest(s: State, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns; let them ask, class by class."""
    relist(s)
    for i in range(len(s.stream)):
        ask_fastest(s, i, arguments, own)


def ask_every(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let every idle machine ask, in their order."""
    for j in range(len(s.server)):
        if s.server[j].idle and s.count[0].waiting != 0:
            asks(s, j, arguments, own)


def free_every(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Let a free machine and every idle one ask."""
    rejoin(s, j)
    settle(s, j)
    ask_every(s, -1, arguments, own)


def recall_every(s: State, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns; every idle one asks."""
    relist(s)
    ask_every(s, -1, arguments, own)


def ask_in_turn(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let the head of the queue of machines ask; if there is nothing for it, it goes to the back.

    Every machine has one turn an event.
    """
    c = s.count[0]
    first = c.order
    while c.oldest >= 0 and c.waiting != 0 and s.server[c.oldest].since < first:
        j = c.oldest
        if not asks(s, j, arguments, own):
            leave(s, j)
            rejoin(s, j)


def free_in_turn(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Put a free machine at the back of the queue; the others ask before it."""
    rejoin(s, j)
    settle(s, j)
    ask_in_turn(s, -1, arguments, own)


def recall_in_turn(s: State, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns, and let them ask."""
    relist(s)
    ask_in_turn(s, -1, arguments, own)


def ask_head(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let the head of the queue of machines ask; with nothing for it, the others wait behind it."""
    c = s.count[0]
    served = True
    while served and c.oldest >= 0 and c.waiting != 0:
        served = asks(s, c.oldest, arguments, own)


def free_behind(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Put a free machine at the back of the queue, behind a head that may block it."""
    rejoin(s, j)
    settle(s, j)
    ask_head(s, -1, arguments, own)


def recall_head(s: State, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns, and let the head ask."""
    relist(s)
    ask_head(s, -1, arguments, own)


def asks(s: State, j: int, arguments: Any, own: Generator) -> bool:
    """Let an idle machine ask, and start what it is given; tell whether there is something."""
    k = answer(s, j, arguments, own)
    if k >= 0:
        leave(s, j)
        assign(s, j, k)
    return k >= 0


ORDERS = {
    "longest": {"placed": ask_longest, "freed": pull.freed, "recalled": recall_longest},
    "fastest": {"placed": ask_fastest, "freed": pull.freed, "recalled": recall_fastest},
    "every": {"placed": ask_every, "freed": free_every, "recalled": recall_every},
    "rotate": {"placed": ask_in_turn, "freed": free_in_turn, "recalled": recall_in_turn},
    "blocking": {"placed": ask_head, "freed": free_behind, "recalled": recall_head},
}
"""What the loop does when a task waits, a machine is free, or there is a new plan."""
