"""Minimum expected completion time, in immediate mode."""

from typing import Any

from .registry import batch
from .two_phase import soonest
from .view import BatchView, assign


@batch(immediate=True)
def mect(waiting: Any, view: BatchView) -> int:
    """Send every task at once where it is expected to finish first, however long the queue.

    Source: Smith et al., MECT.
    """
    count = 0
    for k in range(len(waiting)):
        count = assign(waiting, view, count, k, soonest(waiting[k].task_class, view, 0))
    return count
