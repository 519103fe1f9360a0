"""Systems, distributions and pmfs: plain data, validated once."""

from . import etc, mode
from .batch import BatchRun, Deadlines, ExecutionPmf
from .chain import (
    Customer,
    Links,
    Perturbation,
    RandomTemplates,
    Template,
    by_application,
    scaled_chains,
)
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
from .error import (
    GridClosedError,
    GridError,
    GridTimeoutError,
    GridwrightError,
    InputError,
    JobFailedError,
    JobLostError,
    JournalError,
    did_you_mean,
)
from .etc import Heterogeneity, heterogeneity
from .pmf import GridPmf, Robustness, robustness
from .system import Floats, System
from .uncertainty import Assumed, Changes, Delays, Failures, Inaccuracy, MarkovChain, Profile

__all__ = [
    "Assumed",
    "BatchRun",
    "Changes",
    "Customer",
    "Deadlines",
    "Delays",
    "Deterministic",
    "Distribution",
    "Erlang",
    "ExecutionPmf",
    "Exponential",
    "Failures",
    "Floats",
    "Gamma",
    "GridClosedError",
    "GridError",
    "GridPmf",
    "GridTimeoutError",
    "GridwrightError",
    "Heterogeneity",
    "Hyperexponential",
    "Inaccuracy",
    "InputError",
    "JobFailedError",
    "JobLostError",
    "JournalError",
    "Links",
    "Lognormal",
    "MarkovChain",
    "Perturbation",
    "Pmf",
    "Profile",
    "RandomTemplates",
    "Robustness",
    "System",
    "Template",
    "Uniform",
    "Weibull",
    "by_application",
    "did_you_mean",
    "etc",
    "heterogeneity",
    "mode",
    "robustness",
    "scaled_chains",
]
