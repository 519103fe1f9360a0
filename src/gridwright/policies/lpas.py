"""LP-based affinity scheduling."""

from ..allocation import grouped
from .choice import Tie, least_completion
from .policy import push
from .view import View


@push(plan=grouped)
def lpas(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Least expected completion time among the machines that the allocation gives to the class.

    Source: Al-Azzoni 2009, section 2.2.
    """
    return least_completion(task_class, view, tie)
