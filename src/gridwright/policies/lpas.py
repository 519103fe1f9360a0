"""LP-based affinity scheduling."""

from ..allocation import grouped
from .choice import Tie, least_completion
from .registry import push
from .view import View


@push(plan=grouped)
def lpas(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Send the task where it finishes first, among the machines allocated to its class.

    Source: Al-Azzoni 2009, section 2.2.
    """
    return least_completion(task_class, view, tie)
