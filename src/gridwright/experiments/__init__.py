"""Experiments: replicated simulations, and comparisons of policies."""

from .compare import Comparison, Difference, compare
from .result import ClassResult, Result
from .simulate import HORIZON, simulate
from .store import Store

__all__ = [
    "HORIZON",
    "ClassResult",
    "Comparison",
    "Difference",
    "Result",
    "Store",
    "compare",
    "simulate",
]
