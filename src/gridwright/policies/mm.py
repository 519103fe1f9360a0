"""Minimum expected completion, then the soonest of all."""

from typing import Any

from .policy import batch
from .two_phase import SOONEST, Full, greedy
from .view import BatchView


@batch
def mm(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Pick the task that is expected to be done soonest, where it would be, again and again.

    Source: Smith et al., MM: ties go to the soonest deadline.
    """
    return greedy(waiting, view, SOONEST, full)
