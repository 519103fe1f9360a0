"""Price affinity scheduling."""

import numpy as np

from ..allocation import steady
from .choice import ALIKE
from .registry import push
from .view import View


@push(plan=steady, memory=(4, "machines"))
def pas(task_class: int, view: View) -> int:
    """Send the task where it delays itself and later tasks least, by the weight of the pair.

    Source: Gridwright, price affinity.
    """
    # of the tasks sent to each machine: their number, mean cost and work, and how many were sent
    # while it was busy, for each time unit of work
    sent, mean, given, joined = view.memory[0], view.memory[1], view.memory[2], view.memory[3]
    cost, share = view.classes[task_class].cost, 1.0 / len(view.machines)
    pace, unit = 1.0 / view.now if view.now > 0.0 else 0.0, 1.0 / cost
    best, bound = -1, np.inf
    for j in range(len(view.machines)):
        weight, each = view.plan[task_class, j], view.expected[task_class, j]
        if weight > 0.0 and each < np.inf:
            work = view.machines[j].work
            # of those who come during the task, the first waits as often as tasks were sent to
            # the machine while it was busy; of the rest most go elsewhere
            during = each * sent[j] * pace
            first = min(each * joined[j], during)
            waiting = (first + during * during * share) / (1.0 + during)
            # who comes while the machine does the work before it waits, too; so do those who come
            # while these run, and those who come while those run
            busy = min(given[j] * pace, 1.0)
            behind = (work * sent[j] * pace + waiting) * (1.0 + busy + busy * busy)
            delay = (work + (1.0 + behind * mean[j] * unit) * each) / weight
            if delay < bound:
                best, bound = j, delay * (1.0 - ALIKE)
    if best >= 0:
        before = joined[best] * given[best]
        given[best] += view.expected[task_class, best]
        joined[best] = (before + (view.machines[best].work > 0.0)) / given[best]
        sent[best] += 1.0
        mean[best] += (cost - mean[best]) / sent[best]
    return best
