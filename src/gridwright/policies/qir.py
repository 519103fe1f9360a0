"""Queue-and-idleness ratio."""

import numpy as np

from .choice import are_alike, excess_idle, is_idle
from .registry import pull
from .view import PerClass, View


@pull
def qir(machine: int, view: View, ratio: PerClass = 1.0) -> int:
    """Take the class that most exceeds its share of all waiting tasks.

    The share of a class is its ratio / the sum of the ratios of all classes. A task that finds
    several machines idle goes to the pool, the machines with the same rates, whose idle machines
    most exceed its share of all idle ones: its share of the machines. Source: Gurvich and Whitt
    2009, with fixed ratios.
    """
    waiting, ratios = 0, 0.0
    for i in range(len(view.classes)):
        waiting += view.classes[i].waiting
        ratios += ratio[i]
    best, most = -1, -np.inf
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0:
            excess = view.classes[i].waiting * ratios - ratio[i] * waiting
            if excess > most:
                best, most = i, excess
    return best if best >= 0 and in_first_pool(best, machine, view) else -1


def in_first_pool(task_class: int, machine: int, view: View) -> bool:
    """Tell whether no other pool with an idle machine for the class exceeds its share by more."""
    mine, pool = excess_idle(machine, view), machine
    for j in range(len(view.machines)):
        if is_idle(j, view) and view.rate[task_class, j] > 0.0:
            if not are_alike(j, pool, view) and excess_idle(j, view) > mine:
                return False
            pool = j
    return True
