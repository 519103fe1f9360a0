"""The allocation LP of a situation, solved on groups of machines with equal rates.

The functions are plain Python and compile as they are, so that the same code plans for a person
at a prompt and inside a compiled loop.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .simplex import ROW, Tableau, solve

__all__ = [
    "NEGLIGIBLE",
    "Floats",
    "Integers",
    "Optimum",
    "Situation",
    "Totals",
    "optimum",
    "totals",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NEGLIGIBLE = 1e-9
"""An allocation that is less than this share both of the group's time and of the class's work is
rounding, and becomes 0."""


class Situation(NamedTuple):
    """What a planner is told: the rates, the load, and what there is of every machine now."""

    rates: Floats  # nominal, [class, machine]
    arrivals: Floats  # [class]
    availability: Floats  # [machine], 0 where it is down
    group: Integers  # [machine], equal where the rates are equal, numbered from 0


class Totals(NamedTuple):
    """A situation summed up by groups."""

    rates: Floats  # nominal, [class, group]
    capacity: Floats  # [group], availability of the group's machines together
    weights: Floats  # [class, group], of those that count: capacity × rate / arrivals
    classes: Integers  # the classes that count: tasks arrive and a machine that is up can run them
    groups: Integers  # the groups that count: a machine is up


class Optimum(NamedTuple):
    """The solution on groups. Classes that cannot run or do not arrive have no part in it."""

    capacity: float
    time: Floats  # [class, group], machine time given to the class
    price: Floats  # [class], worth of one task per time unit: Σ price × arrivals = 1
    totals: Totals


def optimum(situation: Situation) -> Optimum:
    """Solve the allocation LP.

    >>> two = Situation(np.array([[8.0, 3.0], [4.0, 10.0]]), np.array([5.0, 8.0]),
    ...                 np.ones(2), np.arange(2))
    >>> round(float(optimum(two).capacity), 4)
    1.3333
    """
    sums = totals(situation)
    room = tableau(len(sums.classes), len(sums.groups))
    capacity = solve(sums.weights, room) if len(sums.classes) > 0 else 0.0
    time = np.zeros(sums.rates.shape)
    price = np.zeros(len(situation.arrivals))
    for k in range(len(sums.classes)):
        i = sums.classes[k]
        price[i] = room.row[k]["price"] / situation.arrivals[i]
        for h in range(len(sums.groups)):
            share = room.share[k, h]
            if share > NEGLIGIBLE or share * sums.weights[k, h] > NEGLIGIBLE * capacity:
                time[i, sums.groups[h]] = share * sums.capacity[sums.groups[h]]
    return Optimum(capacity, time, price, sums)


def tableau(classes: int, groups: int) -> Tableau:
    """Make room for a problem."""
    return Tableau(
        np.empty((groups, classes)),
        np.empty(groups, np.int64),
        np.empty((classes, 2 * classes)),
        np.empty(classes, ROW),
        np.empty((classes, groups)),
    )


def totals(situation: Situation) -> Totals:
    """Sum a situation up by groups; leave out what cannot run now."""
    classes, machines = situation.rates.shape
    groups = 0
    for j in range(machines):
        groups = max(groups, situation.group[j] + 1)
    rates = np.zeros((classes, groups))
    capacity = np.zeros(groups)
    for j in range(machines):
        g = situation.group[j]
        capacity[g] += situation.availability[j]
        for i in range(classes):
            rates[i, g] = situation.rates[i, j]
    up = np.zeros(groups, np.int64)
    count = 0
    for g in range(groups):
        if capacity[g] > 0.0:
            up[count] = g
            count += 1
    up = up[:count]
    run = np.zeros(classes, np.int64)
    count = 0
    for i in range(classes):
        most = 0.0
        for g in up:
            most = max(most, rates[i, g])
        if most > 0.0 and situation.arrivals[i] > 0.0:
            run[count] = i
            count += 1
    run = run[:count]
    weights = np.zeros((len(run), len(up)))
    for k in range(len(run)):
        for h in range(len(up)):
            weights[k, h] = capacity[up[h]] * rates[run[k], up[h]] / situation.arrivals[run[k]]
    return Totals(rates, capacity, weights, run, up)
