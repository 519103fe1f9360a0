"""Max-min: long tasks first."""

from typing import Any

from .registry import batch
from .two_phase import LATEST, Full, greedy
from .view import BatchView


@batch
def max_min(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Assign tasks one by one, always the one whose earliest completion is latest.

    Source: Ibarra and Kim 1977; Maheswaran et al. 1999.
    """
    return greedy(waiting, view, LATEST, full)
