"""Beliefs: what a grid takes its machines and arrivals to be, as it measures them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, make_workspace
from ..allocation.planner import solve
from .book import Book
from .event import Entry
from .job import Instruction, Job
from .settings import Corrections

Floats = NDArray[np.float64]
Answer = tuple[list[Instruction], list[Entry]]

CHANGE = 0.005
"""A reading of CPU availability that differs by less is the same."""
LEAST = 1e-3
"""The share of its CPU that a machine has at least: one that is all taken is still there."""


class Beliefs:
    """Changes what a book believes when measurements ask for it, and says so."""

    def __init__(self, book: Book, corrections: Corrections, *, guessed: bool) -> None:
        self.book, self.corrections = book, corrections
        arrivals = np.array(book.classes["arrival"], dtype=float)
        self.learner = Learner(book.nominal, arrivals, book.start, corrections, guessed=guessed)
        self.predicted: dict[int, float] = {}
        """The last reading of each machine, predictions included."""
        self.imposed: dict[int, float] = {}
        """Availabilities that an operator has fixed."""
        self._load = float("nan")
        self._plan = -1

    def add_class(self, rates: Floats, arrival: float) -> None:
        """Make room for one more class."""
        self.book.add_class(rates, arrival)
        self.learner.add_class(rates, arrival)

    def add_machine(self, rates: Floats) -> None:
        """Make room for one more machine."""
        self.book.add_machine(rates)
        self.learner.add_machine(rates)

    def arrived(self, task_class: int, now: float) -> Answer:
        """Note an arrival."""
        if not self.learner.came(task_class, now) or not self.corrections.arrivals:
            return [], []
        found = self.learner.arrivals(self.book.classes["arrival"], now, self.load())
        if found is None:
            return [], []
        entry = Entry(now, "arrivals", fields={"rates": found.round(6).tolist()})
        return self.book.believe(now, arrivals=found.tolist()), [entry]

    def ended(self, job: Job, now: float) -> Answer:
        """Note how long a job took, and how long its machine was kept from it.

        Nothing is learnt of a job whose start was never heard of.
        """
        if not math.isfinite(job.ended - job.started):
            return [], []
        share = float(self.book.machines[job.machine].availability)
        self.learner.ran(job.task_class, job.machine, (job.ended - job.started) * share)
        self.learner.waited(job.machine, (job.started - job.sent) + (now - job.ended))
        if not (self.corrections.rates or self.corrections.overhead):
            return [], []
        shares = self.book.machines["availability"]
        found = self.learner.rates(self.book.nominal, shares, self.load())
        if found is None:
            return [], []
        entry = Entry(now, "rates", fields={"rates": found.round(6).tolist()})
        return self.book.believe(now, rates=found), [entry]

    def read(self, machine: int, predicted: float, now: float) -> list[Instruction]:
        """Note a reading of a machine's CPU availability."""
        self.predicted[machine] = predicted
        return self._share(machine, now) if self.corrections.availability else []

    def impose(self, machine: int, availability: float | None, now: float) -> list[Instruction]:
        """Fix a machine's availability, whatever is read; None: no longer."""
        if availability is None:
            self.imposed.pop(machine, None)
        else:
            self.imposed[machine] = availability
        return self._share(machine, now)

    def availability(self, machine: int) -> float | None:
        """Return what is known of a machine's availability, if anything."""
        known = self.imposed.get(machine, self.predicted.get(machine))
        return None if known is None else max(known, LEAST)

    def load(self) -> float:
        """Return the load as it is believed; only where something depends on it."""
        book = self.book
        if self.corrections.needs_load() and self._plan != book.plans:
            self._plan = book.plans
            able = np.where(book.machines["up"], book.machines["availability"], 0.0)
            arrivals = book.classes["arrival"].copy()
            situation = Situation(book.nominal, arrivals, able, book.group)
            capacity = solve(situation, make_workspace(situation))
            self._load = 1.0 / capacity if capacity > 0 else float("inf")
        return self._load

    def _share(self, machine: int, now: float) -> list[Instruction]:
        known = self.availability(machine)
        share = 1.0 if known is None else known
        if abs(share - float(self.book.machines[machine].availability)) < CHANGE:
            return []
        shares = self.book.machines["availability"].copy()
        shares[machine] = share
        return self.book.believe(now, availability=shares.tolist())


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
