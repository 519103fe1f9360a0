"""Plain numbers: means with intervals, and whether a run has settled."""

from .estimate import CONFIDENCE, Estimate, estimate, prediction, ratio
from .line import Line, line
from .stability import EDGE, Stability, stability

__all__ = [
    "CONFIDENCE",
    "EDGE",
    "Estimate",
    "Line",
    "Stability",
    "estimate",
    "line",
    "prediction",
    "ratio",
    "stability",
]
