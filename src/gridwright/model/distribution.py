"""Distributions of times: one small class each, and how a system file names them.

A system scales every distribution to the mean that its rates, mean up-times and mean repair times
give; the distribution only says how times vary around the mean.

To add one, write one class with a docstring, its parameters, ``mean`` (if not 1), ``variance``
and ``sample``, in this file or in a file of your own that a system names:
``execution = { kind = "./mine.py:Triangular", mode = 0.2 }``. With ``log_transform`` too, the load
of a system whose machines fail counts the work that is lost.
"""

import inspect
import os
from abc import abstractmethod
from math import exp, expm1, gamma, log, log1p, pi, sqrt
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.random import Generator
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from .error import InputError, did_you_mean
from .record import Count, NonNegative, Positive, Record, explain, shortened
from .user_file import load_module

STEP = 0.01
"""Of integrals by the trapezoidal rule: where the integrand is smooth and vanishes at both ends,
the error is near rounding."""


class Distribution(Record):
    """Base class of the distributions of times, which are never negative.

    >>> class Triangular(Distribution):
    ...     "Between 0 and 1, most often near the mode."
    ...
    ...     mode: float = 0.5
    ...
    ...     @property
    ...     def mean(self):
    ...         return (1 + self.mode) / 3
    ...
    ...     @property
    ...     def variance(self):
    ...         return (1 - self.mode + self.mode**2) / 18
    ...
    ...     def sample(self, rng, size=None):
    ...         return rng.triangular(0, self.mode, 1, size)
    >>> round(Triangular(mode=0.2).variance, 4)
    0.0467
    """

    @property
    def mean(self) -> float:
        """The mean of a draw."""
        return 1.0

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of a draw."""

    @abstractmethod
    def sample(self, rng: Generator, size: int | None = None) -> Any:
        """Draw one number, or an array of them."""

    def log_transform(self, s: float) -> float | None:
        """Return ln E[e^(−sX)] of a draw X for any s: ∞ if infinite, None if it is not known.

        The logarithm keeps its digits where s is small.
        """
        return None

    @property
    def has_transform(self) -> bool:
        """Whether ``log_transform`` is known: a class with its own ``sample`` needs its own."""
        owner = next(k for k in type(self).__mro__ if {"sample", "log_transform"} & vars(k).keys())
        if "log_transform" not in vars(owner):
            return False
        try:
            return self.log_transform(1.0) is not None
        except Exception:
            return True  # its first use says what is wrong


class Exponential(Distribution):
    """Memoryless times.

    >>> Exponential().variance
    1.0
    """

    @property
    def variance(self) -> float:
        return 1.0

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return rng.standard_exponential(size)

    def log_transform(self, s: float) -> float:
        return _log_gamma_transform(1.0, s)


class Deterministic(Distribution):
    """Always the mean.

    >>> Deterministic().variance
    0.0
    """

    @property
    def variance(self) -> float:
        return 0.0

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return 1.0 if size is None else np.ones(size)

    def log_transform(self, s: float) -> float:
        return -s


class Hyperexponential(Distribution):
    """A mixture of exponentials: more variable than one of them alone.

    Give ``scv``, the squared coefficient of variation (1 or more), for two phases with balanced
    means (p₁m₁ = p₂m₂) and mean 1; or the ``probabilities`` and ``means`` of the phases. Waiting
    times depend on the third moment too, so a result should state the phases.

    >>> Hyperexponential(scv=2).variance
    2.0
    >>> Hyperexponential(probabilities=[0.5, 0.5], means=[1, 3]).mean
    2.0
    """

    scv: Annotated[float | None, Field(strict=True, ge=1, le=1e9)] = None
    probabilities: tuple[NonNegative, ...] = ()
    means: tuple[Positive, ...] = ()

    @model_validator(mode="after")
    def _one_description(self) -> Self:
        if (self.scv is None) == (not self.probabilities and not self.means):
            raise ValueError("give either scv, or probabilities and means")
        if self.scv is None:
            _check_weights(self.probabilities, self.means, "means")
        return self

    @property
    def phases(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The probabilities of the phases, and their means."""
        if self.scv is None:
            return self.probabilities, self.means
        root = sqrt((self.scv - 1) / (self.scv + 1))
        p, q = (1 + root) / 2, 1 / ((self.scv + 1) * (1 + root))  # q = 1 − p, kept exact
        return (p, q), (1 / (2 * p), 1 / (2 * q))

    @property
    def mean(self) -> float:
        return float(np.dot(*self.phases))

    @property
    def variance(self) -> float:
        if self.scv is not None:
            return self.scv
        return 2 * float(np.dot(self.probabilities, np.square(self.means))) - self.mean**2

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        probabilities, means = self.phases
        return _pick(rng, probabilities, means, size) * rng.standard_exponential(size)

    def log_transform(self, s: float) -> float:
        phases = np.array(self.phases)
        shares, means = phases[:, phases[0] > 0]
        if (s * means <= -1).any():
            return np.inf
        return _log_mean(np.log(shares), -np.log1p(s * means))


