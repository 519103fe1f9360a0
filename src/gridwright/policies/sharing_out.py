"""Share waiting tasks out among the machines, as if they had to be sent now.

Nothing is sent: the answer is only what one idle machine should begin. The others' share is shared
out anew when they ask, so no task is bound to a machine before it begins there.
"""

import numpy as np

from .view import View

PARCELS = 64
"""When more tasks wait than this, they are shared out a few at a time."""


def own_share(machine: int, view: View) -> int:
    """Return the class that a machine begins of its share, or −1.

    The memory has the delays of one more task [class, machine], and below how many are left of each
    class. The task that would lose most if it did not get its best machine is placed first.
    """
    classes, machines = view.rate.shape
    left, kinds, share = 0, 0, 0
    for i in range(classes):
        waiting = view.classes[i].waiting
        view.memory[classes + i, 0] = waiting
        left += waiting
        kinds += waiting > 0
        for j in range(machines):
            view.memory[i, j] = view.machines[j].work + view.expected[i, j]
    parcel = 1 + left // PARCELS
    while left > 0:
        i, j = next_placed(view)
        if i < 0:
            break
        placed = min(parcel, int(view.memory[classes + i, 0]))
        view.memory[classes + i, 0] -= placed
        left -= placed
        delay_others(i, j, placed, view)
        if j == machine:
            share |= 1 << i
            if kinds == 1:
                break
    return most_urgent(share, machine, view)


def next_placed(view: View) -> tuple[int, int]:
    """Return the class whose second-best machine is worst for it, and its best one; −1 for none."""
    classes = len(view.classes)
    chosen, place, most = -1, -1, 0.0
    for i in range(classes):
        if view.memory[classes + i, 0] > 0.0:
            least, second, at = soonest(i, view)
            if at >= 0 and second > most * least:
                chosen, place, most = i, at, second / least
    return chosen, place


def soonest(task_class: int, view: View) -> tuple[float, float, int]:
    """Return the least delay ÷ plan of one more task, that at another speed, and where."""
    least, second, at = np.inf, np.inf, -1
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.expected[task_class, j] < np.inf:
            delay = view.memory[task_class, j] / view.plan[task_class, j]
            other = at < 0 or view.rate[task_class, j] != view.rate[task_class, at]
            if delay < least:
                least, second, at = delay, least if other else second, j
            elif other and delay < second:
                second = delay
    return least, second, at


def delay_others(task_class: int, machine: int, placed: int, view: View) -> None:
    """Make one more task of any class cost as much more as tasks that were placed on a machine do.

    Of two tasks one goes first and the other waits: the one with the larger rate × cost, since that
    costs less. If the one that is placed goes behind, its wait counts as that of the other.
    """
    each, cost = view.expected[task_class, machine], view.classes[task_class].cost
    for i in range(len(view.classes)):
        behind = view.expected[i, machine] * cost / view.classes[i].cost
        view.memory[i, machine] += placed * min(each, behind)


def most_urgent(share: int, machine: int, view: View) -> int:
    """Return the class, of those whose bits are set, that loses most if it does not begin now.

    All tasks are placed. One more of the class would be delayed longer than one that begins on this
    machine: this is what it loses, for each time unit that it takes here.
    """
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if share >> i & 1:
            later = soonest(i, view)[0] * view.plan[i, machine] / view.expected[i, machine]
            loss = (later - 1.0) * view.classes[i].cost
            if loss > largest:
                best, largest = i, loss
    return best
