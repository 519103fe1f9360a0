"""The generalised cμ rule."""

from .choice import largest_index
from .registry import pull
from .view import View


@pull
def gcmu(machine: int, view: View) -> int:
    """Take the class with the largest wait × rate × cost there (Mandelbaum and Stolyar 2004)."""
    return largest_index(machine, view)
