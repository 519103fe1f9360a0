"""A fluid policy: keep to the time that the allocation gives each class."""

import numpy as np

from ..allocation import grouped
from .registry import pull
from .view import View


@pull(plan=grouped, preempt=None)  # it counts its answers
def fluid(machine: int, view: View) -> int:
    """Take the class that has had the least time on the machine for its share of the allocation.

    The shares are those of the fluid model in which every machine works as planned; time is
    counted at its expected length, when a task begins. Source: Maglaras 2000, with the allocation
    as the trajectory to track, without review periods and safety stocks.
    """
    best, least = -1, np.inf
    for i in range(len(view.classes)):
        share = view.plan[i, machine]
        if view.classes[i].waiting > 0 and share > 0.0:
            given = view.memory[i, machine] / share
            if given < least:
                best, least = i, given
    if best >= 0:
        view.memory[best, machine] += view.expected[best, machine]
    return best
