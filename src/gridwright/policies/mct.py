"""Minimum completion time."""

from .choice import Tie, least_completion
from .registry import push
from .view import View


@push
def mct(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Send every task where it is expected to finish first (Maheswaran et al. 1999)."""
    return least_completion(task_class, view, tie)
