"""Plain data: systems, distributions, and the matrices that describe unequal machines."""

from . import etc
from .assumed import Assumed, Inaccuracy
from .availability import MarkovChain
from .changes import Changes
from .distribution import (
    Deterministic,
    Distribution,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Pmf,
    Uniform,
    Weibull,
)
from .error import InputError, did_you_mean
from .failures import Failures
from .heterogeneity import Heterogeneity, heterogeneity
from .system import System

__all__ = [
    "Assumed",
    "Changes",
    "Deterministic",
    "Distribution",
    "Erlang",
    "Exponential",
    "Failures",
    "Gamma",
    "Heterogeneity",
    "Hyperexponential",
    "Inaccuracy",
    "InputError",
    "Lognormal",
    "MarkovChain",
    "Pmf",
    "System",
    "Uniform",
    "Weibull",
    "did_you_mean",
    "etc",
    "heterogeneity",
]
