"""Thresholds on a tree of classes and machines."""

import numpy as np

from ..allocation import Situation, make_workspace
from ..allocation.planner import solve, spread, suited
from ..allocation.price import set_prices
from .choice import has_other_pool, levels
from .registry import pull
from .view import View


def basic(situation: Situation) -> np.ndarray:
    """Return the price of the class for every pair that the allocation uses."""
    space, plan = make_workspace(situation), np.empty(situation.rates.shape)
    solve(situation, space)
    suited(set_prices, space)(situation, space)
    spread(situation, space, plan)
    return np.where(plan > 0.0, space.price[:, None], 0.0)


@pull(plan=basic)
def thresholds(machine: int, view: View, threshold: float = 3.0) -> int:
    """Take first what hangs below the machine on the tree of the allocation, then what is above.

    The root is the class whose work costs least to keep: the least cost / price. A class below
    that other pools also serve is left to them while at most ``threshold`` of its tasks wait. Of
    several, the machine takes the one with the largest cost × rate. Source: Bell and Williams
    2001 (two machines), 2005 (trees), without interrupting tasks.
    """
    levels(view)
    above, level = -1, np.inf
    for i in range(len(view.classes)):
        if view.plan[i, machine] > 0.0 and view.memory[i, 0] < level:
            above, level = i, view.memory[i, 0]
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        waiting = view.classes[i].waiting
        if i != above and view.plan[i, machine] > 0.0 and waiting > 0:
            index = view.classes[i].cost * view.rate[i, machine]
            wanted = waiting > threshold or not has_other_pool(i, machine, view)
            if wanted and index > largest:
                best, largest = i, index
    return above if best < 0 and above >= 0 and view.classes[above].waiting > 0 else best
