"""The book of one machine of a grid without a scheduler, as a pure state machine.

Every machine has such a book: its own queue, what it knows of the others, and the decisions about
the jobs that arrive at it. Events go in, instructions come out: messages to other machines, jobs to
begin, and reports. The book has no clock and no input or output. The rules are those of the
simulator (``simulation/peer_loop.py``); a test drives both through the same events.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..allocation import Situation, groups_of
from ..compiler.checks import readonly
from ..model import Floats, InputError
from ..policies import PEER, Policy, View
from ..policies.view import CLASS, MACHINE, TALLIES, records


class PeerJob(NamedTuple):
    """A job as machines pass it on."""

    number: int
    task_class: int
    attempt: int = 1
    size: float = 1.0
    """Its work; 1 is the mean."""


class Rates(NamedTuple):
    """What a machine knows of itself and tells the others."""

    version: int
    """How often its rates have changed."""
    nominal: tuple[float, ...]
    """Its execution rate for each class."""
    arrivals: tuple[float, ...]
    """The arrival rate of each class there."""
    availability: float


class Load(NamedTuple):
    """What a machine has to do."""

    backlog: int
    work: float
    """The expected time to do all of it, each job at its full mean."""
    serving: int
    """The class of the job that runs, −1 for none."""


class Question(NamedTuple):
    """A machine asks another how much it has to do, and tells it its own rates."""

    number: int
    rates: Rates


class Answer(NamedTuple):
    """The answer to a question."""

    number: int
    rates: Rates
    load: Load


class Handover(NamedTuple):
    """A machine gives a job to another."""

    job: PeerJob


class Receipt(NamedTuple):
    """The other machine has the job."""

    job: PeerJob


Content = Question | Answer | Handover | Receipt


class Message(NamedTuple):
    """An instruction: send something to another machine."""

    to: int
    content: Content


class Begin(NamedTuple):
    """An instruction: run a job of the machine's own queue."""

    job: PeerJob


class Taken(NamedTuple):
    """A report: the machine has a job in its queue. It must be sent before any later message."""

    job: PeerJob


class Decided(NamedTuple):
    """A report: the machine has decided about a job that arrived at it."""

    time: float
    job: PeerJob
    asked: tuple[int, ...]
    """The machines that it could choose, itself included."""
    choice: int
    plan: int
    """The number of its plan."""


Output = Message | Begin | Taken | Decided


@dataclass(eq=False)
class Case:
    """A job that has arrived here and about which nothing is decided."""

    job: PeerJob
    plan: Floats
    """The plan by which machines were asked; a later plan permits others."""
    silent: set[int]
    """The machines that have not answered."""


