"""Fit a distribution to measured times: the family that is closest to them.

Waiting times depend first on the mean and the coefficient of variation, so every candidate has
those of the data (the exponential, the latter within a tenth). The Kolmogorov–Smirnov distance
chooses among families.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gamma, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import (
    Deterministic,
    Distribution,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Weibull,
)
from ..model.distribution import describe

Floats = NDArray[np.float64]
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
        found = [
            (_distance(x, shares), k, one) for k, (one, shares) in enumerate(_candidates(x, scv))
        ]
        distance, _, best = min(found)
        plain = _distance(x, 1 - np.exp(-x))
        if abs(sqrt(scv) - 1) < NEAR and plain < distance + ALIKE:
            best, distance = Exponential(), plain
    return Fitted(
        count, mean, sqrt(scv), float(np.median(times)), float(np.max(times)), best, distance
    )


def _distance(x: Floats, shares: Floats) -> float:
    """Return the Kolmogorov–Smirnov distance, from the fitted cumulative values at the data."""
    size = len(x)
    below = np.searchsorted(x, x, side="left") / size
    upto = np.searchsorted(x, x, side="right") / size
    return float(max((upto - shares).max(), (shares - below).max()))


def _candidates(x: Floats, scv: float) -> Iterator[tuple[Distribution, Floats]]:
    """Yield distributions with this variability, and their cumulative values at the data."""
    from scipy.special import gammainc, ndtr

    if 0.01 <= 1 / scv <= 1e9:
        yield Gamma(shape=1 / scv), gammainc(1 / scv, x / scv)
    shape = _weibull_shape(scv)
    if shape is not None:
        yield Weibull(shape=shape), 1 - np.exp(-((x * gamma(1 + 1 / shape)) ** shape))
    sigma = sqrt(log1p(scv))
    with np.errstate(divide="ignore"):
        yield Lognormal(scv=scv), ndtr((np.log(x) + sigma**2 / 2) / sigma)
    if 1 <= scv <= 1e9:
        mixed = Hyperexponential(scv=scv)
        parts = zip(*mixed.phases, strict=True)
        yield mixed, 1 - np.sum([p * np.exp(-x / m) for p, m in parts], axis=0)


def _weibull_shape(scv: float) -> float | None:
    low, high = 0.11, 50.0
    if not _weibull_scv(high) < scv < _weibull_scv(low):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _weibull_scv(middle) > scv else (low, middle)
    return (low + high) / 2


def _weibull_scv(shape: float) -> float:
    return gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1
