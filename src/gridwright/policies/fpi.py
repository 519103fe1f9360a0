"""First policy iteration: one step of improvement on a random split."""

import numpy as np

from ..allocation import Situation, grouped
from .registry import push
from .view import View

HARDLY = 1e-12


def flows(situation: Situation) -> np.ndarray:
    """Return the arrival rates of each class at each machine if the allocation splits them.

    Where a machine can run a class but gets none of it, the rate is not quite 0: the improved
    policy may use the machine.
    """
    work = grouped(situation) * situation.rates
    total = work.sum(axis=1, keepdims=True)
    split = np.divide(work, total, out=np.zeros_like(work), where=total > 0)
    found = situation.arrivals[:, None] * split
    return np.where(situation.rates * situation.availability > 0, np.maximum(found, HARDLY), 0.0)


@push(plan=flows)
def fpi(task_class: int, view: View) -> int:
    """Send the task where it costs least if all later tasks are split at random by the allocation.

    Each machine is then an M/G/1 queue. The task waits for the work there, and those that arrive
    until the machine is next idle wait for the task. Source: Krishnan 1990; Hyytiä, Penttinen and
    Aalto 2012, with the split of the allocation.
    """
    best, least = -1, np.inf
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            load, others, mine = 0.0, 0.0, view.expected[task_class, j]
            for k in range(len(view.classes)):
                if view.plan[k, j] > 0.0:
                    load += view.plan[k, j] * view.expected[k, j]
                    others += view.plan[k, j] * view.classes[k].cost
            later = mine * others / max(1.0 - load, HARDLY)
            cost = (view.machines[j].work + mine) * (view.classes[task_class].cost + later)
            if cost < least:
                best, least = j, cost
    return best