class Peer:
    """The book of one machine.

    Parameters
    ----------
    number
        Which machine it is.
    policy
        A peer policy.
    nominal, arrivals
        The first execution rates and arrival rates [class, machine], which every machine knows.
    availability
        The first share of the CPU of each machine.
    rates_change
        Whether execution rates may change: machines that are alike at first then do not stay so.
    rng
        The random numbers of the policy.
    """

    def __init__(
        self,
        number: int,
        policy: Policy,
        nominal: Floats,
        arrivals: Floats,
        availability: Floats,
        *,
        rates_change: bool,
        rng: np.random.Generator,
    ) -> None:
        if policy.kind is not PEER:
            raise InputError(f"{policy.name} is a {policy.kind} policy; expected a peer policy")
        self.number, self.policy, self.rng = number, policy, rng
        self.arguments = policy.arguments(nominal.shape)
        classes, machines = nominal.shape
        self.rates = [
            Rates(
                0,
                tuple(nominal[:, j].tolist()),
                tuple(arrivals[:, j].tolist()),
                float(availability[j]),
            )
            for j in range(machines)
        ]
        """What it knows of each machine; the truth for itself."""
        self.group = np.arange(machines) if rates_change else groups_of(nominal)
        self.machines = records(machines, MACHINE)
        self.machines["up"], self.machines["serving"] = True, -1
        self.classes = records(classes, CLASS)
        self.classes["oldest"], self.classes["cost"] = np.inf, 1.0
        self.nominal, self.rate = np.zeros((classes, machines)), np.zeros((classes, machines))
        self.expected, self.memory = np.zeros((classes, machines)), np.zeros((classes, machines))
        self.assigned = np.zeros((classes, machines), np.int64)
        self.tally = np.zeros(TALLIES)
        for j in range(machines):
            self._believe(j)
        self.plan: Floats = np.asarray(self.nominal > 0, dtype=float)
        self.plans = self.refusals = 0
        self.outdated = policy.planner is not None
        """Whether it has learnt something since it planned."""
        self.queue: deque[PeerJob] = deque()
        """Its own jobs; the first one runs."""
        self.there = np.zeros(classes, np.int64)
        """How many of them are of each class."""
        self.cases: dict[int, Case] = {}
        """What it has asked the others about, by the number of the question."""
        self.questions = 0
        self.handed: list[dict[int, PeerJob]] = [{} for _ in range(machines)]
        """The jobs that it has handed to each machine, until that machine has confirmed it."""
        self.stranded: list[PeerJob] = []
        """Jobs that arrived while no machine could run them."""
        self.sent: Counter[str] = Counter()
        """How many messages it has sent of each kind."""
        self.out: list[Output] = []

    # jobs

    def arrive(self, now: float, job: PeerJob) -> list[Output]:
        """Note that a job has arrived here: ask the machines that the plan permits, and decide."""
        if not self._has(job.number):
            self.classes[job.task_class].arrived += 1
            self._ask(now, job)
        return self._answer()

    def ended(self, now: float, number: int) -> list[Output]:
        """Note that the job that runs here has ended; the next one begins."""
        if not self.queue or self.queue[0].number != number:
            return []
        job, own = self.queue.popleft(), self.machines[self.number]
        own.work -= self.expected[job.task_class, self.number]
        own.backlog -= 1
        self.there[job.task_class] -= 1
        if self.queue:
            self._begin()
        else:
            own.work, own.serving = 0.0, -1
        return self._answer()

    def _has(self, number: int) -> bool:
        """Tell whether a job is here, or is on its way from here to another machine."""
        return (
            any(job.number == number for job in self.queue)
            or any(case.job.number == number for case in self.cases.values())
            or any(number in jobs for jobs in self.handed)
            or any(job.number == number for job in self.stranded)
        )

    def _ask(self, now: float, job: PeerJob) -> None:
        if self.outdated and self.policy.planner is not None:
            self._make_plan()
        permitted = self.plan[job.task_class] > 0.0
        silent = set(np.flatnonzero(permitted & self.machines["up"]).tolist())
        silent.discard(self.number)
        self.questions += 1
        self.cases[self.questions] = Case(job, self.plan, silent)
        for j in sorted(silent):
            self._send(j, Question(self.questions, self.rates[self.number]))
        self._decide(now, self.questions)

    def _decide(self, now: float, question: int) -> None:
        """Ask the policy where a job goes, once all machines that were asked have answered."""
        case = self.cases[question]
        if case.silent:
            return
        del self.cases[question]
        job, i = case.job, case.job.task_class
        k = int(self.policy.decide(i, self.number, self._view(now, case.plan), *self.arguments))
        possible = (case.plan[i] > 0.0) & self._able(i)
        candidates = tuple(np.flatnonzero(possible).tolist())
        self.out.append(Decided(now, job, candidates, k, self.plans))
        if k not in candidates:
            self.refusals += k >= 0  # −1: none of those that it knows to be up
            k = self._instead(i)
        if k < 0:
            self.stranded.append(job)
            return
        self.assigned[i, k] += 1
        if k == self.number:
            self._join(job)
        else:
            self.handed[k][job.number] = job
            self._send(k, Handover(job))

    def _able(self, i: int) -> Any:
        """Return which machines can run a class now."""
        return (self.nominal[i] > 0.0) & self.machines["up"]

    def _instead(self, i: int) -> int:
        """Return where a job goes that the policy sends nowhere: here, if it can run here."""
        able = self._able(i)
        if able[self.number]:
            return self.number
        return int(np.argmax(able)) if able.any() else -1

    def _join(self, job: PeerJob) -> None:
        """Put a job at the end of the queue; it begins if the queue is empty."""
        own = self.machines[self.number]
        self.out.append(Taken(job))
        self.queue.append(job)
        own.backlog += 1
        own.work += self.expected[job.task_class, self.number]
        self.there[job.task_class] += 1
        if len(self.queue) == 1:
            self._begin()

    def _begin(self) -> None:
        self.machines[self.number].serving = self.queue[0].task_class
        self.out.append(Begin(self.queue[0]))

    # messages

    def hear(self, now: float, sender: int, content: Content) -> list[Output]:
        """Take a message of another machine."""
        match content:
            case Question(number, rates):
                self._learn(sender, rates)
                own = self.machines[self.number]
                load = Load(int(own.backlog), float(own.work), int(own.serving))
                self._send(sender, Answer(number, self.rates[self.number], load))
            case Answer(number, rates, load):
                self._learn(sender, rates)
                seen = self.machines[sender]
                seen.backlog, seen.work, seen.serving = load
                if number in self.cases:
                    self.cases[number].silent.discard(sender)
                    self._decide(now, number)
            case Handover(job):
                if not any(each.number == job.number for each in self.queue):
                    self._join(job)
                self._send(sender, Receipt(job))
            case Receipt(job):
                self.handed[sender].pop(job.number, None)
        return self._answer()

    def gone(self, now: float, machine: int) -> list[Output]:
        """Note that another machine does not answer any more: decide again what it has not got."""
        if self.machines[machine].up:
            self.machines[machine].up = False
            self._believe(machine)
        lost, self.handed[machine] = self.handed[machine], {}
        for question, case in list(self.cases.items()):
            if machine in case.silent:
                case.silent.discard(machine)
                self._decide(now, question)
        for job in lost.values():
            self._ask(now, job)
        return self._answer()

    def here(self, now: float, machine: int) -> list[Output]:
        """Note that a machine is there again, with nothing to do."""
        seen = self.machines[machine]
        seen.up, seen.backlog, seen.work, seen.serving = True, 0, 0.0, -1
        self._believe(machine)
        stranded, self.stranded = self.stranded, []
        for job in stranded:
            self._ask(now, job)
        return self._answer()

    def change(self, rates: Rates) -> None:
        """Note that the machine's own rates have changed, and with them the expected work."""
        self._learn(self.number, rates)
        work = 0.0
        for i in range(len(self.there)):
            if self.there[i] > 0:
                work += self.there[i] * self.expected[i, self.number]
        self.machines[self.number].work = work

    # what it knows

    def _learn(self, machine: int, rates: Rates) -> None:
        """Take the rates of a machine, unless they are known or older."""
        if rates.version > self.rates[machine].version:
            self.rates[machine] = rates
            self._believe(machine)

    def _believe(self, machine: int) -> None:
        """Write what is known of a machine into the arrays that the policy sees."""
        told, seen = self.rates[machine], self.machines[machine]
        seen.availability = told.availability if seen.up else 0.0
        self.nominal[:, machine] = told.nominal
        rate = self.nominal[:, machine] * seen.availability
        self.rate[:, machine] = rate
        expected = np.full(len(rate), np.inf)
        self.expected[:, machine] = np.divide(1.0, rate, out=expected, where=rate > 0.0)
        self.outdated = True

    def _make_plan(self) -> None:
        self.plan = self.policy.plan(self._situation())
        self.plans += 1
        self.outdated = False

    def _situation(self) -> Situation:
        """Describe what it knows to a planner."""
        arrivals = np.zeros(len(self.there))
        for told in self.rates:
            arrivals += told.arrivals
        self.classes["arrival"] = arrivals
        return Situation(self.nominal, arrivals, self.machines["availability"], self.group)

    def _view(self, now: float, plan: Floats) -> View:
        return View(
            now,
            readonly(self.machines),
            readonly(self.classes),
            readonly(self.rate),
            readonly(self.nominal),
            readonly(self.expected),
            readonly(self.assigned),
            readonly(plan),
            self.memory,
            self.tally,
            self.rng,
        )

    def _send(self, machine: int, content: Content) -> None:
        self.sent[type(content).__name__.lower()] += 1
        self.out.append(Message(machine, content))

    def _answer(self) -> list[Output]:
        out, self.out = self.out, []
        return out
