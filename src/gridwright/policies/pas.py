"""Price affinity scheduling."""

import numpy as np

from ..allocation import weights
from .choice import ALIKE
from .registry import push
from .view import View


@push(plan=weights)
def pas(task_class: int, view: View) -> int:
    """Send the task where it delays itself and later tasks least, by the weight of the pair.

    Source: Gridwright, price affinity.
    """
    sent = view.memory[0]  # cost per time unit of the tasks sent to each machine so far
    several = len(view.classes) > 1  # then the next row has their work; else it follows from that
    cost = view.classes[task_class].cost
    best, bound = -1, np.inf
    for j in range(len(view.machines)):
        weight, each = view.plan[task_class, j], view.expected[task_class, j]
        if weight > 0.0 and each < np.inf:
            work = view.machines[j].work
            # who comes while the machine works waits for this task; who comes during it mostly
            # goes elsewhere, the more so the more machines there are
            behind = (work + each / len(view.machines)) * sent[j]
            behind = behind / (cost * view.now) if view.now > 0.0 else 0.0
            # so do those that come while these run, and those that come while those run
            given = view.memory[1, j] if several else sent[j] / cost * each
            busy = min(given / view.now, 1.0) if view.now > 0.0 else 0.0
            behind *= 1.0 + busy + busy * busy
            delay = (work + (1.0 + behind) * each) / weight
            if delay < bound:
                best, bound = j, delay * (1.0 - ALIKE)
    if best >= 0:
        sent[best] += cost
        if several:
            view.memory[1, best] += view.expected[task_class, best]
    return best
