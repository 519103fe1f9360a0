"""Join the fastest of the idle queues."""

from .choice import is_idle, permitted
from .registry import push
from .view import View


@push
def jfiq(task_class: int, view: View) -> int:
    """Send the task to the fastest idle machine, or to any at random if none is idle.

    Source: Weng, Zhou and Srikant 2020.
    """
    best, fastest = -1, 0.0
    left = permitted(task_class, view)
    for j in range(len(view.machines)):
        rate = view.rate[task_class, j]
        if view.plan[task_class, j] > 0.0 and is_idle(j, view) and rate > fastest:
            best, fastest = j, rate
    if best >= 0:
        return best
    drawn = view.rng.random() * left
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            best = j
            drawn -= 1.0
            if drawn < 0.0:
                break
    return best
