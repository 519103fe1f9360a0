"""Guided-LPAS: LPAS that stays close to the routing of the allocation, which makes it stable."""

from ..allocation import grouped
from .choice import Tie, least_completion, least_completion_within
from .registry import push
from .view import EXCLUDED, Pairs, View


@push(plan=grouped, informed=None)
def guided_lpas(task_class: int, view: View, c: Pairs = 1.0, tie: Tie = Tie.lowest) -> int:
    """Send the task where it finishes first, among allocated machines not ahead of their share.

    A machine is ahead when it was sent π × (tasks of the class so far) + c √now or more; c is one
    number, or one for each class and machine, in tasks per √(time unit): in another time unit it
    is another number. Source: Al-Azzoni 2009, section 2.4.
    """
    best = least_completion_within(task_class, view, c, tie)
    if best != least_completion(task_class, view, 0):
        view.tally[EXCLUDED] += 1.0
    return best
