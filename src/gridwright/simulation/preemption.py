"""Pull with preemption: at every event the tasks are dealt out anew among all machines.

All running tasks count as waiting, and every machine is asked as though it were free. Of each
class, the tasks that arrived first run. A machine that had one of these keeps it. A task that is
interrupted keeps the work that it has left, and takes it to whatever machine continues it. All
functions here are bound into the loop with an event list (``event_loop``).
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import rare
from .central_state import State
from .event_log import ASSIGN, INTERRUPT, note
from .event_loop import begin, insert, interrupt, pop, settle
from .idle_order import relist
from .interrupts import MAKE_PLAN
from .pull import answer

MANY = 128
"""Machines for which it pays to sort them: of 50 it costs a tenth of the speed, of 500 it saves a
fifth. Results are the same."""


def placed(s: State, i: int, arguments: Any, own: Generator) -> None:
    """Deal out the tasks anew, because one has arrived; note its work, of which less is left."""
    ticket = s.ticket[s.stream[i].tail]
    ticket.expected = ticket.work
    deal(s, arguments, own)


def freed(s: State, j: int, arguments: Any, own: Generator) -> None:
    """Deal out the tasks anew, because a machine has nothing to do."""
    settle(s, j)
    deal(s, arguments, own)


@rare
def returned(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """Put the task of a failed machine back, to begin anew, and deal out all tasks."""
    if s.server[j].ticket >= 0:
        x = interrupt(s, j, repeats)
        if s.count[0].same_work != 0:
            s.ticket[x].work = s.ticket[x].expected
        insert(s, x)
    deal(s, arguments, own)


@rare
def recalled(s: State, room: Any, arguments: Any, own: Generator) -> None:
    """Deal out the tasks anew, because there is a new plan."""
    relist(s, room)
    deal(s, arguments, own)


@rare
def deal(s: State, arguments: Any, own: Generator) -> None:
    """Ask for every machine what it shall do now, and interrupt the tasks that must give way.

    The machine that can do most for a waiting class is asked first: by cost × rate. Of equals,
    those that have a task of that class are first; then they are asked in their order.
    """
    if s.count[0].pending == MAKE_PLAN:
        return  # the tasks are dealt out when the plan is there
    many = len(s.server) >= MANY
    if many:
        _order(s)
    for k in range(len(s.server)):
        _lay_down(s, s.server[k].turn if many else k)
    for j in range(len(s.server)):
        _rank(s, j)
    most = _most(s)
    while most >= 0.0:
        for turn in range(2):
            for j in range(len(s.server)):
                o = s.server[j]
                if o.best == most and (_has(s, j) or turn == 1) and _is_wanted(s, j):
                    o.best = -1.0
                    k = answer(s, j, arguments, own)
                    if k >= 0:
                        _promise(s, j, k)
        most = _most(s)
    for j in range(len(s.server)):
        _keep(s, j)
    for j in range(len(s.server)):
        _give_up(s, j)
    for j in range(len(s.server)):
        _take_up(s, j)


def _order(s: State) -> None:
    """Sort the machines by the arrivals of their tasks, the last one first.

    Laid down in this order, each task is the first of its queue, unless an older one waits. The
    order of the last event is nearly right, so few machines change places.
    """
    for k in range(1, len(s.server)):
        j = s.server[k].turn
        place = k
        while place > 0 and _is_before(s, j, s.server[place - 1].turn):
            s.server[place].turn = s.server[place - 1].turn
            place -= 1
        s.server[place].turn = j


def _is_before(s: State, j: int, other: int) -> bool:
    """Tell whether the task of a machine arrived after that of another; of equals, the lower one.

    A machine without a task comes last.
    """
    mine, its = s.server[j].ticket, s.server[other].ticket
    if mine < 0 or its < 0:
        return its < 0 and (mine >= 0 or j < other)
    born, before = s.ticket[mine].born, s.ticket[its].born
    return born > before or (born == before and j < other)


def _lay_down(s: State, j: int) -> None:
    """Put a machine's task back into its queue with the work that it has left.

    The machine runs on until it is given another task.
    """
    o, m = s.server[j], s.machines[j]
    o.promised = -1
    if o.ticket >= 0:
        rate = s.truth[m.serving, j] * o.speed
        s.ticket[o.ticket].work = max(o.left - (s.count[0].now - o.left_at) * rate, 0.0)
        insert(s, o.ticket)
        m.serving = -1
        m.backlog = 0
        m.work = 0.0


def _rank(s: State, j: int) -> None:
    """Find the waiting class for which a machine can do most, and how much; −1 for none."""
    o, m = s.server[j], s.machines[j]
    o.best = -1.0
    left = s.ends[s.pattern[j], 0] & s.count[0].waiting if m.up else 0
    if left != 0:
        for i in range(len(s.classes)):
            index = s.classes[i].cost * s.rate[i, j]
            if (left >> i) & 1 and index > o.best:
                o.best = index
                o.best_class = i


def _most(s: State) -> float:
    """Return the most that a machine can do which has not been asked yet; −1 for none."""
    most = -1.0
    for j in range(len(s.server)):
        o = s.server[j]
        if o.best >= 0.0:
            if not _is_wanted(s, j):
                _rank(s, j)
            most = max(most, o.best)
    return most


def _is_wanted(s: State, j: int) -> bool:
    """Tell whether the class for which a machine can do most still waits."""
    return ((s.count[0].waiting >> s.server[j].best_class) & 1) != 0


def _has(s: State, j: int) -> bool:
    """Tell whether a machine has a task of that class."""
    o = s.server[j]
    return o.ticket >= 0 and s.ticket[o.ticket].task_class == o.best_class


def _promise(s: State, j: int, i: int) -> None:
    """Set the first waiting task of a class aside for a machine."""
    m, x = s.machines[j], pop(s, i)
    s.server[j].promised = x
    s.ticket[x].next = -2 - j
    m.serving = i
    m.backlog = 1
    m.work = 1.0 / s.rate[i, j] if s.rate[i, j] > 0.0 else 0.0


def _keep(s: State, j: int) -> None:
    """Let a machine that continues its class keep its task, if another machine was promised it."""
    o = s.server[j]
    x, y = o.promised, o.ticket
    if y >= 0 and x != y and s.ticket[y].next < -1:
        other = -2 - s.ticket[y].next
        if s.machines[other].serving == s.machines[j].serving:
            s.server[other].promised, o.promised = x, y
            s.ticket[x].next, s.ticket[y].next = -2 - other, -2 - j


def _give_up(s: State, j: int) -> None:
    """Interrupt the task of a machine that is to do something else."""
    c, o = s.count[0], s.server[j]
    y = o.ticket
    if y >= 0 and y != o.promised:
        s.ticket[y].leaves = c.now - o.begun
        o.busy += c.now - o.begun
        o.finish = np.inf
        o.ticket = -1
        c.interrupted += 1
        if len(s.trace) > 0:
            note(s, c.now, INTERRUPT, s.ticket[y].number, s.ticket[y].task_class, j)
        settle(s, j)


def _take_up(s: State, j: int) -> None:
    """Start the task that a machine was promised, unless it is running it.

    A task that has run before counts as begun so much earlier, and the machine as busy so much
    less before. So all time in which it is not served counts as waiting.
    """
    o, x = s.server[j], s.server[j].promised
    o.promised = -1
    if x < 0:
        return
    ticket = s.ticket[x]
    ticket.next = -1
    if x != o.ticket:
        begun = s.count[0].now - ticket.leaves
        o.busy -= ticket.leaves
        ticket.leaves = 0.0
        ticket.sent = begun
        s.assigned[ticket.task_class, j] += 1
        if len(s.trace) > 0:
            note(s, s.count[0].now, ASSIGN, ticket.number, ticket.task_class, j)
        begin(s, j, x, begun, s.count[0].now)


def foreseeable(s: State, j: int) -> bool:
    """Tell that a task may be interrupted before its end."""
    return False


HOOKS: dict[str, Any] = {
    "foreseeable": foreseeable,
    "placed": placed,
    "freed": freed,
    "returned": returned,
    "recalled": recalled,
}
"""What the loop does when a task waits, a machine is free or has failed, or there is a new plan."""
