"""LPAS-2/k: ask two machines that are drawn by the allocation."""

from ..allocation import grouped
from .choice import Tie, drawn, least_completion, permitted, sooner
from .registry import push
from .view import View


@push(plan=grouped, informed=2)
def lpas_2k(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Draw two machines by the allocation; send the task where it finishes first.

    Source: Al-Azzoni 2009, section 2.3.
    """
    if permitted(task_class, view) <= 2:
        return least_completion(task_class, view, tie)
    first = drawn(task_class, view, -1)
    return sooner(task_class, view, first, drawn(task_class, view, first), tie)
