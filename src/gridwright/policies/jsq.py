"""Join the shortest queue."""

from .choice import Tie
from .registry import push
from .view import View


@push
def jsq(task_class: int, view: View, tie: Tie = Tie.random) -> int:
    """Send the task to the machine with the fewest tasks (Winston 1977)."""
    best, fewest, tied = -1, 0, 0
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            backlog = view.machines[j].backlog
            if best < 0 or backlog < fewest:
                best, fewest, tied = j, backlog, 1
            elif tie == 1 and backlog == fewest:
                tied += 1
                if view.rng.random() * tied < 1.0:
                    best = j
    return best
