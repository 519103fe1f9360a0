"""Probability mass functions of times on a grid, and the robustness of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gamma, log1p, sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

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
from .error import InputError
from .record import freeze
from .system import Floats

MOST_BINS = 4096
"""The most bins of a pmf; the last bin holds all that is later."""
LOST = 1e-3
"""The most probability that the last bin may collect; with more, the bins are too narrow."""
TAIL = 1e-6
"""A distribution is cut where less probability than this is left."""


@dataclass(frozen=True, eq=False)
class GridPmf:
    """The probabilities of the times start, start + width, start + 2 × width and so on.

    A shift moves the start and a convolution adds the starts, so that neither rounds times.

    >>> run = GridPmf(5, [0, 0.5, 0.5])
    >>> run.mean, run.convolve(run).mass.tolist()
    (7.5, [0.0, 0.0, 0.25, 0.5, 0.25])
    >>> run.shift(100).by(106)
    0.5
    """

    width: float
    mass: Any  # probabilities, which become a read-only array
    start: float = 0.0

    def __post_init__(self) -> None:
        mass = np.array(self.mass, dtype=float)
        if not 0 < self.width < np.inf:
            raise InputError(f"the width of a pmf is {self.width:g}; expected a number > 0")
        if mass.ndim != 1 or not len(mass) or not (mass >= 0).all():
            raise InputError("a pmf needs a list of probabilities, none of them negative")
        if abs(mass.sum() - 1) > 1e-9:
            raise InputError(f"the probabilities sum to {mass.sum():.10g}; expected 1")
        object.__setattr__(self, "mass", freeze(mass / mass.sum()))

    @classmethod
    def from_samples(cls, samples: Any, width: float) -> Self:
        """Make the histogram of measured times; a time is at least one width.

        >>> GridPmf.from_samples([4, 6, 11, 2], width=5).mass.tolist()
        [0.0, 0.75, 0.25]
        """
        times = np.asarray(samples, dtype=float)
        if not times.size or not (np.isfinite(times) & (times >= 0)).all():
            raise InputError("a pmf needs measured times, none of them negative")
        return cls.from_histogram(times, np.full(times.size, 1 / times.size), width)

    @classmethod
    def from_histogram(cls, values: Any, probabilities: Any, width: float) -> Self:
        """Put values with their probabilities onto the grid, each in the bin nearest to it."""
        bins = np.maximum(1, np.floor(np.asarray(values, dtype=float) / width + 0.5)).astype(int)
        if bins.max() > 1_000_000:
            raise InputError(f"a pmf of width {width:g} has {bins.max():,} bins; choose it wider")
        mass = np.bincount(bins, np.asarray(probabilities, dtype=float))
        return cls(width, mass.astype(float))

    @classmethod
    def of(cls, distribution: Distribution, mean: float, width: float) -> Self:
        """Put a distribution, scaled to a mean, onto the grid.

        >>> from gridwright import Exponential
        >>> round(GridPmf.of(Exponential(), mean=100, width=5).mean, 1)
        100.1
        """
        scale = width * distribution.mean / mean
        bins = 64
        while bins < MOST_BINS and 1 - cumulative(distribution, (bins - 0.5) * scale) > TAIL:
            bins *= 2
        if 1 - cumulative(distribution, (bins - 0.5) * scale) > LOST:
            raise InputError(
                f"a mean of {mean:g} needs more than {MOST_BINS:,} bins of width {width:g}; "
                "choose it wider"
            )
        edges = (np.arange(1, bins) + 0.5) * scale
        below = np.asarray(cumulative(distribution, edges), dtype=float)
        enough = int(np.searchsorted(below, 1 - TAIL)) + 1
        below = np.append(below[: enough - 1], 1.0)
        return cls(width, np.concatenate([[0.0], np.diff(below, prepend=0.0)]))

    @property
    def values(self) -> Floats:
        """The times that the bins stand for."""
        return np.asarray(self.start + self.width * np.arange(len(self.mass)), dtype=float)

    @property
    def mean(self) -> float:
        """The mean time."""
        return float(self.start + self.width * np.dot(self.mass, np.arange(len(self.mass))))

    @property
    def variance(self) -> float:
        """The variance of the time."""
        return float(np.dot(self.mass, (self.values - self.mean) ** 2))

    @property
    def cdf(self) -> Floats:
        """The probability of finishing by each of the values; the last is 1."""
        return np.asarray(np.append(np.cumsum(self.mass)[:-1], 1.0))

    def by(self, time: float) -> float:
        """Return the probability of finishing by a time."""
        return float(self.mass[: self._bins_by(time)].sum())

    def shift(self, time: float) -> Self:
        """Return the pmf of a time that much later."""
        return type(self)(self.width, self.mass, self.start + time)

    def convolve(self, other: GridPmf) -> Self:
        """Return the pmf of the sum of two independent times."""
        same = self.width == other.width or np.isclose(self.width, other.width, rtol=1e-12)
        if not same:
            widths = f"{self.width:g} and {other.width:g}"
            raise InputError(f"pmfs of widths {widths}; expected the same")
        return type(self)(self.width, np.convolve(self.mass, other.mass), self.start + other.start)

    def truncate(self, time: float) -> Self:
        """Return the pmf given that the task finishes by a time.

        >>> GridPmf(1, [0, 0.5, 0.25, 0.25]).truncate(2).mass.round(3).tolist()
        [0.0, 0.667, 0.333]
        """
        kept = self.mass[: self._bins_by(time)]
        if kept.sum() <= 0:
            raise InputError(f"it cannot finish by {time:g}")
        return type(self)(self.width, kept / kept.sum(), self.start)

    def after(self, time: float) -> Self:
        """Return the pmf given that the task is not finished at a time.

        >>> GridPmf(1, [0, 0.5, 0.25, 0.25]).after(1).mass.tolist()
        [0.0, 0.0, 0.5, 0.5]
        """
        left = np.where(np.arange(len(self.mass)) >= self._bins_by(time), self.mass, 0.0)
        if left.sum() <= 0:
            raise InputError(f"it must finish by {time:g}")
        return type(self)(self.width, left / left.sum(), self.start)

    def gather(self, bins: int) -> Self:
        """Return a pmf of at most so many bins, the last of which holds the tail.

        >>> GridPmf(1, [0, 0.5, 0.25, 0.25]).gather(3).mass.tolist()
        [0.0, 0.5, 0.5]
        """
        if bins < 1:
            raise InputError(f"bins is {bins}; expected at least 1")
        kept = np.array(self.mass[:bins])
        kept[-1] += self.mass[bins:].sum()
        return type(self)(self.width, kept, self.start)

    def scale(self, factor: float) -> Self:
        """Return the pmf of the time multiplied by a factor, with exactly that mean.

        A time between two bins is split between them; no time is shorter than one width.
        """
        if not 0 < factor < np.inf:
            raise InputError(f"the factor is {factor:g}; expected a number > 0")
        bins = np.arange(len(self.mass))
        at = np.maximum(bins * factor, np.minimum(1, bins))
        low = np.floor(at).astype(int)
        share = at - low
        mass = np.zeros(int(low.max()) + 2)
        np.add.at(mass, low, self.mass * (1 - share))
        np.add.at(mass, low + 1, self.mass * share)
        return type(self)(self.width, np.trim_zeros(mass, "b"), self.start * factor)

    def quantile(self, share: float) -> float:
        """Return the first time by which it finishes with at least this probability."""
        place = int(np.searchsorted(self.cdf, share))
        return float(self.values[min(place, len(self.mass) - 1)])

    def _bins_by(self, time: float) -> int:
        """Count the bins that are not later than a time."""
        if time == np.inf:
            return len(self.mass)
        bins = int(np.floor((time - self.start) / self.width + 1e-9)) + 1
        return max(0, min(len(self.mass), bins))


def moved(pmf: GridPmf, bins: int) -> GridPmf:
    """Return a pmf of execution times some bins later or earlier, never shorter than one width."""
    mass = np.zeros(max(len(pmf.mass) + bins, 2))
    np.add.at(mass, np.maximum(np.arange(len(pmf.mass)) + bins, 1), pmf.mass)
    return GridPmf(pmf.width, mass)


DRAWS = 100_000
"""How many draws stand for a distribution of a user, whose cdf is unknown."""


def cumulative(distribution: Distribution, at: Any) -> Any:
    """Return P(draw ≤ at), for a number or an array of them.

    >>> cumulative(Uniform(low=1, high=3), 1.5)
    np.float64(0.25)
    """
    x = np.asarray(at, dtype=float)
    match distribution:
        case Deterministic():
            return (x >= 1.0).astype(float)[()]
        case Hyperexponential():
            phases = zip(*distribution.phases, strict=True)
            return sum(p * -np.expm1(-x / mean) for p, mean in phases)
        case Gamma(shape=shape) | Erlang(stages=shape):
            from scipy.special import gammainc

            return gammainc(shape, x * shape)
        case Weibull(shape=shape):
            return -np.expm1(-((x * gamma(1 + 1 / shape)) ** shape))
        case Lognormal(scv=scv):
            from scipy.special import ndtr

            sigma = sqrt(log1p(scv))
            return ndtr((np.log(np.maximum(x, 1e-300)) + sigma**2 / 2) / sigma)
        case Uniform(low=low, high=high):
            return np.clip((x - low) / (high - low), 0, 1)[()]
        case Pmf(values=values, probabilities=probabilities):
            order = np.argsort(values)
            steps = np.concatenate([[0.0], np.cumsum(np.array(probabilities)[order])])
            return steps[np.searchsorted(np.array(values)[order], x, side="right")]
        case _ if type(distribution) is Exponential:
            return -np.expm1(-x)
        case _:
            draws = _draws(distribution)
            return np.searchsorted(draws, x, side="right") / len(draws)


@lru_cache(maxsize=8)
def _draws(distribution: Distribution) -> NDArray[np.float64]:
    found = np.asarray(distribution.sample(np.random.default_rng(0), DRAWS), dtype=float)
    return np.sort(found)


NEVER = 1e-12
"""Probabilities below this count as 0."""


class Robustness(NamedTuple):
    """How likely the tasks on machines are on time."""

    rho: float
    """ρ, the probability that all tasks are on time."""
    counted: float
    """The published count: Σ ρ_j (n_j − m_j), tasks that cannot be on time left out of both."""
    expected: float
    """The expected number on time, Σ P(finish ≤ deadline)."""


def robustness(*machines: Sequence[tuple[GridPmf, float]]) -> Robustness:
    """Compute the robustness of a schedule: the (pmf, deadline) of each machine's tasks in order.

    The first pmf is that of the finish in absolute time: ``pmf.shift(now)`` if the machine is idle,
    ``pmf.shift(begun).after(now)`` if the task runs. The others are of execution times.

    >>> run = GridPmf(1, [0, 0.5, 0.5])
    >>> robustness([(run.shift(10), 11), (run, 13)])
    Robustness(rho=0.5, counted=1.0, expected=1.25)
    """
    rho, counted, expected = 1.0, 0.0, 0.0
    for tasks in machines:
        own, missed = 1.0, 0
        given: GridPmf | None = None
        free: GridPmf | None = None
        for pmf, deadline in tasks:
            given = pmf if given is None else given.convolve(pmf)
            free = pmf if free is None else free.convolve(pmf)
            expected += free.by(deadline)
            chance = given.by(deadline)
            if chance <= NEVER:
                missed += 1
            else:
                own *= chance
                given = given.truncate(deadline)
        rho *= 0.0 if missed else own
        counted += own * (len(tasks) - missed)
    return Robustness(rho, counted, expected)
