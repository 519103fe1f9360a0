"""A straight line through points."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Line", "line"]


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
