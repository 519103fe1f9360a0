"""Minimum completion time on a decentralised grid."""

from .choice import Tie, least_completion
from .registry import peer
from .view import View


@peer
def mct_dec(task_class: int, home: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Ask every machine; send the task where it is expected to finish first.

    Source: Al-Azzoni 2009, section 4.3.
    """
    return least_completion(task_class, view, tie)
