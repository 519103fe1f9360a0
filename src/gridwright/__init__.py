"""Gridwright: manage work on unequal machines.

The names below are loaded when they are first used, so that importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .allocation import Allocation, allocate, change, verdict
    from .catalogue import load
    from .model import (
        Deterministic,
        Distribution,
        Erlang,
        Exponential,
        Failures,
        Gamma,
        Hyperexponential,
        InputError,
        Lognormal,
        MarkovChain,
        Pmf,
        System,
        Uniform,
        Weibull,
        etc,
        heterogeneity,
    )

__version__ = "0.1.0"

_HOME = {
    "allocation": ["Allocation", "allocate", "change", "verdict"],
    "catalogue": ["load"],
    "model": [
        "Deterministic",
        "Distribution",
        "Erlang",
        "Exponential",
        "Failures",
        "Gamma",
        "Hyperexponential",
        "InputError",
        "Lognormal",
        "MarkovChain",
        "Pmf",
        "System",
        "Uniform",
        "Weibull",
        "etc",
        "heterogeneity",
    ],
}
_PACKAGE = {name: package for package, names in _HOME.items() for name in names}

__all__ = sorted([*_PACKAGE, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _PACKAGE:
        raise AttributeError(f"module 'gridwright' has no attribute {name!r}")
    return getattr(import_module(f".{_PACKAGE[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
