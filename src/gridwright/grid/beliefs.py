"""Beliefs: the rates and availabilities that a grid assumes, and how they follow measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, make_workspace
from ..allocation.planner import solve
from ..model import InputError
from .book import Book
from .event import Entry
from .job import Instruction, Job
from .settings import Corrections

Floats = NDArray[np.float64]
Answer = tuple[list[Instruction], list[Entry]]

CHANGE = 0.005
"""Smaller changes of the CPU availability are ignored."""
LEAST = 1e-3
"""The least availability that is assumed of a machine that is up."""


class Beliefs:
    """Changes the assumptions of a book when measurements differ from them."""

    def __init__(
        self,
        book: Book,
        corrections: Corrections,
        *,
        guessed: bool,
        hosts: Sequence[str] = (),
        keep: float = math.inf,
        hopeful: bool = False,
    ) -> None:
        self.book, self.corrections = book, corrections
        arrivals = np.array(book.classes["arrival"], dtype=float)
        first = (book.nominal, arrivals, book.start)
        self.learner = Learner(
            *first, corrections, guessed=guessed, hosts=hosts, keep=keep, hopeful=hopeful
        )
        self.predicted: dict[int, float] = {}
        """The last predicted availability of each machine."""
        self.imposed: dict[int, float] = {}
        """Availabilities that an operator has set."""
        self.first = book.machines["availability"].copy()
        """The availabilities that were assumed at first."""
        self.only: dict[int, str] = {}
        """The machines of classes that only the slots of one can run."""
        self._load = float("nan")
        self._plan = -1
        self.has_news = False
        """Whether jobs have ended since the rates were last checked."""

    def add_class(self, rates: Floats, arrival: float, host: str = "") -> None:
        """Add a class, which only the slots of the machine ``host`` can run, if one is given."""
        if host:
            self.only[len(self.book.classes)] = host
            rates = np.where(self.learner.is_on(host), rates, 0.0)
        self.book.add_class(rates, arrival)
        self.learner.add_class(rates, arrival)

    def add_machine(self, rates: Floats, host: str = "") -> None:
        """Add a machine, or a slot of the machine ``host``."""
        for task_class, machine in self.only.items():
            rates[task_class] *= machine == host
        self.book.add_machine(rates)
        if self.book.times is not None:
            self.book.times.add_machine(host)
        self.learner.add_machine(rates, host)

    def checked(self, task_class: int, host: str) -> int:
        """Return a class; refuse it for jobs of another machine than those that it is for."""
        if self.only.get(task_class, "") != host:
            where = self.only.get(task_class) or "all machines"
            raise InputError(f"there are jobs of the same class for {where}; give another class")
        return task_class

    def arrived(self, task_class: int, now: float) -> Answer:
        """Note an arrival."""
        if not self.learner.came(task_class, now) or not self.corrections.arrivals:
            return [], []
        found = self.learner.arrivals(self.book.classes["arrival"], now, self.load())
        if found is None:
            return [], []
        entry = Entry(now, "arrivals", fields={"rates": found.round(6).tolist()})
        return self.book.believe(now, arrivals=found.tolist()), [entry]

    def ended(self, job: Job, now: float) -> None:
        """Note how long a job took, and how much time its machine lost around it.

        A job without a known start is ignored.
        """
        if not math.isfinite(job.ended - job.started):
            return
        share = float(self.book.availability[job.machine])
        took = (job.ended - job.started) * share
        self.learner.ran(job.task_class, job.machine, took)
        if self.book.times is not None:
            self.book.times.ran(job.task_class, job.machine, took)
        before, after = job.started - job.sent, now - job.ended
        if self.book.ahead.most:  # it waited for the job before it, the next one did not for us
            following = self.book.running[job.machine]
            before = job.started - max(job.sent, job.free)
            after = 0.0 if following is not None and following.sent < job.ended else after
        self.learner.waited(job.machine, before + after)
        self.has_news = self.corrections.rates or self.corrections.overhead

    def ran(self, task_class: int, machine: int, time: float) -> None:
        """Note how long a job took on a machine."""
        self.learner.ran(task_class, machine, time)
        self.has_news = True

    def correct_rates(self, now: float) -> Answer:
        """Assume other rates if those of the jobs that have ended differ enough."""
        if not self.has_news:
            return [], []
        self.has_news = False
        shares = self.book.machines["availability"]
        found = self.learner.rates(self.book.nominal, shares, self.load())
        if found is None:
            return [], []
        entry = Entry(now, "rates", fields={"rates": found.round(6).tolist()})
        return self.book.believe(now, rates=found), [entry]

    def read(self, machine: int, predicted: float, now: float) -> list[Instruction]:
        """Note the predicted CPU availability of a machine."""
        self.predicted[machine] = predicted
        return self._share(machine, now) if self.corrections.availability else []

    def impose(self, machine: int, availability: float | None, now: float) -> list[Instruction]:
        """Set a machine's availability whatever is measured; None ends this."""
        if availability is None:
            self.imposed.pop(machine, None)
        else:
            self.imposed[machine] = availability
        return self._share(machine, now)

    def availability(self, machine: int) -> float | None:
        """Return the availability of a machine, or None if it is unknown."""
        known = self.imposed.get(machine, self.predicted.get(machine))
        return None if known is None else max(known, LEAST)

    def load(self) -> float:
        """Return the assumed load; nan if no threshold depends on it."""
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
        first = float(self.first[machine]) if machine < len(self.first) else 1.0
        share = first if known is None else known
        if abs(share - float(self.book.machines[machine].availability)) < CHANGE:
            return []
        shares = self.book.machines["availability"].copy()
        shares[machine] = share
        return self.book.believe(now, availability=shares.tolist())


