"""Price affinity scheduling."""

import numpy as np

from ..allocation import weights
from .choice import ALIKE
from .contract import push
from .view import View


@push(plan=weights)
def pas(task_class: int, view: View) -> int:
    """Least delay, the task's own and that of those who come after it, ÷ the pair's weight."""
    sent = view.memory[0]  # tasks to each machine so far
    best, bound = -1, np.inf
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0:
            work = view.machines[j].work
            behind = work * sent[j] / view.now  # they come while it works, and wait for this task
            delay = work + (1.0 + behind) * view.expected[task_class, j]
            if delay / view.plan[task_class, j] < bound:
                best, bound = j, delay / view.plan[task_class, j] * (1.0 - ALIKE)
    if best >= 0:
        sent[best] += 1.0
    return best
