"""Minimum execution time."""

from .registry import push
from .view import View


@push(informed=0)
def met(task_class: int, view: View) -> int:
    """Send every task to the machine that runs it fastest, however busy (Braun et al. 2001)."""
    best, fastest = -1, 0.0
    for j in range(len(view.machines)):
        if view.machines[j].up and view.rate[task_class, j] > fastest:
            best, fastest = j, view.rate[task_class, j]
    return best