class Gamma(Distribution):
    """Gamma times of mean 1; the squared coefficient of variation is 1/shape.

    >>> Gamma(shape=4).variance
    0.25
    """

    shape: Annotated[float, Field(strict=True, ge=0.01, le=1e9)]

    @property
    def variance(self) -> float:
        return 1 / self.shape

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return rng.standard_gamma(self.shape, size) / self.shape

    def log_transform(self, s: float) -> float:
        return _log_gamma_transform(self.shape, s)


class Erlang(Distribution):
    """The sum of equal exponential stages, of mean 1 together.

    >>> Erlang(stages=5).variance
    0.2
    """

    stages: Count

    @property
    def variance(self) -> float:
        return 1 / self.stages

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return rng.standard_gamma(self.stages, size) / self.stages

    def log_transform(self, s: float) -> float:
        return _log_gamma_transform(self.stages, s)


class Weibull(Distribution):
    """Weibull times of mean 1; a shape below 1 is heavy-tailed, 1 is exponential.

    >>> round(Weibull(shape=0.6).variance, 3)
    3.091
    """

    shape: Annotated[float, Field(strict=True, ge=0.1, allow_inf_nan=False)]

    @property
    def variance(self) -> float:
        return gamma(1 + 2 / self.shape) / gamma(1 + 1 / self.shape) ** 2 - 1

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return rng.weibull(self.shape, size) / gamma(1 + 1 / self.shape)

    def log_transform(self, s: float) -> float:
        if self.shape == 1:
            return _log_gamma_transform(1.0, s)
        if s < 0 and self.shape < 1:
            return np.inf
        scaled, end = s / gamma(1 + 1 / self.shape), 6.0
        if s < 0:  # the integrand is e^(−s x + t − e^t), with x = e^(t / shape)
            grows, slower = log(-scaled), 1 - 1 / self.shape
            peak = (grows - log(self.shape)) / slower
            if peak > log(700 / (self.shape - 1)):  # the mean is beyond all numbers
                return (self.shape - 1) * exp(min(peak, 600.0))
            end += max(peak, 0.0)
            while end + exp(end) * expm1(grows - end * slower) > -40:
                end += 1
        t = np.arange(-60.0, end, STEP)
        return _log_mean(t - np.exp(t) + log(STEP), -scaled * np.exp(t / self.shape))


