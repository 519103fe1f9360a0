"""The state of a grid: where each job is, and what is assumed of the machines."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, groups_of
from ..compiler.checks import readonly
from ..model import InputError
from ..policies import PEER, Kind, Policy, View
from ..policies.view import CLASS, MACHINE, TALLIES, Records, records
from .ahead import Ahead
from .job import Cancel, Decision, Instruction, Job, Send, Stage
from .line import Line

if TYPE_CHECKING:
    from .chain import KnownChains
    from .execution_times import ExecutionTimes

Floats = NDArray[np.float64]

SLOWEST = 1e-100
"""The lowest rate that is allowed; the highest is its inverse, so that sums stay finite."""

LACKS: dict[Kind, str] = {
    PEER: "it has one scheduler, and jobs do not arrive at its machines",
}
"""Why a grid cannot run policies of other kinds."""


class GridState:
    """The jobs and machines of a grid, and how jobs move between queues.

    ``rates`` [class, machine], ``arrivals`` and ``availability`` are what is assumed. Policies see
    the time since ``start``. ``retries`` is how often a job is tried again after its process died
    or it timed out; None means without limit, as in the published experiments: the machine of a job
    that timed out then counts as down until it answers. ``times`` is what batch and
    chain policies know of jobs.
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
        times: ExecutionTimes | KnownChains | None = None,
    ) -> None:
        from .mechanism import MECHANISMS

        if policy.kind not in MECHANISMS:
            raise InputError(
                f"{policy.name} is a {policy.kind} policy; a grid runs push, pull, batch and chain "
                f"policies: {LACKS[policy.kind]}; for an experiment with {policy.name} on real "
                "machines: gridwright run"
            )
        self.policy, self.times = policy, times
        self.decide: Callable[..., Any] = policy.decide
        """The policy's function, or a compiled version of it."""
        self.nominal: Floats = np.array(rates, dtype=float, order="C")
        classes, machines = self.nominal.shape
        self.group = groups_of(self.nominal)
        self.arguments = policy.arguments((classes, machines))
        self.start = self.now = start
        self.retries = retries
        self.jobs: dict[int, Job] = {}
        self.waiting = [Line() for _ in range(classes)]
        self.own = [Line() for _ in range(machines)]
        self.pinned_are_next = False
        """Whether jobs for one machine go before those that the policy has given to it."""
        self.running: list[Job | None] = [None] * machines
        self.closed = np.zeros(machines, np.bool_)  # paused machines, which are up but take no jobs
        self.free = np.full(machines, start)  # when they became idle
        self.heard_free = np.full(machines, start)
        self.decisions: list[Decision] = []
        """Decisions of the policy, until the driver takes them."""
        self.losses: list[tuple[int, int, int]] = []
        """Job, attempt and machine of jobs that were lost with it, until the driver takes them."""
        self.dependents: dict[int, list[Job]] = {}
        """The blocked jobs that need the result of a job, by its number."""
        self.blocked: set[int] = set()
        """The numbers of blocked jobs."""
        self.homeless: dict[str, list[Job]] = {}
        """Jobs that wait for a machine which the grid does not have, by its name."""
        self.ready: deque[Job] = deque()
        """Jobs that are no longer blocked, and do not wait for a machine yet."""
        self.unblocked: list[Job] = []
        """Jobs that have come to wait since, until the driver takes them."""
        self.fallen: list[tuple[Job, int]] = []
        """Jobs that ended because they need the result of another, and the number of that one,
        until the driver takes them."""
        self.given_up: list[tuple[Job, int]] = []
        """Jobs without retries left, and their last machine, until the driver takes them."""
        self.discarded: list[Job] = []
        """Jobs that ended because their deadline had passed, until the driver takes them."""
        self.retried = 0
        """How often a job was tried again because its process died or it timed out."""
        self.held: dict[int, tuple[Job, int]] = {}
        """Machines that still run a copy of a job that timed out: the job and the attempt."""
        self.released: list[int] = []
        """Machines that are up again since their copy was stopped, until the driver takes them."""
        self.refusals = self.asked = self.plans = 0
        self.machines = records(machines, MACHINE)
        self.classes = records(classes, CLASS)
        self._name_columns()
        self.machines["up"], self.machines["serving"] = up, -1
        share = np.ones(machines) if availability is None else np.asarray(availability, dtype=float)
        self.machines["availability"] = share
        self.classes["arrival"], self.classes["oldest"] = arrivals, np.inf
        self.classes["cost"] = 1.0
        self.rate: Floats = np.ascontiguousarray(self.nominal * share)
        self.expected: Floats = np.full_like(self.rate, np.inf)
        self.assigned = np.zeros((classes, machines), np.int64)
        self.plan, self.memory = np.zeros((classes, machines)), policy.memory((classes, machines))
        self.tally: Floats = np.zeros(TALLIES)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.out: list[Instruction] = []
        self.changed: dict[int, Job] = {}
        """Jobs that were sent, started or ended, until the driver takes them."""
        self.moved: dict[int, Job] = {}
        """Jobs that only moved between queues, until the driver takes them."""
        self._shown: View | None = None
        """The view of policies without the time, until arrays are replaced by larger ones."""
        self.pending = False
        self.enough: Callable[[], bool] = lambda: False
        """Tells whether an event has taken long enough; the rest is then left unfinished."""
        self.many = math.inf
        """With more waiting jobs than this, a batch policy is compiled, by way of `beside`."""
        self.beside: Callable[..., None] = lambda work, take: take(work())
        self.unfinished = False
        self.returning: dict[int, None] = {}
        """Machines that take no jobs and still have to return those in their queues."""
        self.plans_beside: Callable[[], bool] = lambda: False
        """Tells whether the driver makes plans, in a thread, when `stale` is set."""
        self.stale = False
        for j in range(machines):
            self._expect(j)
        self.ahead = Ahead(self)
        self.mechanism = MECHANISMS[policy.kind](self)
        self._make_plan()
        self.mechanism.recalled()

    def add_class(self, rates: Floats, arrival: float) -> None:
        """Add a class of jobs."""
        self._shown = None
        self.waiting.append(Line())
        seen = records(1, CLASS)
        seen["arrival"], seen["oldest"], seen["cost"] = arrival, np.inf, 1.0
        self.classes = np.concatenate([self.classes, seen]).view(Records)
        self._name_columns()
        self.nominal = np.vstack([self.nominal, rates])
        self.rate = np.vstack([self.rate, rates * self.machines["availability"]])
        self._grow((0, 1), (0, 0))
        if self.pending and self.plans_beside():
            new = ~self.plan.any(axis=1)
            self.plan[new] = self.nominal[new] > 0  # allow any machine until there is a plan

    def add_machine(self, rates: Floats) -> None:
        """Add a machine, which is not up yet."""
        self._shown = None
        self.own.append(Line())
        self.ahead.add_machine()
        self.running.append(None)
        self.closed = np.append(self.closed, False)
        self.free = np.append(self.free, self.now)
        self.heard_free = np.append(self.heard_free, self.now)
        seen = records(1, MACHINE)
        seen["up"], seen["serving"], seen["availability"] = False, -1, 1.0
        self.machines = np.concatenate([self.machines, seen]).view(Records)
        self._name_columns()
        column = np.asarray(rates, dtype=float)[:, None]
        self.nominal, self.rate = np.hstack([self.nominal, column]), np.hstack([self.rate, column])
        self._grow((0, 0), (0, 1))

    def _grow(self, classes: tuple[int, int], machines: tuple[int, int]) -> None:
        """Add a row or a column of zeros to the matrices, and make a plan with the next event.

        Many new classes then need only one plan.
        """
        for name in ("expected", "plan", "assigned"):
            setattr(self, name, np.pad(getattr(self, name), (classes, machines)))
        self.memory = self.policy.memory(self.nominal.shape, self.memory)
        self.arguments = self.policy.arguments(self.nominal.shape)
        self.group = groups_of(self.nominal)
        for j in range(len(self.machines)):
            self._expect(j)
        if self.policy.planner is None:
            self._make_plan()
        else:
            self.pending = True

    def _name_columns(self) -> None:
        """Name the columns that the book changes: quicker than attributes of records."""
        self.up, self.serving = self.machines["up"], self.machines["serving"]
        self.backlog, self.work = self.machines["backlog"], self.machines["work"]
        self.availability = self.machines["availability"]
        self.seen_waiting, self.oldest = self.classes["waiting"], self.classes["oldest"]
        self.arrived = self.classes["arrived"]

    def view(self) -> View:
        """Return the view for the policy."""
        if self._shown is None:
            self._shown = View(
                0.0,
                readonly(self.machines),
                readonly(self.classes),
                readonly(self.rate),
                readonly(self.nominal),
                readonly(self.expected),
                readonly(self.assigned),
                readonly(self.plan),
                self.memory,
                self.tally,
                self.rng,
            )
        return self._shown._replace(now=self.now - self.start)

    def able(self) -> NDArray[np.int64]:
        """Return for each class how many machines could run it, ignoring the plan."""
        there = self.machines["up"] & ~self.closed
        return np.asarray((self.nominal[:, there] > 0.0).sum(axis=1))

    def takers(self, task_class: int) -> tuple[int, ...]:
        """Return the machines that may be given a job of a class now."""
        able = self.machines["up"] & ~self.closed
        able &= (self.plan[task_class] > 0.0) & (self.nominal[task_class] > 0.0)
        return tuple(np.flatnonzero(able).tolist())

    def is_crowded(self) -> bool:
        """Tell whether more jobs wait than there are machines."""
        return int(self.seen_waiting.sum()) > len(self.running)

    def can_take(self, machine: int) -> bool:
        """Tell whether a machine is up and takes jobs."""
        return bool(self.up[machine]) and not bool(self.closed[machine])

    def ask(self, subject: int, level: int) -> int:
        """Ask the policy about a machine or a class; it sees the waiting jobs of one priority."""
        others = [
            i
            for i, queue in enumerate(self.waiting)
            if queue and (len(queue.levels) > 1 or level not in queue.levels)
        ]
        for i in others:
            is_shown = self.waiting[i].level() == level
            self.seen_waiting[i] = self.waiting[i].levels[level] if is_shown else 0
            self.oldest[i] = self.oldest[i] if is_shown else np.inf
        answer = int(self.decide(subject, self.view(), *self.arguments))
        for i in others:
            self._count(i)
        return answer

    def ask_ahead(self, machine: int, level: int) -> int:
        """Ask the policy about a busy machine, which it sees idle, as it will be."""
        seen = (self.serving, self.backlog, self.work)
        before = [column[machine] for column in seen]
        self.serving[machine], self.backlog[machine], self.work[machine] = -1, 0, 0.0
        try:
            return self.ask(machine, level)
        finally:
            for column, value in zip(seen, before, strict=True):
                column[machine] = value

    def put(self, job: Job) -> None:
        """Put a job into the queue of its class, in the order of ``since``, or of its machine."""
        job.stage, job.machine, job.started = Stage.waiting, -1, float("nan")
        self.moved[job.number] = job
        self.ahead.has_come = True
        if job.pinned >= 0:
            self._assign(job, job.pinned)
            job.stage = Stage.queued
            self.own[job.pinned].append(job, is_next=self.pinned_are_next)
        else:
            self.waiting[job.task_class].insert(job)
            self._count(job.task_class)
            self.mechanism.entered(job)

    def give(self, task_class: int, machine: int) -> None:
        """Give the first job of a class to a machine: to run now or next, or into its queue."""
        self._give(self.waiting[task_class].popleft(), machine)

    def give_job(self, job: Job, machine: int) -> None:
        """Give any waiting job to a machine."""
        self.waiting[job.task_class].take(job)
        self._give(job, machine)

    def _give(self, job: Job, machine: int) -> None:
        self._count(job.task_class)
        self._assign(job, machine)
        may_run_next = not (job.stays or self.own[machine]) and self.ahead.has_room(machine)
        if self.running[machine] is None or may_run_next:
            self.send(job)
        else:
            job.stage = Stage.queued
            self.moved[job.number] = job
            self.own[machine].append(job)

    def line_up(self, job: Job, machine: int) -> None:
        """Put a waiting job into the queue of a machine, even if that one is idle."""
        self.waiting[job.task_class].take(job)
        self._count(job.task_class)
        self._assign(job, machine)
        job.stage = Stage.queued
        self.moved[job.number] = job
        self.own[machine].append(job)

    def discard(self, job: Job) -> None:
        """End a job that has not started, because its deadline has passed."""
        self._take_back(job, Stage.failed)
        job.is_discarded, job.heard = True, self.now
        self.discarded.append(job)

    def start_own(self, machine: int) -> bool:
        """Start the first job of a machine's own queue, if it is free and has one."""
        is_free = self.running[machine] is None and self.can_take(machine)
        if is_free and self.own[machine]:
            self.send(self.own[machine].popleft())
        return self.running[machine] is not None

    def send_own_ahead(self, machine: int) -> bool:
        """Send a busy machine the first job of its own queue; return whether there is one."""
        own = self.own[machine]
        there = bool(own) and not own.first().stays
        if there:
            self.send(own.popleft())
        return there

    def _assign(self, job: Job, machine: int) -> None:
        task_class = job.task_class
        rate = float(self.rate[task_class, machine])
        job.machine, job.assigned = machine, self.now
        job.expected = 1.0 / rate if rate > 0.0 else 0.0
        self.backlog[machine] += 1
        self.work[machine] += job.expected
        self.assigned[task_class, machine] += 1

    def send(self, job: Job) -> None:
        """Send a job to its machine, which starts it now, or after those that it has."""
        job.sent = self.now
        job.attempt += 1
        if self.running[job.machine] is None:
            self._run(job)
        else:
            self.ahead.add(job)  # the journal need not know: after a restart it waits again
            self.moved.pop(job.number, None)
        self.out.append(Send(job.number, job.machine, job.attempt))

    def _run(self, job: Job) -> None:
        """Note that a machine runs a job that it was sent."""
        job.stage = Stage.sent
        job.free, job.heard_free = self.free[job.machine], self.heard_free[job.machine]
        self.changed[job.number] = job
        self.running[job.machine] = job
        self.serving[job.machine] = job.task_class
        self.ahead.changed.add(job.machine)

    def situation(self) -> Situation:
        """Return the situation to plan for."""
        able = self.machines["up"] & ~self.closed & self.nominal.any(axis=0)
        share = self.machines["availability"] if self.policy.use_availability else 1.0
        return Situation(
            self.nominal.copy(),
            self.classes["arrival"].copy(),
            np.where(able, share, 0.0),
            self.group,
        )

    # details

    def _make_plan(self) -> None:
        self.plans += 1
        if self.policy.planner is None:
            self.plan[:] = self.nominal > 0
        else:
            self.plan[:] = self.policy.plan(self.situation())

    def _believe(self, machine: int) -> None:
        self.rate[:, machine] = self.nominal[:, machine] * self.availability[machine]
        self._expect(machine)

    def _expect(self, machine: int) -> None:
        rate, known = self.rate[:, machine], self.expected[:, machine]
        known[:] = np.inf
        if self.can_take(machine):
            np.divide(1.0, rate, out=known, where=rate > 0.0)

    def _count(self, task_class: int) -> None:
        queue = self.waiting[task_class]
        self.seen_waiting[task_class] = len(queue)
        self.oldest[task_class] = queue.first().since - self.start if queue else np.inf

    def is_out(self, job: Job, attempt: int) -> bool:
        """Tell whether a machine has this attempt of a job."""
        return job.attempt == attempt and (job.stage == Stage.sent or job.is_ahead)

    def _blame(self, job: Job, why: str) -> None:
        """Note why an attempt failed; without a limit of retries, only of the last attempt."""
        job.causes = (*job.causes, why) if self.retries is not None else (why,)

    def _is_spent(self, job: Job) -> bool:
        most = self.retries if job.options.retries is None else job.options.retries
        return most is not None and len(job.causes) > most

    def _retry(self, job: Job) -> None:
        """Let a job wait again, behind the others of its class if retries have a limit."""
        if self.retries is not None:
            job.since = self.now
        self.retried += 1
        self.put(job)

    def _put_back(self) -> bool:
        """Return the queues of machines that take no jobs; return False if some are left."""
        for machine in list(self.returning):
            own = self.own[machine]
            pinned: list[Job] = []
            is_spent = False
            while own and not is_spent:
                job = own.popleft()
                self._leave_machine(job)
                if job.pinned >= 0:
                    pinned.append(job)
                else:
                    self.put(job)
                    is_spent = self.enough()
            for job in pinned:  # they stay
                self.put(job)
            if is_spent:
                self.unfinished = True
                return False
            del self.returning[machine]
        return True

    def _take_back(self, job: Job, stage: Stage) -> None:
        """End a job in whatever queue or machine it is."""
        if job.stage == Stage.blocked:
            self._close(job, stage)
        elif job.stage == Stage.waiting:
            self._close(job, stage)
            self.waiting[job.task_class].drop(job)
            self._count(job.task_class)
        elif job.stage == Stage.queued and not job.is_ahead:
            self._close(job, stage)
            self.own[job.machine].drop(job)
            self._leave_machine(job)
        else:
            self.out.append(Cancel(job.number, job.machine, job.attempt))
            self._stop_running(job)
            self._close(job, stage)
            self.mechanism.freed(job.machine)

    def _stop_running(self, job: Job, ended: float | None = None) -> None:
        """Take a job from its machine, which runs the next that it was sent."""
        machine = job.machine
        if job.is_ahead:
            self.ahead.remove(job)
        else:
            self.free[machine] = self.now if ended is None else ended
            self.heard_free[machine] = self.now
            self.running[machine] = None
            self.serving[machine] = -1
            if (following := self.ahead.first(machine)) is not None:
                self.ahead.remove(following)
                self._run(following)
        self._leave_machine(job)

    def _leave_machine(self, job: Job) -> None:
        machine = job.machine
        self.backlog[machine] -= 1
        self.work[machine] = self.work[machine] - job.expected if self.backlog[machine] > 0 else 0.0

    def _close(self, job: Job, stage: Stage) -> None:
        """End a job, and with it those that need its result, unless it has finished."""
        ending = [job]
        while ending:
            job = ending.pop()
            job.stage, job.ended = stage, self.now
            self.changed[job.number] = job
            self.blocked.discard(job.number)
            for each in self.dependents.pop(job.number, ()):
                if each.stage != Stage.blocked:
                    continue  # it was cancelled
                if stage != Stage.finished:
                    each.stage = stage
                    self.fallen.append((each, job.number))
                    ending.append(each)
                else:
                    each.missing -= 1
                    if not each.missing:
                        self.ready.append(each)
