"""The cμ rule."""

from .registry import pull
from .view import View


@pull
def cmu(machine: int, view: View) -> int:
    """Take the class with the largest cost × rate on the machine (Cox and Smith 1961)."""
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0:
            index = view.classes[i].cost * view.rate[i, machine]
            if index > largest:
                best, largest = i, index
    return best
