"""The book: the live state of a grid as a pure machine.

Events go in (a job is submitted, starts, ends; a machine comes, goes, reports), instructions for
the executor come out, and a policy is asked in between. There is no clock and no input or output
in it: every event says when it happened.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..allocation import groups_of
from ..model import InputError
from .job import Cancel, Copy, Instruction, Job, Stage
from .ledger import Floats, Ledger

__all__ = ["Book"]


class Book(Ledger):
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
        """Take in a job that an earlier book left unfinished: it waits since its submission."""
        job.task_class = task_class
        self.jobs[job.number] = job
        self.classes[task_class].arrived += 1
        self.put(job)
        self.mechanism.placed(task_class)

    def started(self, now: float, number: int, attempt: int) -> None:
        """Note that a machine has begun with a job."""
        job = self.jobs.get(number)
        if job is not None and job.stage == Stage.sent and job.attempt == attempt:
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
            job.machine, job.sent, job.started = job.copies[attempt]
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
        return self._answer()

    def timed_out(
        self, now: float, number: int, attempt: int, *, then: str = "resubmit"
    ) -> list[Instruction] | None:
        """Note that a job takes too long; None if it has ended.

        By default it is given up where it is: it waits again, and its machine counts as down. As a
        ``duplicate`` it does so too, but whichever answer comes first counts. Or it may ``wait``,
        or ``fail``, which is for the caller to note.
        """
        job = self.jobs.get(number)
        if job is None or job.stage != Stage.sent or job.attempt != attempt:
            return None
        job.timed_out += 1
        self.changed[number] = job
        if then in ("wait", "fail"):
            return []
        if then == "duplicate":
            job.copies[attempt] = Copy(job.machine, job.sent, job.started)
        return self.machine_down(now, job.machine, silent=True)

    def cancel(self, now: float, number: int) -> list[Instruction] | None:
        """Take a job back; None if it has ended."""
        job = self.jobs[number]
        if job.stage.is_final:
            return None
        self.now = now
        self._take_back(job, Stage.cancelled)
        return self._answer()

    def machine_down(self, now: float, machine: int, *, silent: bool = False) -> list[Instruction]:
        """Note that a machine is gone: its jobs wait again, where their submission puts them.

        One that is only silent may still answer.
        """
        return self.machines_down(now, [machine], silent=silent)

    def machines_down(
        self, now: float, machines: Sequence[int], *, silent: bool = False
    ) -> list[Instruction]:
        """Note that machines are gone, all at once: no job is moved from one to another."""
        self.now = now
        gone = [machine for machine in machines if self.machines[machine].up]
        if not gone:
            return []
        for machine in gone:
            self.machines[machine].up = False
            self._expect(machine)
            self.mechanism.gone(machine)
        self.pending = self.policy.planner is not None
        every = [self._empty(machine, silent=silent) for machine in gone]
        if self._put_back():
            for lost in every:
                self.mechanism.returned(lost)
        return self._answer()

    def _empty(self, machine: int, *, silent: bool) -> int:
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

    def machine_up(
        self, now: float, machine: int, availability: float | None = None
    ) -> list[Instruction]:
        """Note that a machine is there, or there again."""
        if not self.machines[machine].up and availability is not None:
            self.machines[machine].availability = availability
        return self.machines_up(now, [machine])

    def machines_up(self, now: float, machines: Sequence[int]) -> list[Instruction]:
        """Note that machines are there, all at once: none has what waits to itself."""
        self.now = now
        back = [machine for machine in machines if not self.machines[machine].up]
        if not back:
            return []
        for machine in back:
            self.machines[machine].up = True
            self.free[machine] = self.heard_free[machine] = now
            self._believe(machine)
            if not self.closed[machine]:
                self.returning.pop(machine, None)  # what still queues there stays
        self.pending = self.policy.planner is not None
        for machine in back:
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
