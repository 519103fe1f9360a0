"""Join the fastest of the shortest queues."""

from .registry import push
from .view import View


@push
def jfsq(task_class: int, view: View) -> int:
    """Send the task to the machine with the fewest tasks, of equals to the one fastest for it.

    Source: Weng, Zhou and Srikant 2020.
    """
    best, fewest, fastest = -1, 0, 0.0
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            backlog, rate = view.machines[j].backlog, view.rate[task_class, j]
            if best < 0 or backlog < fewest or (backlog == fewest and rate > fastest):
                best, fewest, fastest = j, backlog, rate
    return best
