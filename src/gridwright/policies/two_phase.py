"""The two-phase greedy loop of batch policies.

First every waiting task finds the machine where it is expected to finish soonest; then a rule picks
one of these pairs, and so on until no machine has room or no task is left. Tasks of a class have
the same times and are given the same time to finish, so that the one that came first is the most
urgent: it is enough to look at one task of every class.
"""

from enum import IntEnum
from typing import Any

import numpy as np

from .view import LEFT, BatchView, assign

SOONEST, URGENT, DEADLINE, LATEST, REGRET = range(5)
"""Which task is assigned first: the one with the earliest completion, the least slack, the earliest
deadline, the latest completion, or the largest loss on its second-best machine."""


class Full(IntEnum):
    """What happens to a task that was picked for a machine without room."""

    leaves = 0
    """It is not assigned at this mapping event."""
    counts = 1
    """It is not assigned, and the machine counts as busy for its time."""
    excluded = 2
    """This cannot happen: machines without room are not considered."""


def greedy(waiting: Any, view: BatchView, rule: int, full: int) -> int:
    """Assign tasks pair by pair; return how many."""
    for i in range(len(view.classes)):
        view.classes[i].left = view.classes[i].first
        view.classes[i].live = view.classes[i].first
    count = 0
    while has_room(view):
        place, machine = pick(waiting, view, rule, full)
        if place < 0:
            break
        m, i = view.machines[machine], waiting[place].task_class
        if m.free > 0:
            count = assign(waiting, view, count, place, machine)
        elif full == 1:
            waiting[place].machine = LEFT
            m.ready += view.mean[i, machine]
        else:  # the others of its class would be picked for the same machine
            view.classes[i].left = -1
    return count


def has_room(view: BatchView) -> bool:
    """Return whether a machine has room."""
    found = False
    for j in range(len(view.machines)):
        found = found or view.machines[j].free > 0
    return found


def pick(waiting: Any, view: BatchView, rule: int, full: int) -> tuple[int, int]:
    """Return the task that comes first by a rule, and its machine; −1 for none."""
    place, machine, best, second = -1, -1, 0.0, 0.0
    for i in range(len(view.classes)):
        k = skip(waiting, view.classes[i].left)
        view.classes[i].left = k
        j = soonest(i, view, full) if k >= 0 else -1
        if j < 0:
            continue
        time = view.machines[j].ready + view.mean[i, j]
        if rule == URGENT:
            live = skip(waiting, view.classes[i].live)
            while live >= 0 and waiting[live].deadline < time:
                live = skip(waiting, waiting[live].following)
            view.classes[i].live = live
            k = live if live >= 0 else k
        deadline = waiting[k].deadline
        key, other = -time, -deadline
        if rule == URGENT:
            key, other = urgency(deadline - time), -time
        elif rule == DEADLINE:
            key, other = -deadline, -time
        elif rule == LATEST:
            key = time
        elif rule == REGRET:
            key = regret(i, j, view, full)
        if place < 0 or key > best or (key == best and other > second):
            place, machine, best, second = k, j, key, other
    return place, machine


def skip(waiting: Any, place: int) -> int:
    """Return the first task of a class from a place on that is not dealt with yet."""
    while place >= 0 and waiting[place].machine != -1:
        place = waiting[place].following
    return place


def soonest(task_class: int, view: BatchView, full: int) -> int:
    """Return the machine where a task of a class is expected to finish soonest, or −1."""
    best, least = -1, np.inf
    for j in range(len(view.machines)):
        if full != 2 or view.machines[j].free > 0:
            time = view.machines[j].ready + view.mean[task_class, j]
            if time < least:
                best, least = j, time
    return best


def urgency(slack: float) -> float:
    """Return 1 / slack: negative slack comes last."""
    return 1.0 / slack if slack != 0.0 else np.inf


def regret(task_class: int, first: int, view: BatchView, full: int) -> float:
    """Return how much later a task would finish on the second best machine."""
    second = np.inf
    for j in range(len(view.machines)):
        if j != first and (full != 2 or view.machines[j].free > 0):
            second = min(second, view.machines[j].ready + view.mean[task_class, j])
    return second - view.machines[first].ready - view.mean[task_class, first]
