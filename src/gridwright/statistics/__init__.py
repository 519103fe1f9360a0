"""Plain numbers: means with intervals, and whether a run has settled."""

from .estimate import CONFIDENCE, Estimate, estimate, prediction, ratio
from .stability import Stability, stability

__all__ = ["CONFIDENCE", "Estimate", "Stability", "estimate", "prediction", "ratio", "stability"]
