"""Stop the loop with an event list at every decision, so that a caller decides.

In place of asking a policy, the functions here write down who has to be asked. The loop then stops
at each question, and goes on with the answer. Everything else is as in ``pull`` and ``push``. There
are no planners here.
"""

from typing import Any

from numpy.random import Generator

from ..compiler.link import rare
from ..policies.view import record_type
from .central_state import State
from .event_loop import settle
from .idle_order import fastest_idle, leave, longest_idle, rejoin, relist
from .pull import assign, may_ask, next_idle, possible
from .pull import take_back as take_back_pulled
from .push import continue_queue, oldest_of, place_or_hold
from .push import take_back as take_back_pushed

NOTHING, FREED, PLACED = range(3)
WALK = record_type(
    reason="i8",  # why there are questions: none, a machine is free, a task waits
    is_open="i8",  # whether a question waits for its answer
    machine="i8",  # pull: the machine that asks, or has asked
    task_class="i8",  # pull: whose task waits; push: the class that is offered
    left="i8",  # push: the classes that are still to be offered, as bits
    answer="i8",  # pull: a class; push: a machine; −1 for none
)
"""How far the questions after an event have come."""


def pull_asked(s: State, walk: Any) -> bool:
    """Use the answer to the last question; tell whether there is another one."""
    w = walk[0]
    if w.is_open:
        w.is_open = 0
        _take_task(s, w, possible(s, w.machine, w.answer))
    while w.reason != NOTHING:
        if w.reason == PLACED:
            j = -1
            if s.stream[w.task_class].head >= 0:
                j = next_idle(s, w.task_class, w.machine)
            w.machine = j
            if j < 0:
                w.reason = NOTHING
                return False
        if may_ask(s, w.machine):
            w.is_open = 1
            return True
        _take_task(s, w, -1)
    return False


def _take_task(s: State, w: Any, i: int) -> None:
    """Give the machine that asks a task of a class, or none."""
    j = w.machine
    if i >= 0:
        if w.reason == PLACED:
            leave(s, j)
        assign(s, j, i)
    elif w.reason == FREED:
        rejoin(s, j)
        settle(s, j)
    if w.reason == FREED:
        w.reason = NOTHING


def pull_placed(s: State, i: int, walk: Any, own: Generator) -> None:
    """Let idle machines that may serve the class ask, one after the other."""
    w = walk[0]
    w.reason, w.task_class, w.machine = PLACED, i, -1


def pull_freed(s: State, j: int, walk: Any, own: Generator) -> None:
    """Let a free machine ask; without a task for it, it becomes idle."""
    w = walk[0]
    w.reason, w.machine = FREED, j


@rare
def pull_returned(s: State, j: int, repeats: Generator, walk: Any, own: Generator) -> None:
    """Put the task of a failed machine back at the head of its class."""
    i = take_back_pulled(s, j, repeats)
    if i >= 0:
        pull_placed(s, i, walk, own)


@rare
def pull_recalled(s: State, room: Any, walk: Any, own: Generator) -> None:
    """List the machines by their patterns; nothing waits yet at the start."""
    relist(s, room)


def push_asked(s: State, walk: Any) -> bool:
    """Use the answer to the last question; tell whether there is another one."""
    w = walk[0]
    if w.is_open:
        w.is_open = 0
        w.left = place_or_hold(s, w.task_class, w.answer, w.left)
    if w.left == 0:
        return False
    w.task_class = oldest_of(s, w.left)
    w.is_open = 1
    return True


def push_placed(s: State, i: int, walk: Any, own: Generator) -> None:
    """Offer the tasks that wait, oldest first."""
    walk[0].left = s.count[0].waiting


def push_freed(s: State, j: int, walk: Any, own: Generator) -> None:
    """Start the next task of the machine's own queue; offer what waits centrally."""
    continue_queue(s, j)
    walk[0].left = s.count[0].waiting


@rare
def push_returned(s: State, j: int, repeats: Generator, walk: Any, own: Generator) -> None:
    """Put the tasks of a failed machine back, and offer them again."""
    take_back_pushed(s, j, repeats)
    walk[0].left = s.count[0].waiting


@rare
def push_recalled(s: State, room: Any, walk: Any, own: Generator) -> None:
    """Do nothing: nothing waits yet at the start."""


PULL_HOOKS = {
    "asked": pull_asked,
    "placed": pull_placed,
    "freed": pull_freed,
    "returned": pull_returned,
    "recalled": pull_recalled,
}
PUSH_HOOKS = {
    "asked": push_asked,
    "placed": push_placed,
    "freed": push_freed,
    "returned": push_returned,
    "recalled": push_recalled,
}
IDLE = {"longest": longest_idle, "fastest": fastest_idle}
"""Which idle machine asks first, as in ``pull.ORDERS``."""
