"""Shadow routing: route by virtual queues that know neither arrival rates nor the state."""

import numpy as np

from .choice import are_alike
from .registry import push
from .view import INFORMED, View


@push(informed=None)
def shadow(task_class: int, view: View, eta: float = 0.01) -> int:
    """Send the task to the pool with the least virtual queue × time per task, there to any idle.

    The virtual queue of the pool grows by that time. While all of them together exceed 1 / eta of
    the longest task, per machine, each task lowers all by that task. A pool is the machines with
    the same rates; in it, the task goes to the machine with the least work. Source: Stolyar and
    Tezcan 2010.
    """
    longest, total = 0.0, 0.0
    for i in range(len(view.classes)):
        fastest = np.inf
        for j in range(len(view.machines)):
            fastest = min(fastest, view.expected[i, j])
        if fastest < np.inf:
            longest = max(longest, fastest)
    best, least, shortest = -1, np.inf, np.inf
    for j in range(len(view.machines)):
        total += view.memory[0, j]
        each = view.expected[task_class, j]
        if view.plan[task_class, j] > 0.0 and each < np.inf:
            index = view.memory[0, j] * each
            if index < least or (index == least and each < shortest):
                best, least, shortest = j, index, each
    if best >= 0:
        view.memory[0, best] += shortest
    if eta * total >= longest * len(view.machines):
        for j in range(len(view.machines)):
            view.memory[0, j] = max(view.memory[0, j] - longest, 0.0)
    emptiest = best
    for j in range(len(view.machines)):
        if best >= 0 and view.machines[j].up and are_alike(j, best, view):
            view.tally[INFORMED] += 1
            if view.machines[j].work < view.machines[emptiest].work:
                emptiest = j
    return emptiest
