"""Experiments: replicated simulations, comparisons of policies, sweeps; here or on a cluster."""

from .adversary import Adversary, adversary
from .ahead import Wanted, simulate_ahead, simulate_in_pieces
from .compare import Comparison, Difference, compare, with_known_load
from .contest import Bout, Contest, Standing, contest
from .device import GPU
from .families import FAMILIES, random_systems
from .gaps import Far, Gaps, gaps
from .optimum import Best, Gap, Optimum, lower_bound, optimum
from .over_time import SweepOverTime, sweep_over_time
from .result import ClassResult, Result, in_words
from .results_by_kind import BatchResult, ChainResult, CustomerResult, DeadlineResult, PeerResult
from .simulate import HORIZON, simulate
from .size import Size, size
from .store import Kept, Store
from .sweep import Point, Sweep, sweep

__all__ = [
    "FAMILIES",
    "GPU",
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
    "Far",
    "Gap",
    "Gaps",
    "Kept",
    "Optimum",
    "PeerResult",
    "Point",
    "Result",
    "Size",
    "Standing",
    "Store",
    "Sweep",
    "SweepOverTime",
    "Wanted",
    "adversary",
    "compare",
    "contest",
    "gaps",
    "in_words",
    "lower_bound",
    "optimum",
    "random_systems",
    "simulate",
    "simulate_ahead",
    "simulate_in_pieces",
    "size",
    "sweep",
    "sweep_over_time",
    "with_known_load",
]
