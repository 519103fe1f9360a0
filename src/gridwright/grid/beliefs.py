"""Beliefs: what a grid takes its machines and arrivals to be, as it measures them."""

from __future__ import annotations

import json
import math

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, make_room
from ..allocation.planner import solve
from .book import Book
from .corrections import Corrections
from .job import Instruction, Job
from .journal import Entry
from .learning import Learner

__all__ = ["Beliefs"]

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
        entry = Entry(now, "arrivals", detail=json.dumps(found.round(6).tolist()))
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
        entry = Entry(now, "rates", detail=json.dumps(found.round(6).tolist()))
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
            capacity = solve(situation, make_room(situation))
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
