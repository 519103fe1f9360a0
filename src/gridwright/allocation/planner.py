"""Planners: from a situation to an allocation [class, machine], where 0 means never."""

import numpy as np

from .highs import solve_interior
from .optimum import NEGLIGIBLE, Floats, Situation, optimum, totals

__all__ = ["fill", "grouped", "interior", "spread", "vertex"]


def vertex(situation: Situation) -> Floats:
    """Plan with a basic solution at machine level: at most classes + machines − 1 non-zeros.

    Source: Al-Azzoni 2009, chapter 3; the machines of a group are filled class by class in order
    (north-west corner).
    """
    return fill(situation, optimum(situation).time)


def grouped(situation: Situation) -> Floats:
    """Plan with the solution on groups: machines with equal rates share their allocation alike.

    Source: Al-Azzoni 2009, chapter 2, Systems 2.C1 and 2.C2.
    """
    return spread(situation, optimum(situation).time)


def interior(situation: Situation) -> Floats:
    """Plan with the solution of an interior-point method: every pair that an optimum may use.

    Source: Al-Azzoni 2009, section 3.4.4 and Table 3.14, "modified" LPAS_DG.
    """
    return spread(situation, solve_interior(situation).time)


def spread(situation: Situation, time: Floats) -> Floats:
    """Give every machine its group's allocation in proportion to its availability."""
    classes, machines = situation.rates.shape
    capacity = totals(situation).capacity
    plan = np.zeros((classes, machines))
    for j in range(machines):
        if situation.availability[j] > 0.0:
            g = situation.group[j]
            for i in range(classes):
                plan[i, j] = time[i, g] * situation.availability[j] / capacity[g]
    return plan


def fill(situation: Situation, time: Floats) -> Floats:
    """Fill the machines of every group one after the other, class by class."""
    classes, machines = situation.rates.shape
    left = time.copy()
    serving = np.zeros(time.shape[1], np.int64)  # the class that each group is at
    plan = np.zeros((classes, machines))
    for j in range(machines):
        g, room = situation.group[j], situation.availability[j]
        while serving[g] < classes and room > NEGLIGIBLE * situation.availability[j]:
            i = serving[g]
            if left[i, g] > NEGLIGIBLE * time[i, g]:
                given = min(left[i, g], room)
                plan[i, j] = given
                left[i, g] -= given
                room -= given
            if left[i, g] <= NEGLIGIBLE * time[i, g]:
                serving[g] += 1
    return plan
