"""Where the jobs of a grid without a scheduler are, as a pure state machine.

The machines decide and keep the queues; this only records what they report. When a machine dies,
this record says which jobs have to arrive at their homes again. A job that was lost and found may
run twice: the first end counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .job import Job, Stage
from .peer import PeerJob


class Arrive(NamedTuple):
    """An instruction: let a job arrive at its home."""

    home: int
    job: PeerJob


class PeerJobs:
    """The jobs, each at the machine that is responsible for it.

    That is its home until another machine reports that it has taken the job. A job whose home is
    down waits until the home is up again.
    """

    def __init__(self, machines: int) -> None:
        self.up = [False] * machines
        self.jobs: dict[int, Job] = {}
        self.homes: dict[int, int] = {}
        self.sizes: dict[int, float] = {}
        self.held: list[set[int]] = [set() for _ in range(machines)]
        """The jobs for which each machine is responsible."""
        self.pending: list[dict[int, None]] = [{} for _ in range(machines)]
        """The jobs that wait until their home is up."""
        self.late = 0
        """Ends of jobs that had ended before."""
        self.changed: dict[int, Job] = {}
        """The jobs that have changed since the driver took them."""

    def submit(self, job: Job, home: int, size: float = 1.0) -> list[Arrive]:
        """Add a job that arrives at a machine."""
        self.jobs[job.number], self.homes[job.number], self.sizes[job.number] = job, home, size
        return self._arrive(job)

    def _arrive(self, job: Job) -> list[Arrive]:
        home = self.homes[job.number]
        job.stage, job.machine = Stage.waiting, -1
        self.changed[job.number] = job
        if not self.up[home]:
            self.pending[home][job.number] = None
            return []
        job.attempt += 1
        self.held[home].add(job.number)
        told = PeerJob(job.number, job.task_class, job.attempt, self.sizes[job.number])
        return [Arrive(home, told)]

    def taken(self, now: float, machine: int, number: int) -> None:
        """Note that a machine has a job in its queue."""
        job = self.jobs[number]
        if job.stage.is_final:
            return
        self._release(job)
        self.held[machine].add(number)
        job.stage, job.machine, job.assigned = Stage.queued, machine, now
        self.changed[number] = job

    def started(self, machine: int, number: int, *, sent: float, at: float) -> None:
        """Note that a machine has started a job, which it had begun to start a moment before."""
        job = self.jobs[number]
        if job.machine == machine and not job.stage.is_final:
            job.stage, job.sent, job.started = Stage.sent, sent, at
            self.changed[number] = job

    def ended(
        self, now: float, machine: int, number: int, *, sent: float, started: float, at: float
    ) -> bool:
        """Note that a job has ended; return False if it had ended before."""
        job = self.jobs[number]
        if job.stage.is_final:
            self.late += 1
            return False
        self._release(job)
        job.stage, job.machine = Stage.finished, machine
        job.sent, job.started, job.ended = sent, started, at
        job.heard = job.settled = now
        self.changed[number] = job
        return True

    def machine_down(self, machine: int) -> list[Arrive]:
        """Note that a machine has died: its jobs arrive at their homes again."""
        self.up[machine] = False
        lost, self.held[machine] = sorted(self.held[machine]), set()
        out = []
        for number in lost:
            job = self.jobs[number]
            job.lost += job.stage != Stage.waiting
            out += self._arrive(job)
        return out

    def machine_up(self, machine: int) -> list[Arrive]:
        """Note that a machine is up: the jobs that wait for it arrive."""
        self.up[machine] = True
        waiting, self.pending[machine] = self.pending[machine], {}
        return [each for number in waiting for each in self._arrive(self.jobs[number])]

    def unfinished(self) -> Sequence[int]:
        """Return the jobs that have not ended."""
        return [number for number, job in self.jobs.items() if not job.stage.is_final]

    def _release(self, job: Job) -> None:
        """Note that nobody is responsible for a job any more."""
        self.pending[self.homes[job.number]].pop(job.number, None)
        for jobs in self.held:
            jobs.discard(job.number)
