"""What a grid learns by measuring: how fast jobs run where, and how often they come."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .corrections import Corrections

__all__ = ["Learner"]

Floats = NDArray[np.float64]

FEW = 2.0
"""Jobs on a machine that count as much as all those of their class elsewhere."""


class Learner:
    """Estimates of execution rates, arrival rates and overheads, and when to believe in them.

    What was said at the start counts for as many jobs as it is trusted for. If it was a mere guess,
    a class is taken to be as fast on a machine as it was elsewhere until it has run there a few
    times, and before it has run anywhere, as fast as all others.

    Parameters
    ----------
    prior
        Execution rates [class, machine] to begin with; 0 where a class cannot run.
    arrivals
        Arrival rates to begin with.
    start
        When the grid began.
    corrections
        What follows the measurements, and when.
    guessed
        Whether the rates at the start are a mere guess: they then count for nothing.
    """

    def __init__(
        self,
        prior: Floats,
        arrivals: Floats,
        start: float,
        corrections: Corrections,
        *,
        guessed: bool = False,
    ) -> None:
        self.prior, self.first_arrivals = prior.copy(), arrivals.copy()
        self.corrections, self.start = corrections, start
        self.guessed = guessed
        self.trust = 0.0 if guessed else corrections.trust
        self.count = np.zeros_like(prior)
        self.time = np.zeros_like(prior)
        self.arrived = np.zeros(len(prior))
        self.turns = np.zeros(prior.shape[1])
        self.wasted = np.zeros(prior.shape[1])
        self.warm: set[tuple[int, int]] = set()
        self.awake: set[int] = set()
        self._looked = start

    def add_class(self, prior: Floats, arrival: float) -> None:
        """Make room for one more class."""
        self.prior = np.vstack([self.prior, prior])
        self.count = np.vstack([self.count, np.zeros_like(prior)])
        self.time = np.vstack([self.time, np.zeros_like(prior)])
        self.arrived = np.append(self.arrived, 0.0)
        self.first_arrivals = np.append(self.first_arrivals, arrival)

    def add_machine(self, prior: Floats) -> None:
        """Make room for one more machine."""
        column = prior[:, None]
        self.prior = np.hstack([self.prior, column])
        self.count = np.hstack([self.count, np.zeros_like(column)])
        self.time = np.hstack([self.time, np.zeros_like(column)])
        self.turns, self.wasted = np.append(self.turns, 0.0), np.append(self.wasted, 0.0)

    def ran(self, task_class: int, machine: int, time: float) -> None:
        """Note how long a job would have taken with the machine's whole CPU.

        A class's first job on a machine may have had caches to fill, which tells nothing. Nor does
        a time that is not finite.
        """
        if not math.isfinite(time):
            return
        if self.guessed and (task_class, machine) not in self.warm:
            self.warm.add((task_class, machine))
            return
        self.count[task_class, machine] += 1
        self.time[task_class, machine] += max(time, 1e-9)

    def waited(self, machine: int, time: float) -> None:
        """Note for how long a machine that had a job to do was not working on it.

        Its first one may have had modules to import. A time that is not finite tells nothing.
        """
        if not math.isfinite(time):
            return
        if machine not in self.awake:
            self.awake.add(machine)
            return
        self.turns[machine] += 1
        self.wasted[machine] += max(time, 0.0)

    def came(self, task_class: int, now: float) -> bool:
        """Note an arrival; tell whether it is time to look at the rates."""
        self.arrived[task_class] += 1
        every = self.corrections.every_time
        if every is None:
            return bool(self.arrived.sum() % self.corrections.every_arrivals == 0)
        if now - self._looked < every:
            return False
        self._looked = now
        return True

    def rates(self, believed: Floats, share: Floats, load: float) -> Floats | None:
        """Return the execution rates to believe in, if they have left those that are.

        ``share`` is that of each machine's CPU that is there.
        """
        found = self.prior
        if self.corrections.rates:
            found = self._measured() * self.corrections.rate_safety
        if self.corrections.overhead:
            there = self.turns > 0
            delay = np.where(there, self.wasted / np.where(there, self.turns, 1.0), 0.0)
            found = np.where(found > 0, found / (1.0 + found * share * delay), 0.0)
        limit = self.corrections.thresholds("rate_threshold", len(believed), load)
        return found if _differs(found, believed, limit[:, None]) else None

    def arrivals(self, believed: Floats, now: float, load: float) -> Floats | None:
        """Return the arrival rates to believe in, if they have left those that are."""
        if not self.corrections.arrivals or now <= self.start:
            return None
        first = self.first_arrivals
        came, since = self.arrived + self.trust, now - self.start + self.trust / first
        if self.guessed:
            came = self.arrived + 0.5  # a class that has not come yet may come, but seldom
        found = came / since * self.corrections.arrival_safety
        limit = self.corrections.thresholds("arrival_threshold", len(believed), load)
        return found if _differs(found, believed, limit) else None

    def _measured(self) -> Floats:
        able, given, trust = self.prior > 0, self.prior, self.trust
        if self.guessed and self.count.any():
            trust = FEW
            ran, spent = self.count.sum(axis=1), self.time.sum(axis=1)
            usual = np.where(ran > 0, ran / np.where(ran > 0, spent, 1.0), ran.sum() / spent.sum())
            given = np.broadcast_to(usual[:, None], able.shape)
        time = self.time + trust / np.where(able, given, 1.0)
        found = np.where(time > 0, (self.count + trust) / np.where(time > 0, time, 1.0), given)
        return np.where(able, found, 0.0)


def _differs(found: Floats, believed: Floats, limit: Floats) -> bool:
    return bool((np.abs(found - believed) > limit * np.abs(believed)).any())
