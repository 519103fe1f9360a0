"""A lower bound on the mean number in system under any policy, for systems of any size."""

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, groups_of, make_workspace
from ..allocation.allocation import limiting_classes
from ..allocation.planner import solve
from ..allocation.price import set_prices
from ..model import System

__all__ = ["lower_bound"]


def lower_bound(system: System) -> float:
    """Return a mean number in system that no policy can be below, times being exponential.

    Give every class a price y ≥ 0 with Σ y × arrivals = 1. A machine finishes at most z = max y ×
    rate of priced tasks a time unit, all of them together at most Z. Let V be the priced number of
    tasks in the system. In the long run V² stays the same on average, so what arrivals add to it
    is what finished tasks take away: E[V × (rate of finishing)] = E[V] + Σ arrivals × y². As the
    rate of finishing is at most Z, E[V] ≥ Σ arrivals × y² / (Z − 1). Besides, every class has at
    least its work at its fastest machine in the system: arrivals / max rate. The number in system
    is then least if whatever V needs beyond that is of the class with the highest price.

    Any prices give a valid bound; those of the allocation LP make Z as small as can be. The
    classes that do not limit the capacity have a bound of their own, as if they had all machines
    to themselves, and so on; these bounds add up.

    >>> round(lower_bound(System(arrivals=[0.9], rates=[[1.0]])), 6)
    9.0
    """
    arrivals, rates = system.arrival_rates, np.array(system.effective)
    left = arrivals > 0
    total = 0.0
    while left.any():
        prices = _prices(arrivals * left, rates)
        limiting = prices > 0
        most = (prices[:, None] * rates).max(axis=0).sum()
        priced = (arrivals * prices**2).sum() / (most - 1) if most > 1 else np.inf
        served = arrivals[limiting] / rates[limiting].max(axis=1)
        missing = max(priced - prices[limiting] @ served, 0.0)
        total += served.sum() + missing / prices.max()
        left &= ~limiting
    return float(total)


def _prices(arrivals: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the prices of the classes that limit the capacity, worth 1 a time unit together."""
    now = Situation(rates, arrivals, np.ones(rates.shape[1]), groups_of(rates))
    room = make_workspace(now)
    solve(now, room)
    set_prices(now, room)
    limiting = limiting_classes(room)
    return np.where(limiting, room.price, 0) / len(set(room.part[limiting].tolist()))
