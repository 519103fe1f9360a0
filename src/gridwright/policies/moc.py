"""Maximum on-time completions."""

from typing import Any

from .on_time import best_first, pick_candidates, weigh
from .policy import batch
from .view import BatchView, assign


@batch
def moc(
    waiting: Any, view: BatchView, threshold: float = 0.3, top: int = 3, joint: bool = False
) -> int:
    """Of the tasks most likely on time on a machine, the first of the order that is worth most.

    Source: Smith et al., MOC: three tasks above 30 %; joint: all that the machine holds count too.
    """
    count, machines = 0, len(view.machines)
    for j in range(machines):
        weigh(waiting, view, j, joint)
    while pick_candidates(waiting, view, threshold, top):
        for j in range(machines):
            if view.machines[j].picked > 0:
                count = assign(waiting, view, count, best_first(waiting, view, j), j)
                weigh(waiting, view, j, joint)
    return count
