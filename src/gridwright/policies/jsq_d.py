"""JSQ(d): join the shortest of d queues drawn at random."""

from .choice import permitted
from .registry import push
from .view import INFORMED, Count, View


@push(informed=None)
def jsq_d(task_class: int, view: View, d: Count = 2) -> int:
    """Draw d machines at random; send the task to the one with the fewest tasks.

    All machines that can run the task are equally likely, and no machine is drawn twice; of equals
    the task goes to any. Source: Vvedenskaya, Dobrushin and Karpelevich 1996; Mitzenmacher 2001.
    """
    left = permitted(task_class, view)
    wanted = min(d, left)
    view.tally[INFORMED] += wanted
    best, fewest, tied = -1, 0, 0
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0 and view.machines[j].up:
            if view.rng.random() * left < wanted:  # as many of those left as are still wanted
                wanted -= 1
                backlog = view.machines[j].backlog
                if best < 0 or backlog < fewest:
                    best, fewest, tied = j, backlog, 1
                elif backlog == fewest:
                    tied += 1
                    if view.rng.random() * tied < 1.0:
                        best = j
            left -= 1
    return best