class Lognormal(Distribution):
    """Lognormal times of mean 1 with a given squared coefficient of variation.

    >>> Lognormal(scv=3).variance
    3.0
    """

    scv: Positive

    @property
    def variance(self) -> float:
        return self.scv

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        sigma = sqrt(log1p(self.scv))
        return np.exp(sigma * rng.standard_normal(size)) * exp(-(sigma**2) / 2)

    def log_transform(self, s: float) -> float:
        if s < 0:
            return np.inf
        sigma = sqrt(log1p(self.scv))
        step = STEP / max(sigma, 1.0)
        z = np.arange(-12.0, 12.0 + sigma, step)
        weights = log(step / sqrt(2 * pi)) - z**2 / 2
        return _log_mean(weights, -s * np.exp(sigma * z - sigma**2 / 2))


class Uniform(Distribution):
    """Uniform times between two bounds.

    >>> Uniform(low=1, high=3).mean
    2.0
    """

    low: NonNegative = 0.0
    high: Positive = 2.0

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low is {self.low:g}; expected less than high, {self.high:g}")
        return self

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        return (self.high - self.low) ** 2 / 12

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return rng.uniform(self.low, self.high, size)

    def log_transform(self, s: float) -> float:
        half = abs(s) * (self.high - self.low) / 2
        if half < 0.01:
            spread = half**2 / 6 - half**4 / 180
        else:  # ln(sinh(half) / half)
            spread = half + log1p(-exp(-2 * half)) - log(2 * half)
        return spread - s * self.mean


class Pmf(Distribution):
    """An empirical distribution: values and their probabilities.

    >>> Pmf(values=[1, 2, 6], probabilities=[0.5, 0.25, 0.25]).mean
    2.5
    """

    values: tuple[NonNegative, ...]
    probabilities: tuple[NonNegative, ...]

    @model_validator(mode="after")
    def _weights_fit(self) -> Self:
        _check_weights(self.probabilities, self.values, "values")
        if self.mean <= 0:
            raise ValueError("the mean is 0; expected a value > 0 with a probability > 0")
        return self

    @property
    def mean(self) -> float:
        return float(np.dot(self.probabilities, self.values))

    @property
    def variance(self) -> float:
        return float(np.dot(self.probabilities, (np.array(self.values) - self.mean) ** 2))

    def sample(self, rng: Generator, size: int | None = None) -> Any:
        return _pick(rng, self.probabilities, self.values, size)

    def log_transform(self, s: float) -> float:
        shares, values = np.array([self.probabilities, self.values])
        return _log_mean(np.log(shares[shares > 0]), -s * values[shares > 0])


DISTRIBUTIONS: dict[str, type[Distribution]] = {
    kind.__name__.lower(): kind for kind in Distribution.__subclasses__()
}
"""The distributions of this file by their names in system files."""


def _log_gamma_transform(shape: float, s: float) -> float:
    return -shape * log1p(s / shape) if s > -shape else np.inf


