"""What makes the loop a pull system: tasks wait centrally, a free machine asks for one."""

from typing import Any

from numpy.random import Generator

from ..compiler.link import hook, rare
from ..policies.view import View
from .calendar import settle
from .event import begin, interrupt, placed
from .idle import leave, rejoin
from .queue import insert, pop
from .state import State, shown
from .trace import ASSIGN, note

__all__ = ["answer", "assign", "freed", "returned"]

ALLOCATES_NOTHING = True


def freed(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Let a free machine ask; with nothing for it, it is idle."""
    k = answer(s, j, arguments, own)
    if k >= 0:
        assign(s, j, k)
    else:
        rejoin(s, j)
        settle(s, j)


@rare
def returned(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """Put the task of a failed machine back at the head of its class."""
    o = s.server[j]
    if o.idle:
        leave(s, j)
    if o.ticket >= 0:
        i = s.machines[j].serving
        insert(s, interrupt(s, j, repeats))
        if s.count[0].planned == 0:
            placed(s, i, arguments, own)


def answer(s: State, j: int, arguments: Any, own: Generator) -> int:
    """Ask the policy what a machine should do; an impossible answer is refused and counted."""
    c = s.count[0]
    if (s.ends[s.pattern[j], 0] & c.waiting) == 0:
        return -1
    c.asked += 1
    k = decide(j, shown(s, s.count[0].now, own), *arguments)
    if k < 0:
        return -1
    if k >= len(s.classes) or s.stream[k].head < 0 or s.plan[k, j] <= 0.0 or s.truth[k, j] <= 0.0:
        c.refusals += 1
        return -1
    return k


def assign(s: State, j: int, i: int) -> None:
    """Give the first task of a class to a machine."""
    x = pop(s, i)
    m, ticket = s.machines[j], s.ticket[x]
    ticket.due = s.count[0].now
    ticket.expected = 1.0 / s.rate[i, j] if s.rate[i, j] > 0.0 else 0.0
    m.backlog = 1
    m.work = ticket.expected
    s.assigned[i, j] += 1
    if len(s.trace) > 0:
        note(s, s.count[0].now, ASSIGN, ticket.number, i, j)
    begin(s, j, x)


@hook
def decide(machine: int, view: View) -> int:
    """Stand in for the policy."""
    return -1
