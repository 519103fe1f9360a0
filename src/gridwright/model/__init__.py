"""Plain data: systems, distributions, and the matrices that describe unequal machines."""

from . import etc
from .assumed import Assumed, Inaccuracy
from .availability import MarkovChain
from .chain import Customer, Perturbation, RandomTemplates, Template, scaled_chains
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
from .expansion import by_application
from .failures import Failures
from .heterogeneity import Heterogeneity, heterogeneity
from .system import System

__all__ = [
    "Assumed",
    "Customer",
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
    "Perturbation",
    "Pmf",
    "RandomTemplates",
    "System",
    "Template",
    "Uniform",
    "Weibull",
    "by_application",
    "did_you_mean",
    "etc",
    "heterogeneity",
    "scaled_chains",
]
