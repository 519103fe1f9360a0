"""Share waiting tasks out among the machines, as if they had to be sent now.

Nothing is sent: the answer is only what one idle machine should begin. The others' share is shared
out anew when they ask, so no task is bound to a machine before it begins there.
"""

import numpy as np

from .view import View

PARCELS = 64
"""When more tasks wait than this, they are shared out a few at a time."""


def own_share(machine: int, view: View) -> int:
    """Return the class of a machine's share with the largest rate × plan × cost there, or −1.

    The task that would lose most if it did not get its best machine is placed first: its delay is
    the work placed there before it and its own execution, divided by the plan of the pair.
    """
    classes, machines = view.rate.shape
    left, top = 0, -1
    for i in range(classes):
        waiting = view.classes[i].waiting
        left += waiting
        if waiting > 0 and value(i, machine, view) > (value(top, machine, view) if top >= 0 else 0):
            top = i
    if machines == 1 or top < 0:
        return top
    for j in range(machines):
        view.memory[0, j] = view.machines[j].work
    for i in range(classes if classes > 1 else 0):
        view.memory[1 + i // machines, i % machines] = view.classes[i].waiting
    parcel, best, largest = 1 + left // PARCELS, -1, 0.0
    while left > 0:
        i, j = next_placed(view)
        if i < 0:
            break
        placed = min(parcel, left)
        if classes > 1:
            placed = min(placed, int(view.memory[1 + i // machines, i % machines]))
            view.memory[1 + i // machines, i % machines] -= placed
        view.memory[0, j] += placed * view.expected[i, j]
        left -= placed
        if j == machine and value(i, machine, view) > largest:
            best, largest = i, value(i, machine, view)
            if best == top:
                break
    return best


def value(task_class: int, machine: int, view: View) -> float:
    """Return rate × plan × cost of a class on a machine."""
    worth = view.rate[task_class, machine] * view.plan[task_class, machine]
    return float(worth * view.classes[task_class].cost)


def next_placed(view: View) -> tuple[int, int]:
    """Return the class whose second-best machine is worst for it, and its best one; −1 for none."""
    classes, machines = view.rate.shape
    chosen, place, most = -1, -1, 0.0
    for i in range(classes):
        if classes == 1 or view.memory[1 + i // machines, i % machines] > 0.0:
            least, second, at = np.inf, np.inf, -1
            for j in range(machines):
                if view.plan[i, j] > 0.0 and view.expected[i, j] < np.inf:
                    delay = (view.memory[0, j] + view.expected[i, j]) / view.plan[i, j]
                    other = at < 0 or view.rate[i, j] != view.rate[i, at]
                    if delay < least:
                        least, second, at = delay, least if other else second, j
                    elif other and delay < second:
                        second = delay
            if at >= 0 and second > most * least:
                chosen, place, most = i, at, second / least
    return chosen, place