def _log_mean(log_weights: Any, exponents: Any) -> float:
    """Return the logarithm of the mean of e^exponent; the weights sum to 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        change = float(np.exp(log_weights) @ np.expm1(exponents))
    if abs(change) < 0.5:
        return log1p(change)
    terms = log_weights + exponents
    most = float(terms.max())
    return most + log(float(np.exp(terms - most).sum()))


def _check_weights(probabilities: tuple[float, ...], others: tuple[float, ...], name: str) -> None:
    if len(probabilities) != len(others):
        raise ValueError(f"{len(probabilities)} probabilities for {len(others)} {name}")
    if abs(sum(probabilities) - 1) > 1e-9:
        raise ValueError(f"the probabilities sum to {sum(probabilities):.10g}; expected 1")


def _pick(
    rng: Generator, probabilities: tuple[float, ...], values: tuple[float, ...], size: int | None
) -> Any:
    """Draw values by inversion."""
    steps = np.cumsum(probabilities[:-1])
    return np.array(values)[np.searchsorted(steps, rng.random(size), side="right")]


def parse(value: Any, folder: Path | None = None) -> Distribution:
    """Return the distribution of a name, or of a table with a ``kind`` and its parameters.

    >>> parse("exponential")
    Exponential()
    >>> parse({"kind": "weibull", "shape": 0.6})
    Weibull(shape=0.6)
    """
    if isinstance(value, Distribution):
        return value
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise InputError(
            f"{shortened(value)} is not a distribution; expected a name such as 'exponential', "
            "or a table such as { kind = 'weibull', shape = 0.6 }"
        )
    kind = _find(table["kind"], folder or Path())
    try:
        found = kind.model_validate({key: table[key] for key in table if key != "kind"})
    except ValidationError as error:
        raise InputError(f"{table['kind']}: {explain(error, kind)}") from None
    except TypeError as error:  # a class without variance or sample
        raise InputError(f"{table['kind']}: {error}") from None
    if kind not in DISTRIBUTIONS.values():
        _try(found, table["kind"])
    return found


def describe(distribution: Distribution, folder: Path | None = None) -> str | dict[str, Any]:
    """Return the name or table that stands for a distribution in a system file of a folder."""
    parameters = distribution.model_dump(mode="json", exclude_defaults=True)
    name = _name(type(distribution), folder)
    return {"kind": name, **parameters} if parameters else name


AnyDistribution = Annotated[
    Distribution,
    BeforeValidator(lambda value, info: parse(value, (info.context or {}).get("folder"))),
]
"""Field type: a distribution, or what ``parse`` takes."""


def _find(kind: str, folder: Path) -> type[Distribution]:
    if ".py" not in kind:
        if kind not in DISTRIBUTIONS:
            known = f"{', '.join(sorted(DISTRIBUTIONS))}, and your own as './FILE.py:CLASS'"
            hint = did_you_mean(kind, DISTRIBUTIONS) or f"; there are {known}"
            raise InputError(f"no distribution {kind!r}{hint}")
        return DISTRIBUTIONS[kind]
    file, _, name = kind.rpartition(":")
    if not name or not file.endswith(".py"):
        raise InputError(f"{kind!r} names no class; expected 'FILE.py:CLASS'")
    path = folder / file
    own = {
        key: item
        for key, item in vars(load_module(path)).items()
        if isinstance(item, type) and issubclass(item, Distribution) and item is not Distribution
    }
    if name not in own:
        raise InputError(f"{path} has no distribution {name!r}{did_you_mean(name, own)}")
    return own[name]


def _try(distribution: Distribution, kind: str) -> None:
    """Draw from a distribution of a user, to report its mistakes now."""
    try:
        mean, variance = float(distribution.mean), float(distribution.variance)
        draws = np.asarray(distribution.sample(np.random.default_rng(0), 100), dtype=float)
        power = distribution.log_transform(1.0) if distribution.has_transform else None
    except Exception as error:
        raise InputError(f"{kind}: {type(error).__name__}: {error}") from None
    if not (0 < mean < np.inf and variance >= 0):
        raise InputError(
            f"{kind} has mean {mean:g} and variance {variance:g}; expected > 0 and ≥ 0"
        )
    if draws.shape != (100,) or not (np.isfinite(draws).all() and (draws >= 0).all()):
        raise InputError(f"{kind} must return as many finite numbers ≥ 0 as sample() is asked for")
    if power is not None and not -mean * (1 + 1e-9) <= power <= 0:
        raise InputError(
            f"{kind} has log_transform(1) = {power:g}; expected between −mean, {-mean:g}, and 0"
        )


def _name(kind: type[Distribution], folder: Path | None) -> str:
    if DISTRIBUTIONS.get(kind.__name__.lower()) is kind:
        return kind.__name__.lower()
    try:
        file = Path(inspect.getfile(kind)).resolve()
    except (OSError, TypeError):
        name = kind.__name__
        raise InputError(
            f"{name} is not defined in a file, so no system file can name it"
        ) from None
    shown = Path(os.path.relpath(file, (folder or Path()).resolve())).as_posix()
    return f"{shown}:{kind.__name__}"
