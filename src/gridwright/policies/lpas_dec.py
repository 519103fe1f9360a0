"""LPAS on a decentralised grid."""

from ..allocation import vertex
from .choice import Tie, least_completion
from .registry import peer
from .view import View


@peer(plan=vertex)
def lpas_dec(task_class: int, home: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Ask the machines that the home machine allocates; send the task where it finishes first.

    Source: Al-Azzoni 2009, section 4.2.
    """
    return least_completion(task_class, view, tie)
