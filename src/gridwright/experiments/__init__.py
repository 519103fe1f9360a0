"""Experiments: replicated simulations, comparisons of policies, sweeps; here or on a cluster."""

from .adversary import Adversary, adversary
from .batch_result import BatchResult, DeadlineResult
from .chain_result import ChainResult, CustomerResult
from .compare import Comparison, Difference, compare
from .contest import Bout, Contest, Standing, contest
from .optimum import Best, Gap, Optimum, optimum
from .peer_result import PeerResult
from .random_systems import random_systems
from .result import ClassResult, Result, in_words
from .simulate import HORIZON, simulate
from .store import Store
from .sweep import Point, Sweep, sweep

__all__ = [
    "HORIZON",
    "Adversary",
    "BatchResult",
    "Best",
    "Bout",
    "ChainResult",
    "ClassResult",
    "Comparison",
    "Contest",
    "CustomerResult",
    "DeadlineResult",
    "Difference",
    "Gap",
    "Optimum",
    "PeerResult",
    "Point",
    "Result",
    "Standing",
    "Store",
    "Sweep",
    "adversary",
    "compare",
    "contest",
    "in_words",
    "optimum",
    "random_systems",
    "simulate",
    "sweep",
]
