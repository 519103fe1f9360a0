"""The ledger: where every job of a grid is, and what is believed of its machines."""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, groups_of
from ..model import InputError
from ..policies import Policy, View
from ..policies.view import CLASS, MACHINE, TALLIES, records
from .job import Cancel, Decision, Instruction, Job, Send, Stage

__all__ = ["SLOWEST", "Floats", "Ledger"]

Floats = NDArray[np.float64]

SLOWEST = 1e-100
"""Jobs per second of the slowest machine; the fastest has its inverse. Sums must stay finite."""


class Ledger:
    """Jobs and machines as they stand, and how they are moved.

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
    retries
        How often a job is tried again after its process died or it timed out. None, as in the
        published experiments: without limit, and the machine of a job that timed out counts as
        down until it answers.
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
        retries: int | None = None,
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
        self.retries = retries
        self.jobs: dict[int, Job] = {}
        self.waiting: list[deque[Job]] = [deque() for _ in range(classes)]
        self.own: list[deque[Job]] = [deque() for _ in range(machines)]
        self.running: list[Job | None] = [None] * machines
        self.closed = np.zeros(machines, np.bool_)  # takes no further jobs, though it is up
        self.free = np.full(machines, start)  # since when they have nothing to do
        self.heard_free = np.full(machines, start)
        self.decisions: list[Decision] = []
        """What was answered to whom, until somebody clears it."""
        self.losses: list[tuple[int, int, int]] = []
        """Job, attempt and machine of what went down with it, until somebody clears it."""
        self.given_up: list[tuple[Job, int]] = []
        """Jobs whose retries are used up and their last machine, until somebody clears it."""
        self.held: dict[int, tuple[Job, int]] = {}
        """Machines that still run a copy of a job that timed out, with the job and attempt."""
        self.released: list[int] = []
        """Machines whose copy was stopped and that are up again, until somebody clears it."""
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

    def add_machine(self, rates: Floats) -> None:
        """Make room for one more machine, which is not up yet."""
        self.own.append(deque())
        self.running.append(None)
        self.closed = np.append(self.closed, False)
        self.free = np.append(self.free, self.now)
        self.heard_free = np.append(self.heard_free, self.now)
        seen = records(1, MACHINE)
        seen["up"], seen["serving"], seen["availability"] = False, -1, 1.0
        self.machines = np.concatenate([self.machines, seen]).view(np.recarray)
        column = np.asarray(rates, dtype=float)[:, None]
        self.nominal, self.rate = np.hstack([self.nominal, column]), np.hstack([self.rate, column])
        for name in ("expected", "plan", "memory"):
            old = getattr(self, name)
            setattr(self, name, np.hstack([old, np.zeros_like(column)]))
        self.assigned = np.hstack([self.assigned, np.zeros(column.shape, np.int64)])
        self.arguments = self.policy.arguments(self.nominal.shape)
        self.group = groups_of(self.nominal)
        self._expect(len(self.machines) - 1)
        self._make_plan()

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

    def able(self, task_class: int) -> int:
        """Return how many machines could run a class, whatever the plan."""
        there = self.machines["up"] & ~self.closed
        return int((there & (self.nominal[task_class] > 0.0)).sum())

    def takers(self, task_class: int) -> tuple[int, ...]:
        """Return the machines that a job of a class may be given to now."""
        able = self.machines["up"] & ~self.closed
        able &= (self.plan[task_class] > 0.0) & (self.nominal[task_class] > 0.0)
        return tuple(np.flatnonzero(able).tolist())

    def can_take(self, machine: int) -> bool:
        """Tell whether a machine is up and takes jobs."""
        return bool(self.machines[machine].up) and not bool(self.closed[machine])

    def put(self, job: Job) -> None:
        """Let a job wait in its class, in the order of ``since``."""
        job.stage, job.machine, job.started = Stage.waiting, -1, float("nan")
        self.changed[job.number] = job
        queue = self.waiting[job.task_class]
        if queue and (queue[-1].since, queue[-1].number) > (job.since, job.number):
            ordered = list(queue)
            insort(ordered, job, key=lambda each: (each.since, each.number))
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
        job.free, job.heard_free = self.free[job.machine], self.heard_free[job.machine]
        self.changed[job.number] = job
        job.attempt += 1
        self.running[job.machine] = job
        self.machines[job.machine].serving = job.task_class
        self.out.append(Send(job.number, job.machine, job.attempt))

    # details

    def _make_plan(self) -> None:
        self.plans += 1
        able = self.machines["up"] & ~self.closed
        if self.policy.planner is None or not len(self.classes):
            self.plan[:] = self.nominal > 0
            return
        share = self.machines["availability"] if self.policy.use_availability else 1.0
        situation = Situation(
            self.nominal,
            self.classes["arrival"].copy(),
            np.where(able, share, 0.0),
            self.group,
        )
        self.plan[:] = self.policy.plan(situation)

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
        seen.oldest = queue[0].since - self.start if queue else np.inf

    def _take_back(self, job: Job, stage: Stage) -> None:
        """End a job wherever it is."""
        if job.stage == Stage.waiting:
            self.waiting[job.task_class].remove(job)
            self._count(job.task_class)
            self._close(job, stage)
        elif job.stage == Stage.queued:
            self.own[job.machine].remove(job)
            self._leave_machine(job)
            self._close(job, stage)
        else:
            self.out.append(Cancel(job.number, job.machine, job.attempt))
            self._end(job, stage)
            self.mechanism.freed(job.machine)

    def _end(self, job: Job, stage: Stage) -> None:
        self._stop_running(job)
        self._close(job, stage)

    def _stop_running(self, job: Job) -> None:
        self.running[job.machine] = None
        self.free[job.machine] = self.heard_free[job.machine] = self.now
        self.machines[job.machine].serving = -1
        self._leave_machine(job)

    def _leave_machine(self, job: Job) -> None:
        m = self.machines[job.machine]
        m.backlog -= 1
        m.work = m.work - job.expected if m.backlog > 0 else 0.0

    def _close(self, job: Job, stage: Stage) -> None:
        job.stage, job.ended = stage, self.now
        self.changed[job.number] = job
