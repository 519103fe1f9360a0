"""Plain numbers: means with intervals, and whether a run has settled."""

from .estimate import CONFIDENCE, Estimate, Line, estimate, line, prediction, ratio
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
