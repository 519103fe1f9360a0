"""Minimum expected completion, then the most urgent."""

from typing import Any

from .registry import batch
from .two_phase import URGENT, Full, greedy
from .view import BatchView


@batch
def mmu(waiting: Any, view: BatchView, full: Full = Full.leaves) -> int:
    """Assign tasks one by one, the one with the least slack, where it finishes first.

    Source: Smith et al., MMU: greatest 1 / (deadline − expected completion).
    """
    return greedy(waiting, view, URGENT, full)
