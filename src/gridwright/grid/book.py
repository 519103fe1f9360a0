"""The book: decides what a grid does when something happens, as a pure state machine.

Events go in (a job is submitted, starts or ends; a machine comes or goes), instructions for the
executor come out, and a policy is asked in between. The book has no clock and no input or output:
every event says when it happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType

import numpy as np

from ..allocation import groups_of
from ..model import InputError
from .job import PLAIN, Cancel, Copy, Instruction, Job, Options, Stage
from .state import SLOWEST, Floats, GridState

NOTHING: Mapping[int, Stage] = MappingProxyType({})


class Book(GridState):
    """The state of a grid and its transitions."""

    def submit(
        self,
        now: float,
        number: int,
        task_class: int,
        options: Options = PLAIN,
        *,
        key: str | None = None,
        needs: Mapping[int, Stage] = NOTHING,
        pinned: int = -1,
    ) -> list[Instruction]:
        """Add a new job. ``needs`` are the jobs whose results it needs, and their stages."""
        if number in self.jobs:
            raise InputError(f"job {number} was submitted before")
        job = self.jobs[number] = Job(number, task_class, now, options=options, key=key)
        job.needs, job.pinned = tuple(needs), pinned
        self.now = now
        self.mechanism.watch(job)
        if self._block(job, needs):
            self.changed[number] = job
        else:
            self._arrive(job)
        return self._answer()

    def _block(self, job: Job, needs: Mapping[int, Stage]) -> bool:
        """Let a job wait for others to end; return False if all of them have finished."""
        for number, stage in needs.items():
            if stage.is_final and stage != Stage.finished:
                self.fallen.append((job, number))
                self._close(job, stage)
                return True
        unfinished = [number for number, stage in needs.items() if not stage.is_final]
        job.missing = len(unfinished)
        for number in unfinished:
            self.dependents.setdefault(number, []).append(job)
        if unfinished:
            job.stage = Stage.blocked
            self.blocked.add(job.number)
        return bool(unfinished)

    def _arrive(self, job: Job) -> None:
        if self._has_no_machine(job):
            return
        self.blocked.discard(job.number)
        self.arrived[job.task_class] += 1
        self.put(job)
        self.ahead.yield_to(job.options.priority)
        if job.pinned < 0:
            self.mechanism.placed(job.task_class)
        elif self.start_own(job.pinned):
            self.mechanism.gone(job.pinned)

    def _has_no_machine(self, job: Job) -> bool:
        """Let a job wait for its machine to come, if the grid does not have it."""
        lacks = bool(job.options.machine) and job.pinned < 0
        if lacks:
            job.stage = Stage.blocked
            self.changed[job.number] = job
            self.blocked.add(job.number)
            self.homeless.setdefault(job.options.machine, []).append(job)
        return lacks

    def machine_found(self, name: str, machine: int) -> None:
        """Note that the grid has a machine now: the jobs that are only for it may run."""
        for job in self.homeless.pop(name, ()):
            job.pinned = machine
            self.ready.append(job)

    def adopt(self, job: Job, task_class: int, needs: Mapping[int, Stage] = NOTHING) -> None:
        """Add a job that an earlier grid left unfinished: it waits since its submission.

        A job that has used up some of its retries waits behind the others.
        """
        job.task_class = task_class
        self.mechanism.watch(job)
        if self._block(job, needs) or self._has_no_machine(job):
            self.jobs[job.number] = job
            return
        if job.causes and self.retries is not None:
            job.since = self.now
        self.jobs[job.number] = job
        self.arrived[task_class] += 1
        was_waiting = job.stage == Stage.waiting
        self.put(job)
        if was_waiting:
            del self.moved[job.number]  # the journal has it already in this stage
        if self.machines["up"].any():
            self.mechanism.placed(task_class)

    def started(self, now: float, number: int, attempt: int) -> None:
        """Note that a machine has started a job."""
        job = self.jobs.get(number)
        if job is None:
            return
        if attempt in job.copies:
            job.copies[attempt] = job.copies[attempt]._replace(started=now)
        elif self.is_out(job, attempt):
            if job.is_ahead:  # its machine has begun it before the job that we took for running
                self._swap(job, now)
            job.started = now
            self.changed[number] = job

    def _swap(self, job: Job, now: float) -> None:
        """Let a job count as running, and the one that did as sent ahead."""
        before = self.running[job.machine]
        self.ahead.remove(job)
        if before is not None:
            self.ahead.add(before)
            self.ahead.queues[job.machine].rotate()
            self.free[job.machine] = self.heard_free[job.machine] = now
        self._run(job)

    def not_begun(self, now: float, number: int, attempt: int) -> list[Instruction]:
        """Note that a job that was called back has not begun: it waits again."""
        job = self.jobs.get(number)
        if job is None or not self.is_out(job, attempt):
            return []
        self.now, machine = now, job.machine
        self._stop_running(job)  # we may take it for running, if the one before it has ended
        job.stays = True
        self.put(job)
        self.mechanism.retried(job.task_class, machine)
        return self._answer()

    def send_ahead(self, now: float) -> list[Instruction]:
        """Map a batch, send jobs ahead, and call back those that should go elsewhere."""
        self.now = now
        self.mechanism.settle()
        self.ahead.fill()
        return self._answer()

    def look_ahead(self, now: float) -> list[Instruction]:
        """Call back jobs behind one that takes much longer than expected."""
        self.now = now
        self.ahead.look()
        return self._answer()

    def expire(self, now: float) -> list[Instruction]:
        """Discard jobs that wait and whose deadline has passed, as the mechanism says."""
        self.now = now
        self.mechanism.expire()
        return self._answer()

    def finished(
        self,
        now: float,
        number: int,
        attempt: int,
        *,
        ended: float | None = None,
        failed: bool = False,
    ) -> list[Instruction] | None:
        """Note that a job has finished or failed; return None if nobody waited for this answer.

        ``ended`` is when it ended, which may be before the grid learnt of it.
        """
        job = self.jobs.get(number)
        if job is None or job.stage.is_final:
            return None
        stage = Stage.failed if failed else Stage.finished
        if attempt in job.copies:  # the first answer counts
            self.now = now
            self._take_back(job, stage)
            job.machine, job.sent, job.started = job.copies.pop(attempt)
            self.held.pop(job.machine, None)
        elif not self.is_out(job, attempt):
            return None
        else:
            self.now = now
            self._stop_running(job, ended)
            self._close(job, stage)
            self.mechanism.freed(job.machine)
        job.heard = now
        if ended is not None:
            job.ended = ended
        self._stop_copies(job)
        return self._answer()

    def timed_out(
        self,
        now: float,
        number: int,
        attempt: int,
        *,
        then: str = "resubmit",
        why: str = "it timed out",
    ) -> list[Instruction] | None:
        """Note that a job has timed out; return None if it has ended.

        ``wait``: nothing else happens. ``fail``: the job is stopped and fails. ``resubmit``: it is
        stopped and waits again. ``duplicate``: it continues, a copy of it waits, and the first
        answer counts. A job without retries left is stopped and fails.

        Without a limit of retries, ``resubmit`` stops nothing: the machine counts as down until it
        answers, as with ``duplicate``. With a limit, a job that has not started does not fail
        before its retries are used up, because its machine may be the cause.
        """
        job = self.jobs.get(number)
        if job is None or job.stage != Stage.sent or job.attempt != attempt:
            return None
        job.timed_out += 1
        self.changed[number] = job
        if then == "wait":
            return []
        self.now, machine = now, job.machine
        self._blame(job, why)
        if then == "fail" and self.retries is not None and math.isnan(job.started):
            then = "resubmit"
        if then == "fail" or self._is_spent(job):
            self._take_back(job, Stage.failed)
            job.heard = now
            self.given_up.append((job, machine))
            self._stop_copies(job)
        elif then == "resubmit" and self.retries is not None:
            self.out.append(Cancel(number, machine, attempt))
            self._stop_running(job)
            self._retry(job)
            self.mechanism.retried(job.task_class, machine)
        else:
            self.retried += 1
            if then == "duplicate":
                job.copies[attempt] = Copy(machine, job.sent, job.started)
            self._lose_machines([machine], silent=True)
            if then == "duplicate":
                self.held[machine] = (job, attempt)
        return self._answer()

    def copy_timed_out(self, now: float, number: int, attempt: int) -> list[Instruction] | None:
        """Stop a copy that has timed out again; return None if it does not run any more.

        Otherwise the copies of a few endless jobs could occupy all machines for ever.
        """
        job = self.jobs.get(number)
        if job is None or attempt not in job.copies:
            return None
        self.now = now
        self._bring_back([self._stop_copy(job, attempt)])
        return self._answer()

    def cancel(self, now: float, number: int) -> list[Instruction] | None:
        """Cancel a job; return None if it has ended."""
        job = self.jobs[number]
        if job.stage.is_final:
            return None
        self.now = now
        self._take_back(job, Stage.cancelled)
        self._stop_copies(job)
        return self._answer()

    def machine_down(self, now: float, machine: int, *, died: str = "") -> list[Instruction]:
        """Note that a machine is gone: its jobs wait again.

        ``died`` says how its process ended, if it died by itself. This uses up a retry of the job
        that it ran, which then waits behind the others of its class.
        """
        return self.machines_down(now, [machine], died=died)

    def machines_down(
        self, now: float, machines: Sequence[int], *, died: str = ""
    ) -> list[Instruction]:
        """Note that machines are gone at the same time: no job moves from one to another."""
        self.now = now
        for machine in machines:
            self._forget_copy(machine)
        self._lose_machines(machines, died=died)
        return self._answer()

    def _lose_machines(
        self, machines: Sequence[int], *, silent: bool = False, died: str = ""
    ) -> None:
        """Empty machines that are gone; a silent one may still answer."""
        gone = [machine for machine in machines if self.up[machine]]
        if not gone:
            return
        for machine in gone:
            self.up[machine] = False
            self._expect(machine)
            self.mechanism.gone(machine)
        self.pending = self.policy.planner is not None
        every = [self._empty(machine, silent=silent, died=died) for machine in gone]
        if self._put_back():
            for lost in chain.from_iterable(every):
                self.mechanism.returned(lost)
        for job, _ in self.given_up:
            self._stop_copies(job)

    def _empty(self, machine: int, *, silent: bool, died: str) -> list[int]:
        """Return the jobs of a machine that is gone to their classes; mark its queue for return.

        Return the class of the job that it ran, or −1, and those of the jobs sent ahead.
        """
        lost = self.running[machine]
        if lost is not None:
            if not silent:
                self.out.append(Cancel(lost.number, machine, lost.attempt))
            lost.lost += 1
            self.losses.append((lost.number, lost.attempt, machine))
            self.running[machine] = None
            self._leave_machine(lost)
            if not died:
                self.put(lost)
            else:
                lost.deaths += 1
                self.changed[lost.number] = lost
                self._blame(lost, died)
                if self._is_spent(lost):
                    self._close(lost, Stage.failed)
                    lost.heard = self.now
                    self.given_up.append((lost, machine))
                else:
                    self._retry(lost)
        classes = [lost.task_class if lost is not None else -1]
        while (following := self.ahead.first(machine)) is not None:
            classes.append(following.task_class)
            self.ahead.remove(following)
            self.out.append(Cancel(following.number, machine, following.attempt))
            self._leave_machine(following)
            self.put(following)
        self.serving[machine] = -1
        self.returning[machine] = None
        return classes

    def go_on(self, now: float) -> list[Instruction]:
        """Continue what an earlier event left unfinished."""
        self.now, self.unfinished = now, False
        if self._put_back():
            self.mechanism.go_on()
        return self._answer()

    def _stop_copies(self, job: Job) -> None:
        """Stop the copies of a job that has ended: their machines take jobs again.

        Without a limit of retries, the copies continue until they answer.
        """
        if self.retries is not None and job.copies:
            self._bring_back([self._stop_copy(job, attempt) for attempt in list(job.copies)])

    def _stop_copy(self, job: Job, attempt: int) -> int:
        """Stop a copy; return its machine, which the caller brings back."""
        machine = job.copies.pop(attempt).machine
        del self.held[machine]
        self.out.append(Cancel(job.number, machine, attempt))
        self.released.append(machine)
        return machine

    def _forget_copy(self, machine: int) -> None:
        """Forget the copy on a machine that has ended or restarted: it cannot answer."""
        if machine in self.held:
            job, attempt = self.held.pop(machine)
            job.copies.pop(attempt, None)

    def machine_up(
        self, now: float, machine: int, availability: float | None = None
    ) -> list[Instruction]:
        """Note that a machine is up."""
        if not self.up[machine] and availability is not None:
            old = self.availability[machine]
            self.availability[machine] = _sound([availability], old)[0]
        return self.machines_up(now, [machine])

    def machines_up(self, now: float, machines: Sequence[int]) -> list[Instruction]:
        """Note that machines are up at the same time, so that they share what waits."""
        self.now = now
        for machine in machines:
            self._forget_copy(machine)
        self._bring_back(machines)
        return self._answer()

    def _bring_back(self, machines: Sequence[int]) -> None:
        back = [machine for machine in machines if not self.up[machine]]
        if not back:
            return
        for machine in back:
            self.up[machine] = True
            self.free[machine] = self.heard_free[machine] = self.now
            self._believe(machine)
            if not self.closed[machine]:
                self.returning.pop(machine, None)  # what is still in its queue stays there
        self.pending = self.policy.planner is not None
        for machine in back:
            if not self.closed[machine]:
                self.mechanism.freed(machine)

    def believe(
        self,
        now: float,
        *,
        rates: Floats | None = None,
        arrivals: Sequence[float] | None = None,
        availability: Sequence[float] | None = None,
    ) -> list[Instruction]:
        """Assume other rates, arrival rates or availabilities, and make a new plan.

        The old number stays where the new one is negative, not finite, or of an impossible size.
        """
        self.now = now
        if rates is not None:
            self.nominal[:] = _sound(rates, self.nominal)
            self.group = groups_of(self.nominal)
        if arrivals is not None:
            self.classes["arrival"] = _sound(arrivals, self.classes["arrival"])
        if availability is not None:
            old = self.machines["availability"]
            self.machines["availability"] = _sound(availability, old)
        for j in range(len(self.machines)):
            self._believe(j)
        self.pending = self.policy.planner is not None
        return self._answer()

    def close(self, now: float, machine: int) -> list[Instruction]:
        """Give a machine no more jobs; those in its queue go elsewhere."""
        self.now = now
        if self.closed[machine]:
            return []
        self.closed[machine] = True
        if self.up[machine]:
            self.mechanism.gone(machine)
            self.returning[machine] = None
            self.ahead.call_all_back(machine)
            self._expect(machine)
            self.pending = self.policy.planner is not None
            if self._put_back():
                self.mechanism.returned(-1)
        return self._answer()

    def open(self, now: float, machine: int) -> list[Instruction]:
        """Give a machine jobs again."""
        self.now = now
        if not self.closed[machine]:
            return []
        self.closed[machine] = False
        if self.up[machine]:
            self.returning.pop(machine, None)
        self._expect(machine)
        self.pending = self.policy.planner is not None
        if self.up[machine] and self.running[machine] is None:
            self.mechanism.freed(machine)
        return self._answer()

    def take_plan(self, now: float, plan: Floats) -> list[Instruction]:
        """Use a plan that was made for an earlier situation; newer classes keep their shares."""
        self.now = now
        if self.plans_beside():  # otherwise there is a newer one
            self.plans += 1
            self.plan[: plan.shape[0], : plan.shape[1]] = plan
            self.mechanism.recalled()
        return self._answer()

    def _answer(self) -> list[Instruction]:
        for job in self.discarded:
            self._stop_copies(job)
        while self.ready and not self.unfinished:
            job = self.ready.popleft()
            if job.stage == Stage.blocked:
                self._arrive(job)
                self.unblocked.append(job)
                self.unfinished = self.unfinished or (bool(self.ready) and self.enough())
        while self.pending:
            self.pending = False
            if self.policy.planner is not None and self.plans_beside():
                self.stale = True
            else:
                self._make_plan()
            self.mechanism.recalled()
        said, self.out = self.out, []
        return said


def _sound(found: Floats | Sequence[float], old: Floats) -> Floats:
    """Return the new numbers, but the old one where the new one is neither 0 nor plausible."""
    found = np.asarray(found, dtype=float)
    usual = (found >= SLOWEST) & (found <= 1.0 / SLOWEST)
    return np.where(usual | (found == 0.0), found, old)
