"""Which question a printed cell asks, whatever it is about."""

from __future__ import annotations

from ..catalogue import Cell
from . import decentralised
from .question import QUESTIONS, Question

__all__ = ["ask"]


def ask(cell: Cell) -> Question:
    """Return what a cell asks."""
    if decentralised.is_decentralised(cell):
        return decentralised.QUESTIONS[cell["metric"]](cell)
    return QUESTIONS[cell["metric"]](cell)
