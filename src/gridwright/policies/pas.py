"""Price affinity scheduling."""

from ..allocation import prices
from .choice import Tie, least_completion
from .contract import push
from .view import View


@push(plan=prices)
def pas(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Least expected completion time where the class earns enough of the machine's worth."""
    return least_completion(task_class, view, tie)
