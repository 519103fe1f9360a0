"""LPAS for desktop grids."""

from ..allocation import vertex
from .choice import largest_index
from .registry import pull
from .view import View


@pull(plan=vertex)
def lpas_dg(machine: int, view: View) -> int:
    """Take the class with the largest wait × rate, among those allocated to the machine.

    With planner=grouped or planner=interior it is the modified policy of Table 3.14; with
    planner=dual or planner=dantzig more published class means are met (docs: which vertex).
    Source: Al-Azzoni 2009, section 3.3.
    """
    return largest_index(machine, view)
