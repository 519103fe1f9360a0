"""Gridwright: manage work on unequal machines.

The names below are loaded when they are first used, so that importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .tabular import register_painter

if TYPE_CHECKING:
    from .allocation import Allocation, allocate, change, verdict
    from .catalogue import load
    from .experiments import (
        Adversary,
        Comparison,
        Contest,
        Optimum,
        Result,
        Sweep,
        adversary,
        compare,
        contest,
        optimum,
        random_systems,
        simulate,
        sweep,
    )
    from .grid import Grid
    from .model import (
        Deterministic,
        Distribution,
        Erlang,
        Exponential,
        Failures,
        Gamma,
        GridClosedError,
        GridError,
        GridPmf,
        GridwrightError,
        Hyperexponential,
        InputError,
        JobFailedError,
        JobLostError,
        JournalError,
        Lognormal,
        MarkovChain,
        Pmf,
        Robustness,
        System,
        Uniform,
        Weibull,
        etc,
        heterogeneity,
        robustness,
    )
    from .policies import ChainView, Policy, View, batch, chain, peer, pull, push
    from .reproduction import reproduce
    from .statistics import Estimate

__version__ = "0.1.0"

__all__ = [
    "Adversary",
    "Allocation",
    "ChainView",
    "Comparison",
    "Contest",
    "Deterministic",
    "Distribution",
    "Erlang",
    "Estimate",
    "Exponential",
    "Failures",
    "Gamma",
    "Grid",
    "GridClosedError",
    "GridError",
    "GridPmf",
    "GridwrightError",
    "Hyperexponential",
    "InputError",
    "JobFailedError",
    "JobLostError",
    "JournalError",
    "Lognormal",
    "MarkovChain",
    "Optimum",
    "Pmf",
    "Policy",
    "Result",
    "Robustness",
    "Sweep",
    "System",
    "Uniform",
    "View",
    "Weibull",
    "__version__",
    "adversary",
    "allocate",
    "batch",
    "chain",
    "change",
    "compare",
    "contest",
    "etc",
    "heterogeneity",
    "load",
    "optimum",
    "peer",
    "pull",
    "push",
    "random_systems",
    "reproduce",
    "robustness",
    "simulate",
    "sweep",
    "verdict",
]


PACKAGES = (
    "model",
    "statistics",
    "catalogue",
    "allocation",
    "policies",
    "experiments",
    "reproduction",
    "grid",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for package in PACKAGES:
            module = import_module(f".{package}", __name__)
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'gridwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def _draw(found: Any) -> Any:
    """Draw a result; pictures are loaded when the first one is drawn."""
    return import_module(".plots", __name__).draw(found)


register_painter(_draw)