HALF_LIFE = 600.0
"""Seconds after which a measurement counts half, if old ones are to be forgotten."""
FEW = 2.0
"""Jobs on a machine that count as much as all jobs of their class elsewhere."""
HOPE = 0.5
"""The same for a learner that tries every machine on purpose."""


class Learner:
    """Estimates execution rates, arrival rates and overheads.

    The initial rates count for ``trust`` jobs. If they were only a guess, a class counts as fast on
    a machine as elsewhere until it has run there a few times, and before it has run anywhere, as
    fast as all other classes. A ``hopeful`` learner assumes that a machine which has not run a
    class is as fast at it as the fastest, so that it is tried.

    Only the last ``keep`` jobs of a class on a machine count, about, so that changes are noticed.

    ``hosts`` names the machine of each slot, if machines have several. What is measured on the
    slots of a machine counts for all of them.
    """

    def __init__(
        self,
        prior: Floats,
        arrivals: Floats,
        start: float,
        corrections: Corrections,
        *,
        guessed: bool = False,
        hosts: Sequence[str] = (),
        keep: float = math.inf,
        hopeful: bool = False,
    ) -> None:
        self.keep, self.hopeful = keep, hopeful
        self.prior, self.first_arrivals = prior.copy(), arrivals.copy()
        self.corrections, self.start = corrections, start
        self.guessed = guessed
        self.trust = 0.0 if guessed else corrections.trust
        self._hosts: dict[str, int] = {}
        self.host = np.zeros(0, np.int64)
        """The column of each slot in what is measured."""
        self.count, self.time = np.zeros((2, len(prior), 0))
        self.turns, self.wasted = np.zeros((2, 0))
        for j in range(prior.shape[1]):
            self._add_slot(hosts[j] if hosts else "")
        self.arrived, self._came = np.zeros(len(prior)), 0
        self.warm: set[tuple[int, int]] = set()
        self._cold: set[tuple[int, int]] = set()
        """Classes and machines of which one job has run."""
        self._recent: set[int] = set()
        """Classes of which a job has run since the last check of what to forget."""
        self._forgot = start
        self.awake: set[int] = set()
        self._looked = start

    def add_class(self, prior: Floats, arrival: float) -> None:
        """Add a class."""
        self.prior = np.vstack([self.prior, prior])
        self.count, self.time = (np.pad(each, ((0, 1), (0, 0))) for each in (self.count, self.time))
        self.arrived = np.append(self.arrived, 0.0)
        self.first_arrivals = np.append(self.first_arrivals, arrival)

    def add_machine(self, prior: Floats, host: str = "") -> None:
        """Add a machine, or a slot of the machine ``host``."""
        self.prior = np.hstack([self.prior, prior[:, None]])
        self._add_slot(host)

    def move(self, machine: int, prior: Floats, host: str) -> None:
        """Let a slot belong to another machine: one that has come in place of one that has left."""
        self.prior[:, machine] = prior
        self.host[machine] = self._column(host)

    def is_on(self, host: str) -> NDArray[np.bool_]:
        """Tell of each slot whether it belongs to a machine."""
        return np.asarray(self.host == self._hosts.get(host, -1))

    def _add_slot(self, host: str) -> None:
        self.host = np.append(self.host, self._column(host))

    def _column(self, host: str) -> int:
        """Return the column of a machine in what is measured; a new one if it has none."""
        if host and host in self._hosts:
            return self._hosts[host]
        self._hosts[host] = len(self.turns)
        self.count, self.time = (np.pad(each, ((0, 0), (0, 1))) for each in (self.count, self.time))
        self.turns, self.wasted = np.append(self.turns, 0.0), np.append(self.wasted, 0.0)
        return self._hosts[host]

    def ran(self, task_class: int, machine: int, time: float) -> None:
        """Note how long a job would have taken with the machine's whole CPU.

        Ignore times that are not finite, and, with guessed rates, the first job of a class on a
        machine, which may have had caches to fill. A hopeful learner ignores it from the second on.
        """
        if not math.isfinite(time):
            return
        where = (task_class, int(self.host[machine]))
        if self.hopeful:
            self._recent.add(task_class)
            if not self.count[where]:
                self._cold.add(where)
            elif where in self._cold:  # the second one counts in place of the first
                self._cold.discard(where)
                self.count[where] = self.time[where] = 0.0
        elif self.guessed and (task_class, machine) not in self.warm:
            self.warm.add((task_class, machine))
            return
        if self.count[where] >= self.keep:
            share = (self.keep - 1.0) / self.count[where]
            self.count[where] *= share
            self.time[where] *= share
        self.count[where] += 1
        self.time[where] += max(time, 1e-9)

    def forget(self, now: float) -> bool:
        """Let old measurements count less; return whether a machine is to be tried again.

        This concerns classes that run, perhaps on other machines: one that has become faster would
        otherwise never be noticed.
        """
        elapsed = now - self._forgot
        if elapsed < HALF_LIFE / 60.0:
            return False
        self._forgot, rows = now, sorted(self._recent)
        self._recent.clear()
        share = 0.5 ** (min(elapsed, HALF_LIFE) / HALF_LIFE)
        fade = (self.count[rows] > 0.0) & (self.count[rows] * share < 0.5)
        for each in (self.count, self.time):
            each[rows] = np.where(fade, 0.0, each[rows] * share)
        return bool(fade.any())

    def duration(self, task_class: int, machine: int) -> float:
        """Return how long jobs of a class took on a machine; infinite if none has run there."""
        where = (task_class, self.host[machine])
        return float(self.time[where] / self.count[where]) if self.count[where] else math.inf

    def waited(self, machine: int, time: float) -> None:
        """Note how much time a machine lost around a job.

        Ignore times that are not finite, and the first job of a machine, which may have imported
        modules.
        """
        if not math.isfinite(time):
            return
        if machine not in self.awake:
            self.awake.add(machine)
            return
        self.turns[self.host[machine]] += 1
        self.wasted[self.host[machine]] += max(time, 0.0)

    def came(self, task_class: int, now: float) -> bool:
        """Note an arrival; return whether it is time to check the arrival rates."""
        self.arrived[task_class] += 1
        self._came += 1
        every = self.corrections.every_time
        if every is None:
            return self._came % self.corrections.every_arrivals == 0
        if now - self._looked < every:
            return False
        self._looked = now
        return True

    def rates(self, believed: Floats, share: Floats, load: float) -> Floats | None:
        """Return new execution rates if they differ enough from the assumed ones, or None.

        ``share`` is the availability of each machine.
        """
        found = self.prior
        if self.corrections.rates:
            found = self._measured() * self.corrections.rate_safety
        if self.corrections.overhead:
            there = self.turns > 0
            delay = np.where(there, self.wasted / np.where(there, self.turns, 1.0), 0.0)
            found = np.where(found > 0, found / (1.0 + found * share * delay[self.host]), 0.0)
        limit = self.corrections.thresholds("rate_threshold", len(believed), load)
        return found if _differs(found, believed, limit[:, None]) else None

    def arrivals(self, believed: Floats, now: float, load: float) -> Floats | None:
        """Return new arrival rates if they differ enough from the assumed ones, or None."""
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
            trust = HOPE if self.hopeful else FEW
            ran, spent = self.count.sum(axis=1), self.time.sum(axis=1)
            usual = np.where(ran > 0, ran / np.where(ran > 0, spent, 1.0), ran.sum() / spent.sum())
            given = np.broadcast_to(usual[:, None], able.shape)
            if self.hopeful:
                tried = self.count > 0
                best = np.where(tried, self.count / np.where(tried, self.time, 1.0), 0.0).max(
                    axis=1
                )
                untried = (self.count[:, self.host] == 0) & (best > 0)[:, None]
                given = np.where(untried, np.maximum(best, usual)[:, None], given)
        count, time = self.count[:, self.host], self.time[:, self.host]
        time = time + trust / np.where(able, given, 1.0)
        found = np.where(time > 0, (count + trust) / np.where(time > 0, time, 1.0), given)
        return np.where(able, found, 0.0)


def _differs(found: Floats, believed: Floats, limit: Floats) -> bool:
    return bool((np.abs(found - believed) > limit * np.abs(believed)).any())
