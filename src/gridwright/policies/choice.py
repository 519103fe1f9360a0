"""Choices that several policies share. Plain functions: the simulator compiles them."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from .view import View

__all__ = [
    "Tie",
    "drawn",
    "largest_index",
    "least_among",
    "least_completion",
    "permitted",
    "sooner",
]

ALIKE = 1e-12
"""Relative difference below which two times are a tie: sums kept step by step differ by rounding,
which would otherwise break ties at random."""


class Tie(IntEnum):
    """Which of several equally good machines is taken."""

    lowest = 0
    random = 1


def least_completion(task_class: int, view: View, tie: int) -> int:
    """Return the permitted machine where the task is expected to finish first, or −1."""
    if tie == 1:
        return least_among(task_class, view, view.plan, tie)
    best, bound = -1, np.inf
    for j in range(len(view.machines)):
        time = view.machines[j].work + view.expected[task_class, j]
        if time < bound and view.plan[task_class, j] > 0.0:
            best, bound = j, time * (1.0 - ALIKE)
    return best


def least_among(task_class: int, view: View, allowed: NDArray[np.float64], tie: int) -> int:
    """Return the machine up with a mark > 0 where the task would finish first, or −1."""
    best, least, tied = -1, np.inf, 0
    for j in range(len(view.machines)):
        if allowed[task_class, j] > 0.0 and view.machines[j].up:
            time = view.machines[j].work + view.expected[task_class, j]
            if time < least * (1.0 - ALIKE):
                best, least, tied = j, time, 1
            elif tie == 1 and time <= least * (1.0 + ALIKE):
                tied += 1
                if view.rng.random() * tied < 1.0:
                    best = j
    return best


def sooner(task_class: int, view: View, first: int, second: int) -> int:
    """Return which of two machines would finish the task first; the lower of equals."""
    if second < 0:
        return first
    if first < 0 or second < first:
        first, second = second, first
    if first < 0:
        return second
    times = (
        view.machines[first].work + view.expected[task_class, first],
        view.machines[second].work + view.expected[task_class, second],
    )
    return second if times[1] < times[0] * (1.0 - ALIKE) else first


def permitted(task_class: int, view: View) -> int:
    """Count the machines that the plan permits and that are up."""
    count = 0
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            count += 1
    return count


def drawn(task_class: int, view: View, but: int) -> int:
    """Draw a permitted machine other than one, in proportion to the work it does for the class."""
    total = 0.0
    for j in range(len(view.machines)):
        if view.machines[j].up and j != but:
            total += view.plan[task_class, j] * view.nominal[task_class, j]
    left, last = view.rng.random() * total, -1
    for j in range(len(view.machines)):
        weight = view.plan[task_class, j] * view.nominal[task_class, j]
        if weight > 0.0 and view.machines[j].up and j != but:
            last = j
            left -= weight
            if left < 0.0:
                break
    return last


def largest_index(machine: int, view: View) -> int:
    """Return the permitted class with the largest wait of its head × rate here, or −1."""
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0:
            index = (view.now - view.classes[i].oldest) * view.rate[i, machine]
            if index > largest:
                best, largest = i, index
    return best
