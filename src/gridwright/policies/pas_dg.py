"""Price affinity scheduling for desktop grids."""

from ..allocation import prices
from .choice import largest_index
from .contract import pull
from .view import View


@pull(plan=prices, idle="fastest")
def pas_dg(machine: int, view: View) -> int:
    """Take the largest wait × rate of the classes that earn enough of the machine's worth."""
    return largest_index(machine, view)
