"""Which question a printed cell asks, whatever it is about."""

from __future__ import annotations

from ..catalogue import Cell
from . import chain_question, decentralised, question
from .question import Question

__all__ = ["ask"]

CENTRAL = {**question.QUESTIONS, **chain_question.QUESTIONS}


def ask(cell: Cell) -> Question:
    """Return what a cell asks."""
    known = decentralised.QUESTIONS if decentralised.is_decentralised(cell) else CENTRAL
    return known[cell["metric"]](cell)
