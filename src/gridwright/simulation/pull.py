"""Pull: tasks wait centrally, and an idle machine asks for one.

``ORDERS`` says which idle machine asks first. All functions here are bound into the loop with an
event list (``event_loop``).
"""

from typing import Any

from numpy.random import Generator

from ..compiler.link import hook, rare
from ..policies.view import View
from .central_state import State, shown
from .event_loop import begin, hand_over, insert, interrupt, placed, settle
from .idle_order import fastest_idle, leave, longest_idle, rejoin, relist


def freed(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Let a free machine ask; without a task for it, it becomes idle."""
    k = answer(s, j, arguments, own)
    if k >= 0:
        assign(s, j, k)
    else:
        rejoin(s, j)
        settle(s, j)


@rare
def returned(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """Put the task of a failed machine back at the head of its class."""
    i = take_back(s, j, repeats)
    if i >= 0 and s.count[0].planned == 0:
        placed(s, i, arguments, own)


@rare
def take_back(s: State, j: int, repeats: Generator) -> int:
    """Put the task of a failed machine back, and ask nobody; return its class, −1 for none."""
    if s.server[j].idle:
        leave(s, j)
    if s.server[j].ticket < 0:
        return -1
    i = s.machines[j].serving
    insert(s, interrupt(s, j, repeats))
    return i


def answer(s: State, j: int, arguments: Any, own: Generator) -> int:
    """Ask the policy what a machine should do; an impossible answer is refused and counted."""
    if not may_ask(s, j):
        return -1
    return possible(s, j, decide(j, shown(s, s.count[0].now, own), *arguments))


def may_ask(s: State, j: int) -> bool:
    """Tell whether a task waits that the machine may serve, and count the question."""
    c = s.count[0]
    if (s.ends[s.pattern[j], 0] & c.waiting) == 0:
        return False
    c.asked += 1
    return True


def possible(s: State, j: int, k: int) -> int:
    """Return the class that the policy chose for a machine; −1 if that is impossible."""
    if k < 0:
        return -1
    if k >= len(s.classes) or s.stream[k].head < 0 or s.plan[k, j] <= 0.0 or s.truth[k, j] <= 0.0:
        s.count[0].refusals += 1
        return -1
    return k


def assign(s: State, j: int, i: int) -> None:
    """Give the first task of a class to a machine, which starts it when it has been sent."""
    c, o = s.count[0], s.server[j]
    x = hand_over(s, i, j)
    start = c.now + o.before
    if c.sending > 0.0:
        c.sent = max(c.sent, c.now) + c.sending
        start = c.sent + o.before
    if o.silent and o.timeout > 0.0:
        o.fault = min(c.now + o.timeout * s.ticket[x].expected, o.back)
    begin(s, j, x, c.now, start)


@hook
def decide(machine: int, view: View) -> int:
    """Stand in for the policy."""
    return -1


def ask_first(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let idle machines that may serve the class ask, one after the other."""
    j = -1
    while s.stream[i].head >= 0:
        j = next_idle(s, i, j)
        if j < 0:
            return
        asks(s, j, arguments, own)


@hook
def next_idle(s: State, i: int, asked: int) -> int:
    """Return the idle machine that asks for a class after another one; −1 for none."""
    return -1


@rare
def recall_longest(s: State, room: Any, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns; those that are idle ask, the longest idle first."""
    relist(s, room)
    j = s.count[0].oldest
    while j >= 0 and s.count[0].waiting != 0:
        following = s.server[j].newer
        asks(s, j, arguments, own)
        j = following


@rare
def recall_fastest(s: State, room: Any, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns; let them ask, class by class."""
    relist(s, room)
    for i in range(len(s.stream)):
        placed(s, i, arguments, own)


def ask_every(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let every idle machine ask, in their order."""
    for j in range(len(s.server)):
        if s.server[j].idle and s.count[0].waiting != 0:
            asks(s, j, arguments, own)


def ask_in_turn(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let the head of the queue of machines ask; without a task for it, it goes to the back.

    Every machine has one turn for each event.
    """
    c = s.count[0]
    first = c.order
    while c.oldest >= 0 and c.waiting != 0 and s.server[c.oldest].since < first:
        j = c.oldest
        if not asks(s, j, arguments, own):
            leave(s, j)
            rejoin(s, j)


def ask_head(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Let the head of the queue of machines ask; without a task for it, the others wait behind."""
    c = s.count[0]
    served = True
    while served and c.oldest >= 0 and c.waiting != 0:
        served = asks(s, c.oldest, arguments, own)


def free_to_queue(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Put a free machine behind the other idle ones, and let them ask."""
    rejoin(s, j)
    settle(s, j)
    placed(s, -1, arguments, own)


@rare
def recall_queue(s: State, room: Any, arguments: Any, own: Generator) -> None:
    """List the machines by their new patterns, and let them ask."""
    relist(s, room)
    placed(s, -1, arguments, own)


def asks(s: State, j: int, arguments: Any, own: Generator) -> bool:
    """Let an idle machine ask, and start the task it is given; tell whether there is one."""
    k = answer(s, j, arguments, own)
    if k >= 0:
        leave(s, j)
        assign(s, j, k)
    return k >= 0


FIRST = {"placed": ask_first, "freed": freed, "returned": returned}
QUEUE = {"freed": free_to_queue, "returned": returned, "recalled": recall_queue}

ORDERS: dict[str, dict[str, Any]] = {
    "longest": {**FIRST, "next_idle": longest_idle, "recalled": recall_longest},
    "fastest": {**FIRST, "next_idle": fastest_idle, "recalled": recall_fastest},
    "every": {**QUEUE, "placed": ask_every},
    "rotate": {**QUEUE, "placed": ask_in_turn},
    "blocking": {**QUEUE, "placed": ask_head},
}
"""What the loop does when a task waits, a machine is free or has failed, or there is a new plan."""
