"""First come, first served."""

import numpy as np

from .registry import pull
from .view import View


@pull
def fcfs(machine: int, view: View) -> int:
    """Take the task that has waited longest of those that the machine can run (folklore)."""
    best, oldest = -1, np.inf
    for i in range(len(view.classes)):
        waits = view.classes[i].waiting > 0 and view.plan[i, machine] > 0.0
        if waits and view.classes[i].oldest < oldest:
            best, oldest = i, view.classes[i].oldest
    return best
