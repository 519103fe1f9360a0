"""MaxWeight, for central queues."""

from .registry import pull
from .view import View


@pull
def maxweight(machine: int, view: View) -> int:
    """Take the class with the largest cost × number waiting × rate on the machine.

    For machines that each serve one task, and tasks that leave when they end, the maximum-pressure
    policy of Dai and Lin 2005 is the same rule. Source: Tassiulas and Ephremides 1992.
    """
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0:
            weight = view.classes[i].cost * view.classes[i].waiting * view.rate[i, machine]
            if weight > largest:
                best, largest = i, weight
    return best
