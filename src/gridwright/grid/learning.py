"""What a grid learns by measuring: how fast jobs run where, and how often they come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Learner"]

Floats = NDArray[np.float64]


class Learner:
    """Estimates of execution and arrival rates, and whether beliefs have left them.

    Until a class has run on a machine, it is taken to be as fast there as it was elsewhere; until
    it has run anywhere, as fast as was said at the start.
    """

    def __init__(self, prior: Floats, *, tolerance: float = 0.1, check_every: int = 10) -> None:
        self.prior = prior
        self.tolerance = tolerance
        """Relative difference from which on an estimate replaces what is believed."""
        self.check_every = check_every
        """Arrivals between looks at the arrival rates."""
        self.count = np.zeros_like(prior)
        self.time = np.zeros_like(prior)
        self.arrived = np.zeros(len(prior))
        self.first: float | None = None

    def add_class(self, prior: Floats) -> None:
        """Make room for one more class."""
        self.prior = np.vstack([self.prior, prior])
        self.count = np.vstack([self.count, np.zeros_like(prior)])
        self.time = np.vstack([self.time, np.zeros_like(prior)])
        self.arrived = np.append(self.arrived, 0.0)

    def ran(self, task_class: int, machine: int, time: float) -> None:
        """Note how long a job took."""
        self.count[task_class, machine] += 1
        self.time[task_class, machine] += max(time, 1e-9)

    def came(self, task_class: int, now: float) -> bool:
        """Note an arrival; tell whether it is time to look at the rates."""
        if self.first is None:
            self.first = now
        self.arrived[task_class] += 1
        return bool(self.arrived.sum() % self.check_every == 0)

    def rates(self, believed: Floats) -> Floats | None:
        """Return the execution rates as they are measured, if they have left what is believed."""
        ran, spent = self.count.sum(axis=1), self.time.sum(axis=1)
        known = ran > 0
        usual = np.where(known, ran / np.where(known, spent, 1.0), 0.0)
        found = np.where(known[:, None], usual[:, None], self.prior)
        there = self.count > 0
        found = np.where(there, self.count / np.where(there, self.time, 1.0), found)
        found = np.where(self.prior > 0, found, 0.0)
        return found if self._differs(found, believed) else None

    def arrivals(self, believed: Floats, now: float) -> Floats | None:
        """Return the arrival rates as they are measured, if they have left what is believed."""
        if self.first is None or now <= self.first:
            return None
        found = np.where(self.arrived > 0, self.arrived / (now - self.first), believed)
        return found if self._differs(found, believed) else None

    def _differs(self, found: Floats, believed: Floats) -> bool:
        return bool((np.abs(found - believed) > self.tolerance * np.abs(believed)).any())
