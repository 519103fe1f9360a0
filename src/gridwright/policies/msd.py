"""Minimum expected completion, then the soonest deadline."""

from typing import Any

from .policy import batch
from .two_phase import DEADLINE, Full, greedy
from .view import BatchView


@batch
def msd(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Pick the task with the soonest deadline, where it is expected to be done soonest.

    Source: Smith et al., MSD: ties go to the least expected completion.
    """
    return greedy(waiting, view, DEADLINE, full)
