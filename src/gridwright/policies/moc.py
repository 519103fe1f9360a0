"""Maximum on-time completions."""

from typing import Any

from .on_time import best_first, pick_candidates, weigh
from .registry import batch
from .view import BatchView, assign


@batch
def moc(
    waiting: Any, view: BatchView, threshold: float = 0.3, top: int = 3, joint: bool = True
) -> int:
    """Give each machine the likely on-time tasks, in the order that gets most done on time.

    Source: Smith et al., MOC: the best order of up to ``top`` tasks whose chance to be on time is
    above the threshold. A task's chance is that it and all tasks that the machine holds are on
    time; with ``joint=False``, the marginal variant, only that it is.
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
