"""Price affinity scheduling."""

import numpy as np

from ..allocation import weights
from .choice import ALIKE
from .contract import push
from .view import View


@push(plan=weights)
def pas(task_class: int, view: View) -> int:
    """Least expected completion time ÷ weight, the share of the machine's worth that is earned."""
    best, bound = -1, np.inf
    for j in range(len(view.machines)):
        weight = view.plan[task_class, j]
        if weight > 0.0:
            time = (view.machines[j].work + view.expected[task_class, j]) / weight
            if time < bound:
                best, bound = j, time * (1.0 - ALIKE)
    return best
