"""Percentiles of times, and a histogram of times in constant memory, exact to 1 %.

Between one power of two and the next there are ``PARTS`` bins of equal width, so a bin is at most
1/128 as wide as the times in it. That holds for times from 10⁻¹² to 10¹⁵.

The tasks of a bin are spread evenly over it, unless it stands out from the bins around it. Then
they took the same time, and count as if they took the shortest time of the bin: a limit of 2 holds
if all took 2. From 2⁷ on, whole numbers have bins of their own that do not stand out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ldexp

import numpy as np
from numpy.typing import NDArray

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""Percentiles of the response, and their shares."""
WITHIN = "within "
"""How the names of shares of tasks begin that respond within a time."""
PARTS = 128
LEAST, MOST = -40, 50
"""Powers of two: shorter times are in the first bin, longer ones in the last."""
BINS = (MOST - LEAST) * PARTS
EXPONENT, FRACTION = 1023, 52
"""A double has its power of two, raised by the first, above a fraction of so many bits."""
MANY = 5
"""Times as many tasks as the bins around it has one that stands out."""
BELOW = FRACTION - PARTS.bit_length() + 1
"""The bits of a fraction that a bin does not tell apart."""


def tail_names(within: Sequence[float] = ()) -> tuple[str, ...]:
    """Return the names of the percentiles, and of the shares within times."""
    return (*PERCENTILES, *(f"{WITHIN}{limit:g}" for limit in within))


def tails_of(times: Sequence[float], within: Sequence[float] = ()) -> dict[str, float]:
    """Return the percentiles of times, and the shares within limits, by name; NaN if it is empty.

    >>> tails_of([1, 2, 3, 4], within=[3])["p50"], tails_of([1, 2, 3, 4], within=[3])["within 3"]
    (2.5, 0.75)
    """
    names = tail_names(within)
    if not len(times):
        return dict.fromkeys(names, float("nan"))
    values = np.asarray(times, dtype=float)
    shares = [float(np.mean(values <= limit)) for limit in within]
    found = [*np.quantile(values, list(PERCENTILES.values())).tolist(), *shares]
    return dict(zip(names, found, strict=True))


def bin_of(time: float) -> int:
    """Return the bin of a time; loops compile this.

    The bits of a double, read as a whole number, are its power of two followed by its fraction, so
    their first ones are the number of the bin.

    >>> edges(bin_of(3.0))
    (3.0, 3.015625)
    """
    bits = int(np.float64(time).view(np.int64))
    return min(max((bits >> BELOW) - (EXPONENT + LEAST) * PARTS, 0), BINS - 1)


def edges(number: int) -> tuple[float, float]:
    """Return where a bin begins and ends."""
    power, part = divmod(number, PARTS)
    low = ldexp(1.0 + part / PARTS, power + LEAST)
    return (0.0 if number == 0 else low), low + ldexp(1.0 / PARTS, power + LEAST)


def quantile(counts: NDArray[np.int64], share: float) -> float:
    """Return the time within which a share of the counted tasks lies; NaN if there is none.

    >>> counts = np.zeros(BINS, np.int64)
    >>> for time in range(1, 101):
    ...     counts[bin_of(time)] += 1
    >>> abs(quantile(counts, 0.95) - 95) < 0.95
    True
    """
    sums = np.cumsum(counts)
    if sums[-1] == 0:
        return float("nan")
    rank = share * float(sums[-1])
    number = int(np.searchsorted(sums, rank)) if rank > 0 else int(np.argmax(counts > 0))
    low, high = edges(number)
    if _is_one_time(counts, number):
        return low
    part = (rank - float(sums[number] - counts[number])) / float(counts[number])
    return low + (high - low) * part


def share_within(counts: NDArray[np.int64], time: float) -> float:
    """Return the share of the counted tasks that took at most a time; NaN if there is none.

    >>> counts = np.zeros(BINS, np.int64)
    >>> counts[bin_of(3.0)] = 4
    >>> share_within(counts, 2.99), share_within(counts, 3.0)
    (0.0, 1.0)
    """
    total = int(counts.sum())
    if total == 0:
        return float("nan")
    number = bin_of(time)
    low, high = edges(number)
    part = min(max((time - low) / (high - low), 0.0), 1.0)
    if _is_one_time(counts, number):
        part = 1.0
    return (float(counts[:number].sum()) + part * float(counts[number])) / total


def _is_one_time(counts: NDArray[np.int64], number: int) -> bool:
    """Tell whether the tasks of a bin took the same time: it stands out from those around it.

    If that time is where a bin begins, rounding may put some of the tasks into the bin below.
    """
    near = np.pad(counts[max(number - 2, 0) : number + 2], (max(2 - number, 0), 1))[:4]
    further, below, here, above = near.tolist()
    both = here + below > MANY * max(further, above)
    return bool(here > MANY * above and (here > MANY * below or both))


def longer_than(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the bins that were hit, and the share of tasks that took longer."""
    hit = np.flatnonzero(counts)
    total = max(int(counts.sum()), 1)
    left = 1.0 - np.cumsum(counts)[hit] / total
    return np.array([edges(int(number))[1] for number in hit]), left
