"""Price affinity scheduling for desktop grids."""

from ..allocation import prices
from .choice import ALIKE
from .registry import pull
from .view import View


@pull(plan=prices, idle="fastest")
def pas_dg(machine: int, view: View) -> int:
    """Take the largest wait × rate × weight × cost, unless better machines will soon do it all.

    Source: Gridwright, price affinity.
    """
    waiting, idle = 0, 0
    for i in range(len(view.classes)):
        waiting += view.classes[i].waiting
    for j in range(len(view.machines)):
        idle += view.machines[j].up and view.machines[j].serving < 0
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0:
            index = (view.now - view.classes[i].oldest) * view.rate[i, machine]
            index *= view.plan[i, machine] * view.classes[i].cost
            needed = waiting * len(view.machines) / idle  # the others have other work, too
            if index > largest and others_finish(i, machine, view, needed) < needed:
                best, largest = i, index
    return best


def others_finish(task_class: int, machine: int, view: View, enough: float) -> float:
    """Count the tasks of a class that others would finish before a machine does one, weighed."""
    mine = view.expected[task_class, machine] / view.plan[task_class, machine]
    count = 0.0
    for j in range(len(view.machines)):
        each = view.expected[task_class, j]
        time = mine * view.plan[task_class, j] - view.machines[j].work
        if time > each * (1.0 + ALIKE) and j != machine:  # one that is alike is no better
            count += time // each
            if count >= enough:
                break
    return count
