"""K-percent best."""

from .choice import Tie, fastest, least_completion
from .registry import push
from .view import View


@push(plan=fastest)
def kpb(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Send the task where it finishes first, among the k machines that run its class fastest.

    Source: Maheswaran et al. 1999.
    """
    return least_completion(task_class, view, tie)
