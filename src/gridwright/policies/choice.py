"""Choose a machine or a class: functions that several policies share and the simulator compiles."""

from enum import IntEnum
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation
from ..model import InputError
from .view import INFORMED, Pairs, View

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
    """Return the allowed machine that is up and would finish the task first, or −1."""
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


def sooner(task_class: int, view: View, first: int, second: int, tie: int) -> int:
    """Return which of two machines would finish the task first; of equals the lower, or any."""
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
    if tie == 1 and abs(times[1] - times[0]) <= ALIKE * times[0]:
        return first if view.rng.random() < 0.5 else second
    return second if times[1] < times[0] * (1.0 - ALIKE) else first


def permitted(task_class: int, view: View) -> int:
    """Count the machines that the plan permits and that are up."""
    count = 0
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            count += 1
    return count


def drawn(task_class: int, view: View, but: int) -> int:
    """Draw a permitted machine except one, in proportion to the work planned there."""
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
    """Return the permitted class with the largest wait of its oldest × rate × cost, or −1."""
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0:
            index = (view.now - view.classes[i].oldest) * view.rate[i, machine]
            index *= view.classes[i].cost
            if index > largest:
                best, largest = i, index
    return best


def fastest(situation: Situation, k: int = 2, percent: float = 0.0) -> np.ndarray:
    """Permit the k machines fastest for each class, or that percentage of them, rounded down.

    Only machines that are up and can run the class count; the lowest index wins a tie at the cut.
    """
    machines = situation.rates.shape[1]
    if percent:
        k = int(percent * machines / 100 + 1e-9)
    if not 1 <= k <= machines:
        given = f"percent={percent:g} gives k = {k}" if percent else f"k is {k:g}"
        raise InputError(f"kpb: {given}; expected from 1 to {machines}, the number of machines")
    plan = np.empty(situation.rates.shape)
    mark_fastest(situation, int(k), plan)
    return plan


def mark_fastest(situation: Situation, k: int, plan: np.ndarray) -> None:
    """Mark the k machines fastest for each class in a plan."""
    classes, machines = situation.rates.shape
    for i in range(classes):
        for j in range(machines):
            plan[i, j] = 0.0
        for _ in range(k):
            best, most = -1, 0.0
            for j in range(machines):
                rate = situation.rates[i, j] * situation.availability[j]
                if rate > most and plan[i, j] == 0.0:
                    best, most = j, rate
            if best >= 0:
                plan[i, best] = 1.0


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
    allowed = share * view.classes[task_class].arrived + c[task_class, machine] * sqrt(view.now)
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


def is_idle(machine: int, view: View) -> bool:
    """Tell whether a machine is up and has nothing to do."""
    return bool(view.machines[machine].up and view.machines[machine].serving < 0)


def excess_idle(machine: int, view: View) -> int:
    """Return by how much the idle machines of a machine's pool exceed its share of all idle ones.

    A pool is the machines with the same rates. The number is multiplied by that of all machines,
    so that it is whole.
    """
    size, here, everywhere = 0, 0, 0
    for j in range(len(view.machines)):
        idle = is_idle(j, view)
        everywhere += idle
        same = are_alike(j, machine, view)
        size += same
        here += idle and same
    return here * len(view.machines) - size * everywhere


def are_alike(first: int, second: int, view: View) -> bool:
    """Tell whether two machines have the same rates for every class."""
    different = 0
    for i in range(len(view.classes)):
        different += view.nominal[i, first] != view.nominal[i, second]
    return different == 0


def levels(view: View) -> None:
    """Write the level of every class on its tree into the first column of the memory.

    Pairs with a plan, which is the price of the class, connect classes and machines into trees.
    The root of a tree has level 1: the class with the least cost / price. A class that a machine
    connects to a class of level n has level n + 1.
    """
    left = 0
    for i in range(len(view.classes)):
        view.memory[i, 0] = 0.0
        left += 1
    while left > 0:
        root, least = -1, np.inf
        for i in range(len(view.classes)):
            if view.memory[i, 0] == 0.0:
                price = 0.0
                for j in range(len(view.machines)):
                    price = max(price, view.plan[i, j])
                dear = view.classes[i].cost / price if price > 0.0 else 1e300
                if dear < least:
                    root, least = i, dear
        view.memory[root, 0] = 1.0
        left -= 1
        level, found = 1.0, 1
        while found > 0:
            found = 0
            for j in range(len(view.machines)):
                joined = False
                for i in range(len(view.classes)):
                    joined = joined or (view.plan[i, j] > 0.0 and view.memory[i, 0] == level)
                if joined:
                    for i in range(len(view.classes)):
                        if view.plan[i, j] > 0.0 and view.memory[i, 0] == 0.0:
                            view.memory[i, 0] = level + 1.0
                            found += 1
            left -= found
            level += 1.0


def has_other_pool(task_class: int, machine: int, view: View) -> bool:
    """Tell whether machines with other rates than this one also have the class in their plan."""
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and not are_alike(j, machine, view):
            return True
    return False
