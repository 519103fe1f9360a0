"""Min-min: short tasks first."""

from typing import Any

from .registry import batch
from .two_phase import SOONEST, Full, greedy
from .view import BatchView


@batch
def min_min(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Assign tasks one by one, always the one that can finish first.

    Source: Ibarra and Kim 1977; Maheswaran et al. 1999.
    """
    return greedy(waiting, view, SOONEST, full)
