"""Experiments: replicated simulations, comparisons of policies, sweeps; here or on a cluster."""

from .compare import Comparison, Difference, compare
from .result import ClassResult, Result
from .simulate import HORIZON, simulate
from .store import Store
from .sweep import Point, Sweep, sweep

__all__ = [
    "HORIZON",
    "ClassResult",
    "Comparison",
    "Difference",
    "Point",
    "Result",
    "Store",
    "Sweep",
    "compare",
    "simulate",
    "sweep",
]
