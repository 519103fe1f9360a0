"""The book: the live state of a grid as a pure machine.

Events go in (a job is submitted, starts, ends; a machine comes, goes, reports), instructions for
the executor come out, and a policy is asked in between. There is no clock and no input or output
in it: every event says when it happened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..allocation import groups_of
from ..model import InputError
from .job import Cancel, Copy, Instruction, Job, Stage
from .state import SLOWEST, Floats, GridState

__all__ = ["Book"]


class Book(GridState):
    """Jobs, machines, and what a policy decides about them when something happens."""

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
        """Take in a job that an earlier book left unfinished: it waits since its submission.

        One that has used up some of its retries waits behind the others.
        """
        job.task_class = task_class
        if job.causes and self.retries is not None:
            job.since = self.now
        self.jobs[job.number] = job
        self.classes[task_class].arrived += 1
        was_waiting = job.stage == Stage.waiting
        self.put(job)
        if was_waiting:
            del self.moved[job.number]  # it is in the journal as it is
        if self.machines["up"].any():
            self.mechanism.placed(task_class)

    def started(self, now: float, number: int, attempt: int) -> None:
        """Note that a machine has begun with a job."""
        job = self.jobs.get(number)
        if job is None:
            return
        if attempt in job.copies:
            job.copies[attempt] = job.copies[attempt]._replace(started=now)
        elif job.stage == Stage.sent and job.attempt == attempt:
            job.started = now
            self.changed[number] = job

    def finished(
        self,
        now: float,
        number: int,
        attempt: int,
        *,
        ended: float | None = None,
        failed: bool = False,
    ) -> list[Instruction] | None:
        """Note that a job has ended, well or not; None if nobody waited for this answer.

        It may have ended some time before that became known.
        """
        job = self.jobs.get(number)
        if job is None or job.stage.is_final:
            return None
        if attempt in job.copies:  # the first answer counts: no other copy is needed
            self.now = now
            self._take_back(job, Stage.failed if failed else Stage.finished)
            job.machine, job.sent, job.started = job.copies.pop(attempt)
            self.held.pop(job.machine, None)
        elif job.stage != Stage.sent or job.attempt != attempt:
            return None
        else:
            self.now = now
            self._end(job, Stage.failed if failed else Stage.finished)
            self.free[job.machine] = now if ended is None else ended
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
        """Note that a job takes too long; None if it has ended.

        ``wait``: nothing else happens. ``fail``: it is stopped and has failed. ``resubmit``: it is
        stopped and waits again. ``duplicate``: it goes on where it is, a copy of it waits, and
        the first answer counts. A job that has no retries left is stopped and has failed.

        Where retries have no limit, nothing is stopped by ``resubmit``: the machine counts as down
        until it answers, as that of a ``duplicate`` always does. Where they have one, a job that
        has not even started does not fail before they are used up: its machine may be to blame.
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
            self._give_up(job, machine)
        elif then == "resubmit" and self.retries is not None:
            self.out.append(Cancel(number, machine, attempt))
            self._stop_running(job)
            self._retry(job)
            self.mechanism.retried(job.task_class, machine)
        else:
            if then == "duplicate":
                job.copies[attempt] = Copy(machine, job.sent, job.started)
            self._lose_machines([machine], silent=True)
            if then == "duplicate":
                self.held[machine] = (job, attempt)
        return self._answer()

    def copy_timed_out(self, now: float, number: int, attempt: int) -> list[Instruction] | None:
        """Stop a copy that has not answered either; None if it is not there any more.

        Else copies of a few endless jobs could keep all machines from everybody for ever.
        """
        job = self.jobs.get(number)
        if job is None or attempt not in job.copies:
            return None
        self.now = now
        self._bring_back([self._stop_copy(job, attempt)])
        return self._answer()

    def cancel(self, now: float, number: int) -> list[Instruction] | None:
        """Take a job back; None if it has ended."""
        job = self.jobs[number]
        if job.stage.is_final:
            return None
        self.now = now
        self._take_back(job, Stage.cancelled)
        self._stop_copies(job)
        return self._answer()

    def machine_down(self, now: float, machine: int, *, died: str = "") -> list[Instruction]:
        """Note that a machine is gone: its jobs wait again.

        ``died`` says how its process ended by itself, if it did: that counts against the retries
        of the job that it ran, which waits behind the others of its class.
        """
        return self.machines_down(now, [machine], died=died)

    def machines_down(
        self, now: float, machines: Sequence[int], *, died: str = ""
    ) -> list[Instruction]:
        """Note that machines are gone, all at once: no job is moved from one to another."""
        self.now = now
        for machine in machines:
            self._forget_copy(machine)
        self._lose_machines(machines, died=died)
        return self._answer()

    def _lose_machines(
        self, machines: Sequence[int], *, silent: bool = False, died: str = ""
    ) -> None:
        """Empty machines that are gone; one that is only silent may still answer."""
        gone = [machine for machine in machines if self.machines[machine].up]
        if not gone:
            return
        for machine in gone:
            self.machines[machine].up = False
            self._expect(machine)
            self.mechanism.gone(machine)
        self.pending = self.policy.planner is not None
        every = [self._empty(machine, silent=silent, died=died) for machine in gone]
        if self._put_back():
            for lost in every:
                self.mechanism.returned(lost)
        for job, _ in self.given_up:
            self._stop_copies(job)

    def _empty(self, machine: int, *, silent: bool, died: str) -> int:
        """Let the job of a machine that is gone wait, and those that queue there soon.

        Return the class of what it ran, or −1.
        """
        lost = self.running[machine]
        if lost is not None:
            if not silent:
                self.out.append(Cancel(lost.number, machine, lost.attempt))
            lost.lost += 1
            self.losses.append((lost.number, lost.attempt, machine))
            self.running[machine] = None
            self._leave_machine(lost)
            if died:
                self._die(lost, machine, died)
            else:
                self.put(lost)
        self.machines[machine].serving = -1
        self.returning[machine] = None
        return lost.task_class if lost is not None else -1

    def _put_back(self) -> bool:
        """Let jobs wait that queue at machines which take none; False if some still queue."""
        for machine in list(self.returning):
            own = self.own[machine]
            while own:
                job = own.popleft()
                self._leave_machine(job)
                self.put(job)
                if self.enough():
                    self.unfinished = True
                    return False
            del self.returning[machine]
        return True

    def go_on(self, now: float) -> list[Instruction]:
        """Go on with what an earlier event left unfinished."""
        self.now, self.unfinished = now, False
        if self._put_back():
            self.mechanism.go_on()
        return self._answer()

    def _die(self, job: Job, machine: int, why: str) -> None:
        """Count the death of a job's process; the job waits again, or has failed for good."""
        job.deaths += 1
        self.changed[job.number] = job
        self._blame(job, why)
        if self._is_spent(job):
            self._close(job, Stage.failed)
            job.heard = self.now
            self.given_up.append((job, machine))
        else:
            self._retry(job)

    def _blame(self, job: Job, why: str) -> None:
        """Keep why an attempt was in vain; where retries have no limit, only the last time."""
        job.causes = (*job.causes, why) if self.retries is not None else (why,)

    def _is_spent(self, job: Job) -> bool:
        return self.retries is not None and len(job.causes) > self.retries

    def _retry(self, job: Job) -> None:
        """Let a job wait again: behind the others of its class, if retries have a limit."""
        if self.retries is not None:
            job.since = self.now
        self.put(job)

    def _give_up(self, job: Job, machine: int) -> None:
        """Note that a job has failed for good; stop its copies."""
        job.heard = self.now
        self.given_up.append((job, machine))
        self._stop_copies(job)

    def _stop_copies(self, job: Job) -> None:
        """Stop the copies of a job that has ended: their machines take jobs again.

        Where retries have no limit, they go on until they answer.
        """
        if self.retries is not None and job.copies:
            self._bring_back([self._stop_copy(job, attempt) for attempt in list(job.copies)])

    def _stop_copy(self, job: Job, attempt: int) -> int:
        """Stop a copy; return its machine, which is to be brought back."""
        machine = job.copies.pop(attempt).machine
        del self.held[machine]
        self.out.append(Cancel(job.number, machine, attempt))
        self.released.append(machine)
        return machine

    def _forget_copy(self, machine: int) -> None:
        """Forget the copy on a machine that was ended or started again: it cannot answer."""
        if machine in self.held:
            job, attempt = self.held.pop(machine)
            job.copies.pop(attempt, None)

    def machine_up(
        self, now: float, machine: int, availability: float | None = None
    ) -> list[Instruction]:
        """Note that a machine is there, or there again."""
        if not self.machines[machine].up and availability is not None:
            old = self.machines[machine].availability
            self.machines[machine].availability = _sound([availability], old)[0]
        return self.machines_up(now, [machine])

    def machines_up(self, now: float, machines: Sequence[int]) -> list[Instruction]:
        """Note that machines are there, all at once: none has what waits to itself."""
        self.now = now
        for machine in machines:
            self._forget_copy(machine)
        self._bring_back(machines)
        return self._answer()

    def _bring_back(self, machines: Sequence[int]) -> None:
        back = [machine for machine in machines if not self.machines[machine].up]
        if not back:
            return
        for machine in back:
            self.machines[machine].up = True
            self.free[machine] = self.heard_free[machine] = self.now
            self._believe(machine)
            if not self.closed[machine]:
                self.returning.pop(machine, None)  # what still queues there stays
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
        """Believe in other rates, arrival rates or availabilities, and plan with them.

        A number that is negative, not finite, or out of all proportion is not believed: the old one
        stays.
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
        """Let a machine take no further jobs; those queued there go elsewhere."""
        self.now = now
        if self.closed[machine]:
            return []
        self.closed[machine] = True
        if self.machines[machine].up:
            self.mechanism.gone(machine)
            self.returning[machine] = None
            self._expect(machine)
            self.pending = self.policy.planner is not None
            if self._put_back():
                self.mechanism.returned(-1)
        return self._answer()

    def open(self, now: float, machine: int) -> list[Instruction]:
        """Let a machine take jobs again."""
        self.now = now
        if not self.closed[machine]:
            return []
        self.closed[machine] = False
        if self.machines[machine].up:
            self.returning.pop(machine, None)
        self._expect(machine)
        self.pending = self.policy.planner is not None
        if self.machines[machine].up and self.running[machine] is None:
            self.mechanism.freed(machine)
        return self._answer()

    def take_plan(self, now: float, plan: Floats) -> list[Instruction]:
        """Take a plan that was made for an earlier situation; later classes keep what they have."""
        self.now = now
        if self.plans_beside():  # else there is a newer one by now
            self.plans += 1
            self.plan[: plan.shape[0], : plan.shape[1]] = plan
            self.mechanism.recalled()
        return self._answer()

    def _answer(self) -> list[Instruction]:
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
    """Return what was found, but the old number wherever it is not 0 or of a usual size."""
    found = np.asarray(found, dtype=float)
    usual = (found >= SLOWEST) & (found <= 1.0 / SLOWEST)
    return np.where(usual | (found == 0.0), found, old)
