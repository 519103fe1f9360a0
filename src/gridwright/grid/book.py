"""The book: the live state of a grid as a pure machine.

Events go in (a job is submitted, starts, ends; a machine comes, goes, reports), instructions for
the executor come out, and a policy is asked in between. There is no clock and no input or output
in it: every event says when it happened.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, groups_of
from ..model import InputError
from ..policies import Policy, View
from ..policies.view import CLASS, MACHINE, TALLIES, records
from .job import Cancel, Instruction, Job, Send, Stage

__all__ = ["Book"]

Floats = NDArray[np.float64]


class Book:
    """Jobs, machines, and what a policy decides about them.

    Parameters
    ----------
    policy
        A push or a pull policy.
    rates
        Nominal execution rates [class, machine] as they are believed; 0 where it cannot run.
    arrivals
        Jobs per time unit of each class, as they are believed.
    availability
        Share of every machine's CPU that is believed to be there.
    up
        Whether the machines are up at the start.
    start
        When the grid began, in the time of the events: policies see the time since then.
    seed
        For policies that draw.
    """

    def __init__(
        self,
        policy: Policy,
        rates: Any,
        arrivals: Any,
        availability: Any = None,
        *,
        up: bool = True,
        start: float = 0.0,
        seed: int = 1,
    ) -> None:
        from .asking import MECHANISMS

        if policy.kind not in MECHANISMS:
            raise InputError(
                f"{policy.name} is a {policy.kind} policy; a grid runs push and pull policies"
            )
        self.policy = policy
        self.nominal: Floats = np.array(rates, dtype=float, order="C")
        classes, machines = self.nominal.shape
        self.group = groups_of(self.nominal)
        self.arguments = policy.arguments((classes, machines))
        self.start = self.now = start
        self.jobs: dict[int, Job] = {}
        self.waiting: list[deque[Job]] = [deque() for _ in range(classes)]
        self.own: list[deque[Job]] = [deque() for _ in range(machines)]
        self.running: list[Job | None] = [None] * machines
        self.closed = np.zeros(machines, np.bool_)  # takes no further jobs, though it is up
        self.refusals = 0
        self.asked = 0
        self.plans = 0
        self.machines = records(machines, MACHINE)
        self.classes = records(classes, CLASS)
        self.machines["up"], self.machines["serving"] = up, -1
        share = np.ones(machines) if availability is None else np.asarray(availability, dtype=float)
        self.machines["availability"] = share
        self.classes["arrival"], self.classes["oldest"] = arrivals, np.inf
        self.rate: Floats = np.ascontiguousarray(self.nominal * share)
        self.expected: Floats = np.full_like(self.rate, np.inf)
        self.assigned = np.zeros((classes, machines), np.int64)
        self.plan: Floats = np.zeros((classes, machines))
        self.memory: Floats = np.zeros((classes, machines))
        self.tally: Floats = np.zeros(TALLIES)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.out: list[Instruction] = []
        self.changed: dict[int, Job] = {}
        """Jobs that are no longer where they were, until somebody clears it."""
        self.pending = False
        for j in range(machines):
            self._expect(j)
        self.mechanism = MECHANISMS[policy.kind](self)
        self._make_plan()
        self.mechanism.recalled()

    # events

    def submit(self, now: float, number: int, task_class: int) -> list[Instruction]:
        """Take a new job in."""
        if number in self.jobs:
            raise InputError(f"job {number} is in the book already")
        job = self.jobs[number] = Job(number, task_class, now)
        self.now = now
        self.classes[task_class].arrived += 1
        self.put(job)
        self.mechanism.placed(task_class)
        return self._answer()

    def adopt(self, job: Job, task_class: int) -> None:
        """Take in a job that an earlier book left unfinished: it waits since its submission."""
        job.task_class = task_class
        self.jobs[job.number] = job
        self.classes[task_class].arrived += 1
        self.put(job)
        self.mechanism.placed(task_class)

    def add_class(self, rates: Floats, arrival: float) -> None:
        """Make room for one more class of jobs."""
        machines = len(self.machines)
        self.waiting.append(deque())
        seen = records(1, CLASS)
        seen["arrival"], seen["oldest"] = arrival, np.inf
        self.classes = np.concatenate([self.classes, seen]).view(np.recarray)
        self.nominal = np.vstack([self.nominal, rates])
        self.rate = np.vstack([self.rate, rates * self.machines["availability"]])
        for name in ("expected", "plan", "memory"):
            setattr(self, name, np.vstack([getattr(self, name), np.zeros((1, machines))]))
        self.assigned = np.vstack([self.assigned, np.zeros((1, machines), np.int64)])
        self.arguments = self.policy.arguments(self.nominal.shape)
        self.group = groups_of(self.nominal)
        for j in range(machines):
            self._expect(j)
        self._make_plan()

    def started(self, now: float, number: int, attempt: int) -> None:
        """Note that a machine has begun with a job."""
        job = self.jobs.get(number)
        if job is not None and job.stage == Stage.sent and job.attempt == attempt:
            job.started = now
            self.changed[number] = job

    def finished(
        self, now: float, number: int, attempt: int, *, failed: bool = False
    ) -> list[Instruction] | None:
        """Note that a job has ended, well or not; None if nobody waited for this answer."""
        job = self.jobs.get(number)
        if job is None or job.stage != Stage.sent or job.attempt != attempt:
            return None
        self.now = now
        self._end(job, Stage.failed if failed else Stage.finished)
        self.mechanism.freed(job.machine)
        return self._answer()

    def timed_out(self, now: float, number: int, attempt: int) -> list[Instruction] | None:
        """Give a job up where it is: it waits again, and its machine counts as down."""
        job = self.jobs.get(number)
        if job is None or job.stage != Stage.sent or job.attempt != attempt:
            return None
        job.timed_out += 1
        return self.machine_down(now, job.machine, silent=True)

    def cancel(self, now: float, number: int) -> list[Instruction] | None:
        """Take a job back; None if it has ended."""
        job = self.jobs[number]
        if job.stage.is_final:
            return None
        self.now = now
        if job.stage == Stage.waiting:
            self.waiting[job.task_class].remove(job)
            self._count(job.task_class)
            self._close(job, Stage.cancelled)
        elif job.stage == Stage.queued:
            self.own[job.machine].remove(job)
            self._leave_machine(job)
            self._close(job, Stage.cancelled)
        else:
            self.out.append(Cancel(number, job.machine, job.attempt))
            self._end(job, Stage.cancelled)
            self.mechanism.freed(job.machine)
        return self._answer()

    def machine_down(self, now: float, machine: int, *, silent: bool = False) -> list[Instruction]:
        """Note that a machine is gone: its jobs wait again, where their submission puts them.

        One that is only silent may still answer.
        """
        self.now = now
        m = self.machines[machine]
        if not m.up:
            return []
        m.up = False
        self._expect(machine)
        self.pending = self.policy.planner is not None
        lost = self.running[machine]
        self.mechanism.gone(machine)
        if lost is not None:
            if not silent:
                self.out.append(Cancel(lost.number, machine, lost.attempt))
            lost.lost += 1
            self.running[machine] = None
            self.put(lost)
        for job in self.own[machine]:
            self.put(job)
        self.own[machine].clear()
        m.serving, m.backlog, m.work = -1, 0, 0.0
        self.mechanism.returned(lost.task_class if lost is not None else -1)
        return self._answer()

    def machine_up(
        self, now: float, machine: int, availability: float | None = None
    ) -> list[Instruction]:
        """Note that a machine is there, or there again."""
        self.now = now
        m = self.machines[machine]
        if m.up:
            return []
        m.up = True
        if availability is not None:
            m.availability = availability
        self._believe(machine)
        self.pending = self.policy.planner is not None
        if not self.closed[machine]:
            self.mechanism.freed(machine)
        return self._answer()

    def believe(
        self,
        now: float,
        *,
        rates: Floats | None = None,
        arrivals: Sequence[float] | None = None,
        availability: Sequence[float] | None = None,
    ) -> list[Instruction]:
        """Believe in other rates, arrival rates or availabilities, and plan with them."""
        self.now = now
        if rates is not None:
            self.nominal[:] = rates
            self.group = groups_of(self.nominal)
        if arrivals is not None:
            self.classes["arrival"] = arrivals
        if availability is not None:
            self.machines["availability"] = availability
        for j in range(len(self.machines)):
            self._believe(j)
        self.pending = self.policy.planner is not None
        return self._answer()

    def close(self, now: float, machine: int) -> list[Instruction]:
        """Let a machine take no further jobs; those queued there go elsewhere."""
        self.now = now
        if self.closed[machine]:
            return []
        self.closed[machine] = True
        if self.machines[machine].up:
            self.mechanism.gone(machine)
            for job in self.own[machine]:
                self._leave_machine(job)
                self.put(job)
            self.own[machine].clear()
            self._expect(machine)
            self.pending = self.policy.planner is not None
            self.mechanism.returned(-1)
        return self._answer()

    def open(self, now: float, machine: int) -> list[Instruction]:
        """Let a machine take jobs again."""
        self.now = now
        if not self.closed[machine]:
            return []
        self.closed[machine] = False
        self._expect(machine)
        self.pending = self.policy.planner is not None
        if self.machines[machine].up and self.running[machine] is None:
            self.mechanism.freed(machine)
        return self._answer()

    # for the mechanisms

    def view(self) -> View:
        """Return what a policy is shown."""
        return View(
            self.now - self.start,
            self.machines,
            self.classes,
            self.rate,
            self.nominal,
            self.expected,
            self.assigned,
            self.plan,
            self.memory,
            self.tally,
            self.rng,
        )

    def can_take(self, machine: int) -> bool:
        """Tell whether a machine is up and takes jobs."""
        return bool(self.machines[machine].up) and not bool(self.closed[machine])

    def put(self, job: Job) -> None:
        """Let a job wait, where its submission puts it in its class."""
        job.stage, job.machine, job.started = Stage.waiting, -1, float("nan")
        self.changed[job.number] = job
        queue = self.waiting[job.task_class]
        if queue and (queue[-1].submitted, queue[-1].number) > (job.submitted, job.number):
            ordered = list(queue)
            insort(ordered, job, key=lambda each: (each.submitted, each.number))
            queue.clear()
            queue.extend(ordered)
        else:
            queue.append(job)
        self._count(job.task_class)

    def give(self, task_class: int, machine: int) -> None:
        """Give the first job of a class to a machine: to run, or behind what it is running."""
        job = self.waiting[task_class].popleft()
        self._count(task_class)
        m = self.machines[machine]
        rate = self.rate[task_class, machine]
        job.machine, job.assigned = machine, self.now
        job.expected = 1.0 / rate if rate > 0.0 else 0.0
        m.backlog += 1
        m.work += job.expected
        self.assigned[task_class, machine] += 1
        if self.running[machine] is None:
            self.send(job)
        else:
            job.stage = Stage.queued
            self.changed[job.number] = job
            self.own[machine].append(job)

    def send(self, job: Job) -> None:
        """Have a job run where it is."""
        job.stage, job.sent = Stage.sent, self.now
        self.changed[job.number] = job
        job.attempt += 1
        self.running[job.machine] = job
        self.machines[job.machine].serving = job.task_class
        self.out.append(Send(job.number, job.machine, job.attempt))

    # details

    def _answer(self) -> list[Instruction]:
        while self.pending:
            self.pending = False
            self._make_plan()
            self.mechanism.recalled()
        said, self.out = self.out, []
        return said

    def _make_plan(self) -> None:
        self.plans += 1
        able = self.machines["up"] & ~self.closed
        if self.policy.planner is None:
            self.plan[:] = self.nominal > 0
            return
        share = self.machines["availability"] if self.policy.use_availability else 1.0
        situation = Situation(
            self.nominal,
            self.classes["arrival"].copy(),
            np.where(able, share, 0.0),
            self.group,
        )
        self.plan[:] = np.asarray(self.policy.planner(situation, **self.policy.planning))

    def _believe(self, machine: int) -> None:
        self.rate[:, machine] = self.nominal[:, machine] * self.machines[machine].availability
        self._expect(machine)

    def _expect(self, machine: int) -> None:
        able = self.can_take(machine)
        for i, rate in enumerate(self.rate[:, machine]):
            self.expected[i, machine] = 1.0 / rate if able and rate > 0.0 else np.inf

    def _count(self, task_class: int) -> None:
        queue, seen = self.waiting[task_class], self.classes[task_class]
        seen.waiting = len(queue)
        seen.oldest = queue[0].submitted - self.start if queue else np.inf

    def _end(self, job: Job, stage: Stage) -> None:
        self.running[job.machine] = None
        self.machines[job.machine].serving = -1
        self._leave_machine(job)
        self._close(job, stage)

    def _leave_machine(self, job: Job) -> None:
        m = self.machines[job.machine]
        m.backlog -= 1
        m.work = m.work - job.expected if m.backlog > 0 else 0.0

    def _close(self, job: Job, stage: Stage) -> None:
        job.stage, job.ended = stage, self.now
        self.changed[job.number] = job
