"""Plain numbers: means with intervals, percentiles, and whether a run has settled."""

from .estimate import (
    CONFIDENCE,
    Estimate,
    Line,
    estimate,
    line,
    plus,
    prediction,
    ratio,
    share_text,
)
from .histogram import (
    BINS,
    PERCENTILES,
    WITHIN,
    bin_of,
    longer_than,
    quantile,
    share_within,
    tail_names,
    tails_of,
)
from .stability import EDGE, RELAXATIONS, Stability, stability

__all__ = [
    "BINS",
    "CONFIDENCE",
    "EDGE",
    "PERCENTILES",
    "RELAXATIONS",
    "WITHIN",
    "Estimate",
    "Line",
    "Stability",
    "bin_of",
    "estimate",
    "line",
    "longer_than",
    "plus",
    "prediction",
    "quantile",
    "ratio",
    "share_text",
    "share_within",
    "stability",
    "tail_names",
    "tails_of",
]
