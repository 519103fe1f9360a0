"""Fit a distribution to measured times: the family that is closest to them.

Waiting times depend first on the mean and the coefficient of variation, so every candidate has
those of the data (the exponential, the latter within a tenth). The Kolmogorov–Smirnov distance
chooses among families.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..model import (
    Deterministic,
    Distribution,
    Exponential,
    Floats,
    Gamma,
    Hyperexponential,
    Lognormal,
    Weibull,
)
from ..model.distribution import describe
from ..model.pmf import cumulative

CONSTANT = 1e-6
"""Times with a squared coefficient of variation below this count as constant."""
NEAR = 0.1
"""Largest distance of the coefficient of variation from 1 for times to be exponential."""
ALIKE = 0.02
"""By how much another family must be closer than the exponential to be preferred."""
FEWEST = 3
"""With fewer times than this, an exponential distribution is assumed."""


class Fitted(NamedTuple):
    """Measured times, and the distribution that stands for them."""

    size: int
    mean: float
    cv: float
    median: float
    largest: float
    distribution: Distribution
    """Its shape; the mean is given separately."""
    distance: float
    """The largest gap between its cumulative distribution and that of the data; nan if unknown."""

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return type(self.distribution).__name__.lower()

    def as_json(self) -> dict[str, Any]:
        """Return the fit as ``--json`` prints it."""
        words = self._asdict()
        words["distribution"] = describe(self.distribution, None)
        return words


def fit(times: Floats) -> Fitted:
    """Fit a distribution to times that are not negative.

    >>> rng = np.random.default_rng(1)
    >>> fit(rng.weibull(0.6, 4000)).distribution
    Weibull(shape=0.608...)
    >>> fit(np.full(9, 4.0)).name
    'deterministic'
    """
    count = len(times)
    mean = float(np.mean(times)) if count else float("nan")
    if count < FEWEST or not mean > 0:
        cv = float(np.std(times) / mean) if mean > 0 else float("nan")
        middle, largest = (np.median(times), np.max(times)) if count else (np.nan, np.nan)
        return Fitted(count, mean, cv, float(middle), float(largest), Exponential(), float("nan"))
    x = np.sort(times) / mean
    scv = float(np.var(x))
    best: Distribution = Deterministic()
    distance = float("nan")
    if scv > CONSTANT:
        distance, _, best = min(
            (_distance(x, one), k, one) for k, one in enumerate(_candidates(scv))
        )
        plain = _distance(x, Exponential())
        if abs(sqrt(scv) - 1) < NEAR and plain < distance + ALIKE:
            best, distance = Exponential(), plain
    return Fitted(
        count, mean, sqrt(scv), float(np.median(times)), float(np.max(times)), best, distance
    )


def _distance(x: Floats, distribution: Distribution) -> float:
    """Return the Kolmogorov–Smirnov distance of a distribution of mean 1 from the sorted data."""
    size, shares = len(x), cumulative(distribution, x)
    below = np.searchsorted(x, x, side="left") / size
    upto = np.searchsorted(x, x, side="right") / size
    return float(max((upto - shares).max(), (shares - below).max()))


def _candidates(scv: float) -> Iterator[Distribution]:
    """Yield distributions with this variability."""
    if 0.01 <= 1 / scv <= 1e9:
        yield Gamma(shape=1 / scv)
    low, high = 0.11, 50.0
    if Weibull(shape=high).variance < scv < Weibull(shape=low).variance:
        for _ in range(60):
            middle = (low + high) / 2
            is_low = Weibull(shape=middle).variance > scv
            low, high = (middle, high) if is_low else (low, middle)
        yield Weibull(shape=(low + high) / 2)
    yield Lognormal(scv=scv)
    if 1 <= scv <= 1e9:
        yield Hyperexponential(scv=scv)
