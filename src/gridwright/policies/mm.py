"""Minimum expected completion, then the earliest completion of all."""

from typing import Any

from .registry import batch
from .two_phase import SOONEST, Full, greedy
from .view import BatchView


@batch
def mm(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Assign tasks one by one, the one that can finish first; the earlier deadline breaks ties.

    Source: Smith et al., MM.
    """
    return greedy(waiting, view, SOONEST, full)
