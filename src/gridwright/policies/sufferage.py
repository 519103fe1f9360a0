"""Sufferage: the task that would lose most comes first."""

from typing import Any

from .registry import batch
from .two_phase import REGRET, Full, greedy
from .view import BatchView


@batch
def sufferage(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Assign tasks one by one, the one that loses most if it gets its second-best machine.

    Source: Maheswaran et al. 1999.
    """
    return greedy(waiting, view, REGRET, full)
