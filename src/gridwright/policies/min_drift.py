"""MinDrift: MaxWeight for tasks that are sent when they arrive."""

import numpy as np

from .registry import push
from .view import View


@push
def min_drift(task_class: int, view: View) -> int:
    """Send the task where work ahead of it / its rate there is least, of equals to the fastest.

    So Σ work² over the machines is expected to grow least. Source: Stolyar 2005, with quadratic
    costs.
    """
    best, least, shortest = -1, np.inf, np.inf
    for j in range(len(view.machines)):
        each = view.expected[task_class, j]
        if view.plan[task_class, j] > 0.0 and each < np.inf:
            drift = view.machines[j].work * each
            if drift < least or (drift == least and each < shortest):
                best, least, shortest = j, drift, each
    return best
