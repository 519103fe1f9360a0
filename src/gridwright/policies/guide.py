"""The rule that guides LPAS: no machine gets far ahead of its share of a class."""

import numpy as np

from .choice import least_among
from .view import INFORMED, Pairs, View

__all__ = ["least_completion_within", "two_within"]


def routed(task_class: int, view: View) -> float:
    """Return the work that the plan gives the class: what the routing shares are taken of."""
    total = 0.0
    for j in range(len(view.machines)):
        total += view.plan[task_class, j] * view.nominal[task_class, j]
    return total


def within(task_class: int, view: View, machine: int, total: float, c: Pairs) -> bool:
    """Tell whether a permitted machine is not yet ahead of its share."""
    if view.plan[task_class, machine] <= 0.0 or not view.machines[machine].up:
        return False
    share = view.plan[task_class, machine] * view.nominal[task_class, machine] / total
    allowed = share * view.classes[task_class].arrived + c[task_class, machine] * np.sqrt(view.now)
    return bool(view.assigned[task_class, machine] < allowed)


def least_completion_within(task_class: int, view: View, c: Pairs, tie: int) -> int:
    """Return the machine that is within its share and would finish the task first, or −1."""
    total = routed(task_class, view)
    for j in range(len(view.machines)):
        inside = within(task_class, view, j, total, c)
        view.memory[task_class, j] = inside
        view.tally[INFORMED] += inside
    return least_among(task_class, view, view.memory, tie)


def two_within(task_class: int, view: View, c: Pairs) -> tuple[int, int]:
    """Draw two machines that are within their shares, in proportion to them; −1 where none is."""
    total = routed(task_class, view)
    first = drawn_within(task_class, view, total, c, -1)
    second = drawn_within(task_class, view, total, c, first) if first >= 0 else -1
    view.tally[INFORMED] += (first >= 0) + (second >= 0)
    return first, second


def drawn_within(task_class: int, view: View, total: float, c: Pairs, but: int) -> int:
    """Draw a machine that is within its share, other than one."""
    sum_within, last = 0.0, -1
    for j in range(len(view.machines)):
        if j != but and within(task_class, view, j, total, c):
            sum_within += view.plan[task_class, j] * view.nominal[task_class, j]
    left = view.rng.random() * sum_within
    for j in range(len(view.machines)):
        if j != but and within(task_class, view, j, total, c):
            last = j
            left -= view.plan[task_class, j] * view.nominal[task_class, j]
            if left < 0.0:
                break
    return last
