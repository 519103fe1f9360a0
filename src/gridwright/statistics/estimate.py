"""A mean with its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95
ROUNDING = 1e-12
"""A share of a mean that is no width of an interval, but what sums of floats are off by."""


class Estimate(NamedTuple):
    """A mean and its 95 % confidence interval; without an interval low and high are NaN.

    >>> Estimate(5.17, 5.14, 5.2)
    Estimate(5.170 ± 0.030)
    >>> Estimate(7 - 2e-15, 7 - 3e-15, 7 - 1e-15)
    Estimate(7 ± 0)
    """

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def overlaps(self, low: float, high: float) -> bool:
        """Tell whether the interval has a point in common with another."""
        return self.low <= high and low <= self.high

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as ``--json`` prints it; what is not a number is None."""
        return {name: value if isfinite(value) else None for name, value in self._asdict().items()}

    def __repr__(self) -> str:
        return f"Estimate({self})"

    def __str__(self) -> str:
        if not isfinite(self.half_width):
            return f"{self.mean:.4g}"
        if self.half_width <= ROUNDING * abs(self.mean):
            return f"{self.mean:.6g} ± 0"
        decimals = max(0, 1 - int(np.floor(np.log10(self.half_width))))
        return f"{self.mean:.{decimals}f} ± {self.half_width:.{decimals}f}"


def share_text(share: float, decimals: int) -> str:
    """Write a share; a small one that is not 0 is not written as 0.

    >>> share_text(0.2504, 3), share_text(0.00033, 2), share_text(0.0, 2)
    ('0.250', '<0.01', '0.00')
    """
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if 0 < share < least / 2 else f"{share:.{decimals}f}"


def estimate(values: Sequence[float] | Any) -> Estimate:
    """Estimate a mean from independent replications (Student t); NaN values are left out.

    >>> estimate([4.0, 5.0, 6.0])
    Estimate(5.0 ± 2.5)
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    if len(known) == 0:
        return Estimate(nan, nan, nan)
    mean = float(known.mean())
    if len(known) == 1:
        return Estimate(mean, nan, nan)
    half = student(len(known) - 1) * float(known.std(ddof=1)) / sqrt(len(known))
    return Estimate(mean, mean - half, mean + half)


def plus(first: Estimate, second: Estimate) -> Estimate:
    """Add two independent estimates.

    >>> plus(Estimate(5.0, 2.0, 8.0), Estimate(1.0, -3.0, 5.0))
    Estimate(6.0 ± 5.0)
    """
    mean, half = first.mean + second.mean, hypot(first.half_width, second.half_width)
    return Estimate(mean, mean - half, mean + half)


def prediction(values: Sequence[float] | Any) -> Estimate:
    """Estimate a mean, with the interval that one more value falls into with 95 %.

    >>> prediction([4.0, 5.0, 6.0])
    Estimate(5.0 ± 5.0)
    """
    mean, low, high = estimate(values)
    half = (high - low) / 2 * sqrt(np.count_nonzero(~np.isnan(values)) + 1)
    return Estimate(mean, mean - half, mean + half)


def ratio(values: Sequence[float] | Any, references: Sequence[float] | Any) -> Estimate:
    """Estimate the ratio of two means from paired replications (linearised, Student t).

    >>> ratio([2.0, 4.0, 6.1], [1.0, 2.0, 3.0])
    Estimate(2.017 ± 0.055)
    """
    above, below = np.asarray(values, dtype=float), np.asarray(references, dtype=float)
    known = ~(np.isnan(above) | np.isnan(below))
    above, below = above[known], below[known]
    if len(above) == 0 or below.mean() == 0:
        return Estimate(nan, nan, nan)
    mean = float(above.mean() / below.mean())
    if len(above) == 1:
        return Estimate(mean, nan, nan)
    spread = float((above - mean * below).std(ddof=1)) / float(abs(below.mean()))
    half = student(len(above) - 1) * spread / sqrt(len(above))
    return Estimate(mean, mean - half, mean + half)


def student(freedom: int) -> float:
    """Return the quantile of Student's t distribution that a two-sided interval needs."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


class Line(NamedTuple):
    """A straight line, and the share of the points' variance that it explains."""

    slope: float
    intercept: float
    r2: float

    def at(self, x: float) -> float:
        """Return the height of the line."""
        return self.intercept + self.slope * x


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """Lay a line through points, by least squares.

    >>> line([0, 1, 2], [1, 3, 5])
    Line(slope=2.0, intercept=1.0, r2=1.0)
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if across.shape != up.shape or across.ndim != 1 or len(np.unique(across)) < 2:
        raise ValueError("a line needs points at two places at least")
    off, high = across - across.mean(), up - up.mean()
    slope = float(off @ high / (off @ off))
    left, total = high - slope * off, float(high @ high)
    r2 = 1.0 - float(left @ left) / total if total > 0 else 1.0
    return Line(slope, float(up.mean() - slope * across.mean()), r2)
