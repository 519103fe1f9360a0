"""The allocation LP of a situation, solved on groups of machines with equal rates.

The functions are plain Python that compiles as it is, and work in room given to them, so that the
same code plans for a person at a prompt and inside a compiled loop.
"""

from typing import NamedTuple

import numpy as np

from .recall import BASES
from .simplex import solve
from .tableau import ROW, Floats, Integers, Tableau

__all__ = [
    "NEGLIGIBLE",
    "Floats",
    "Integers",
    "Room",
    "Situation",
    "make_room",
    "optimum",
    "tableau",
    "totals",
]

ALLOCATES_NOTHING = True

NEGLIGIBLE = 1e-9
"""An allocation that is less than this share both of the group's time and of the class's work is
rounding, and becomes 0."""


class Situation(NamedTuple):
    """What a planner is told: the rates, the load, and what there is of every machine now."""

    rates: Floats  # nominal, [class, machine]
    arrivals: Floats  # [class]
    availability: Floats  # [machine], 0 where it is down
    group: Integers  # [machine], equal where the rates are equal, numbered from 0


class Room(NamedTuple):
    """Room to solve a situation in, and its solution on groups."""

    rates: Floats  # nominal, [class, group]
    capacity: Floats  # [group], availability of the group's machines together
    classes: Integers  # the classes that count: tasks arrive and a machine that is up can run them
    groups: Integers  # the groups that count: a machine is up
    serving: Integers  # [group], scratch
    time: Floats  # [class, group], machine time given to the class
    price: Floats  # [class], worth of one task per time unit: Σ price × arrivals = 1
    tableau: Tableau  # the LP of the classes and groups that count


def make_room(situation: Situation) -> Room:
    """Make room to solve a situation in, and others with the same classes and machines."""
    classes, groups = len(situation.arrivals), int(situation.group.max()) + 1
    return Room(
        rates=np.zeros((classes, groups)),
        capacity=np.zeros(groups),
        classes=np.zeros(classes, np.int64),
        groups=np.zeros(groups, np.int64),
        serving=np.zeros(groups, np.int64),
        time=np.zeros((classes, groups)),
        price=np.zeros(classes),
        tableau=tableau(np.zeros((classes, groups))),
    )


def tableau(weights: Floats) -> Tableau:
    """Make room to solve a problem of such weights in."""
    classes, groups = weights.shape
    return Tableau(
        given=weights,
        size=np.array(weights.shape),
        weight=np.empty((groups, classes)),
        key=np.empty(groups, np.int64),
        matrix=np.empty((classes, 2 * classes)),
        row=np.empty(classes, ROW),
        known=np.full((BASES, classes + groups), -1),
        share=np.zeros((classes, groups)),
    )


def optimum(situation: Situation, room: Room) -> float:
    """Solve the allocation LP: return the capacity, leave times and prices in the room.

    Classes that cannot run or do not arrive have no part in it.

    >>> two = Situation(np.array([[8.0, 3.0], [4.0, 10.0]]), np.array([5.0, 8.0]),
    ...                 np.ones(2), np.arange(2))
    >>> round(float(optimum(two, make_room(two))), 4)
    1.3333
    """
    totals(situation, room)
    t = room.tableau
    capacity = solve(t) if t.size[0] > 0 else 0.0
    for i in range(len(room.price)):
        room.price[i] = 0.0
        for g in range(len(room.capacity)):
            room.time[i, g] = 0.0
    for k in range(t.size[0]):
        i = room.classes[k]
        room.price[i] = t.row[k]["price"] / situation.arrivals[i]
        for h in range(t.size[1]):
            share = t.share[k, h]
            if share > NEGLIGIBLE or share * t.given[k, h] > NEGLIGIBLE * capacity:
                room.time[i, room.groups[h]] = share * room.capacity[room.groups[h]]
    return capacity


def totals(situation: Situation, room: Room) -> None:
    """Sum a situation up by groups; leave out what cannot run now."""
    classes, machines = situation.rates.shape
    groups = len(room.capacity)
    size = room.tableau.size
    for g in range(groups):
        room.capacity[g] = 0.0
    last, total = -1, 0.0  # neighbours are often of one group: its total stays in a register
    for j in range(machines):
        g = situation.group[j]
        if g != last:
            if last >= 0:
                room.capacity[last] = total
            last, total = g, room.capacity[g]
            for i in range(classes):
                room.rates[i, g] = situation.rates[i, j]
        total += situation.availability[j]
    room.capacity[last] = total
    size[0], size[1] = 0, 0
    for g in range(groups):
        if room.capacity[g] > 0.0:
            room.groups[size[1]] = g
            size[1] += 1
    for i in range(classes):
        runs = False
        for h in range(size[1]):
            runs = runs or room.rates[i, room.groups[h]] > 0.0
        if runs and situation.arrivals[i] > 0.0:
            room.classes[size[0]] = i
            size[0] += 1
    for k in range(size[0]):
        i = room.classes[k]
        for h in range(size[1]):
            g = room.groups[h]
            work = room.capacity[g] * room.rates[i, g]
            room.tableau.given[k, h] = work / situation.arrivals[i]
