"""Minimum expected completion, then the earliest deadline."""

from typing import Any

from .registry import batch
from .two_phase import DEADLINE, Full, greedy
from .view import BatchView


@batch
def msd(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Assign tasks one by one, the one with the earliest deadline, where it finishes first.

    Source: Smith et al., MSD: ties go to the least expected completion.
    """
    return greedy(waiting, view, DEADLINE, full)
