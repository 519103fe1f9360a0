"""Whether the number in system settles, or grows without end.

The run is cut into quarters, and the growth of the number in system from the second to the last is
held against two yardsticks. A system that grows for ever at a constant rate has 7/3 as much in the
last quarter as in the second; one that only fills up like a square root, as a critically loaded one
does, 3/2. And a critically loaded system, whose number is a random walk of arrivals and departures
held up at 0, grows by about √(2 × arrivals × time) and strays as much. A run is called unstable
when its growth is more than both would explain: RATIO times as much in the last quarter, and more
than EXPECTED + SPREAD / √replications of those square roots.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stability", "stability"]

RATIO = 1.6
EXPECTED = 0.4
SPREAD = 2.0


class Stability(NamedTuple):
    """A verdict, and the growth of the number in system per time unit that it rests on."""

    stable: bool
    growth: float


def stability(
    times: NDArray[np.float64], number: NDArray[np.float64], arrivals: float
) -> Stability:
    """Judge samples of the number in system [replication, sample] taken at given times.

    >>> times = np.linspace(0, 1000, 101)
    >>> stability(times, np.array([0.5 * times, 0.4 * times]), arrivals=10)
    Stability(stable=False, growth=0.45)
    """
    quarter = (times[-1] - times[0]) / 4
    second = (times > times[0] + quarter) & (times <= times[0] + 2 * quarter)
    last = times > times[0] + 3 * quarter
    before, after = float(number[:, second].mean()), float(number[:, last].mean())
    walk = np.sqrt(2 * arrivals * 2 * quarter)
    allowed = (EXPECTED + SPREAD / np.sqrt(len(number))) * walk
    unstable = after > RATIO * before and after - before > allowed
    return Stability(not unstable, round(float((after - before) / (2 * quarter)), 12))
