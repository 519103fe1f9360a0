"""Decide whether the number in system settles, grows without end, or whether a run cannot tell.

Three answers are possible, and each needs evidence.

Unstable: the long-run load is 1 or more, so that no policy can keep up. Or the run grows. It is cut
into quarters, and the number in system grows from the second to the last by more than two
yardsticks explain. Constant growth gives 7/3 as much in the last quarter as in the second, and the
square root by which a critically loaded system grows gives 3/2; RATIO lies between. And such a
system, a random walk held up at 0, grows by about √(variance × time) and strays as much, where the
variance per time unit is 2 × arrivals if all times are exponential, and more if machines fail or
times vary more. The growth must be more than EXPECTED + SPREAD / √replications of these roots.
While there are no more tasks than machines, the system may only be filling up.

Undecided, if any of these holds:

- The run is short for the load ρ. Near ρ = 1 the number in system settles after a few times
  variance / 2 / (arrivals × (1 − ρ))², or 1 / (arrivals × (1 − ρ)²) if all times are exponential.
  A run has to last RELAXATIONS of them. Of a system whose parts share no machine, the part that
  takes longest counts, with its own arrivals, load and variance. A load that is not known counts
  as UNKNOWN here.
- The queue is long. A critically loaded system has a mean of 0.53 × √(variance × horizon) over the
  run. MOST allows half of it, which a critically loaded system seldom stays below. If the queue is
  no more than EXPLAINED times what one machine with this load would have, EXPLAINED_MOST allows
  all of it.
- The replications agree that the number still grows: by a one-sided t test at the level
  SIGNIFICANT, and by more than the share SLIGHT. If nothing in the system is random, they all
  agree, and the number rises and falls with the times of the samples: it has to grow by ONE.

Stable otherwise.
"""

from math import ceil, floor, isfinite, log10, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EDGE = 1e-9
"""A load or capacity this close to 1 counts as 1."""
RATIO = 1.6
EXPECTED = 0.4
SPREAD = 2.0
RELAXATIONS = 8.0
UNKNOWN = 0.5
MOST = 0.25
EXPLAINED_MOST = 0.55
EXPLAINED = 3.0
SIGNIFICANT = 0.99
SLIGHT = 0.1
ONE = 1.0
LONGER = 2.0
"""The least factor by which a run that could not tell should be longer."""


class Stability(NamedTuple):
    """A verdict, and what it rests on."""

    stable: bool | None
    """None: the run is too short to tell."""
    growth: float
    """Tasks by which the number in system grows per time unit."""
    needed: float | None = None
    """If undecided: a horizon that would probably tell."""

    @property
    def word(self) -> str:
        """The verdict in one word: stable, unstable or undecided."""
        return {True: "stable", False: "unstable", None: "undecided"}[self.stable]


def stability(
    times: NDArray[np.float64],
    number: NDArray[np.float64],
    arrivals: float,
    *,
    load: float | None = None,
    variance: float | None = None,
    settling: float | None = None,
    waiting: float | None = None,
    machines: int = 0,
    busy: float = 0.0,
) -> Stability:
    """Judge samples of the number in system [replication, sample] taken at given times.

    Parameters
    ----------
    times, number
        When the samples were taken, and how many tasks were in the system.
    arrivals
        Tasks that arrive per time unit.
    load
        The long-run load of the system, if it is known.
    variance
        By how much the variance of the number in system grows per time unit at full load: 2 ×
        arrivals unless given.
    settling, waiting
        In how many time units the slowest part of the system settles, and how many tasks would
        wait if every part were one machine. Unless given, the system counts as one part.
    machines, busy
        How many machines there are, and how many of them are busy on average.

    Examples
    --------
    >>> times = np.linspace(0, 1000, 101)
    >>> stability(times, np.array([0.5 * times, 0.4 * times]), arrivals=10)
    Stability(stable=False, growth=0.45, needed=None)
    >>> stability(times, np.full((2, 101), 3.0), arrivals=10, load=0.75).word
    'stable'
    """
    horizon = float(times[-1] - times[0])
    quarter = horizon / 4
    is_second = (times > times[0] + quarter) & (times <= times[0] + 2 * quarter)
    second, last = number[:, is_second], number[:, times > times[0] + 3 * quarter]
    before, after = float(second.mean()), float(last.mean())
    growth = round((after - before) / (horizon / 2), 12)
    variance = 2 * arrivals if variance is None else variance
    allowed = (EXPECTED + SPREAD / sqrt(len(number))) * sqrt(variance * horizon / 2)
    grows = after > max(RATIO * before, machines) and after - before > allowed
    if grows or (load is not None and load >= 1 - EDGE):
        return Stability(False, growth)
    queue = max(float(number.mean()) - busy, 0.0)
    settles, most = 0.0, MOST
    if arrivals > 0:
        slack = arrivals * (1 - (UNKNOWN if load is None else load))
        settles = RELAXATIONS * (variance / 2 / slack**2 if settling is None else settling)
        if load is not None:
            usual = load * variance / 2 / slack if waiting is None else waiting
            most = EXPLAINED_MOST if queue <= EXPLAINED * usual else MOST
    level = (queue / most) ** 2 / variance if variance > 0 else 0.0
    if horizon >= max(settles, level) and not _still_rises(second, last):
        return Stability(True, growth)
    return Stability(None, growth, _rounded_up(max(settles, level, LONGER * horizon)))


def _still_rises(second: NDArray[np.float64], last: NDArray[np.float64]) -> bool:
    """Tell whether the replications agree that the number grows, and not just slightly."""
    from scipy.special import stdtrit

    rises = last.mean(axis=1) - second.mean(axis=1)
    if len(rises) < 2 or rises.mean() <= SLIGHT * second.mean():
        return False
    if (second == second[0]).all() and (last == last[0]).all():
        return bool(rises.mean() > ONE)
    error = rises.std(ddof=1) / sqrt(len(rises))
    return bool(rises.mean() > stdtrit(len(rises) - 1, SIGNIFICANT) * error)


def _rounded_up(horizon: float) -> float:
    """Round a horizon up to two digits.

    >>> _rounded_up(1234.5), _rounded_up(20000.0)
    (1300.0, 20000.0)
    """
    if not (horizon > 0 and isfinite(horizon)):
        return horizon
    unit = 10.0 ** (floor(log10(horizon)) - 1)
    return float(ceil(horizon / unit - 1e-9) * unit)
