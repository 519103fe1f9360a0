"""K-percent best on a decentralised grid."""

from .choice import Tie, fastest, least_completion
from .registry import peer
from .view import View


@peer(plan=fastest)
def kpb_dec(task_class: int, home: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Ask the k machines that run the class fastest; send the task where it finishes first.

    Speeds are those that the home machine knows. Source: Al-Azzoni 2009, section 4.3.
    """
    return least_completion(task_class, view, tie)
