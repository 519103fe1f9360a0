"""Jobs sent ahead: a machine has its next jobs before its present one ends.

The way to a machine and back then takes no time from the work. A job that was sent ahead is called
back when it should go elsewhere: a machine that could run it is idle, its machine is paused, a job
of a higher priority has come, or the job before it takes much longer than expected.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from .job import CallBack, Job, Stage

if TYPE_CHECKING:
    from .state import GridState

SHORT = 0.5
"""A machine gets the next job ahead if its present one should take less than this many seconds."""
SPAN = 0.02
"""It gets several while they should take fewer seconds than this together."""
LARGE = 1 << 20
"""It gets no more while it has this many bytes of pickled calls ahead."""
PATIENCE = 1.0
"""Jobs are called back when the one before them takes this many seconds more than expected."""


class Ahead:
    """The jobs that were sent ahead, by machine.

    They are in stage ``queued``: no machine has begun them, as far as the grid knows.
    """

    def __init__(self, book: GridState) -> None:
        self.book = book
        self.most = 0
        """How many jobs a machine may have ahead: 0 unless the executor can call them back."""
        self.short, self.span = SHORT, SPAN
        self.brief = SHORT
        """A job that should take longer than this many seconds is followed only by one of many that
        wait: more than there are machines. Otherwise the next free machine is the better one."""
        self.measured: Callable[[int, int], float] = lambda task_class, machine: math.inf
        """Returns how long jobs of a class took on a machine, without the way there and back."""
        self.queues: list[deque[Job]] = [deque() for _ in range(len(book.machines))]
        self.levels: Counter[int] = Counter()
        """How many jobs of each priority were sent ahead."""
        self.called: set[int] = set()
        """The jobs that were called back and have not come yet."""
        self.changed: set[int] = set()
        """Machines that may have room since the last event."""
        self.is_unfinished = False
        """Whether sending jobs ahead was broken off."""
        self.has_come = False
        """Whether a job has come to wait since."""
        self.size_of: Callable[[int], int] = lambda number: 0
        """Returns the bytes of the pickled call of a job."""
        self._takes: dict[int, tuple[float, int]] = {}
        """How long each job should take, and its bytes."""
        self._bytes = [0] * len(self.queues)
        self._work = [0.0] * len(self.queues)
        """How long the jobs ahead of each machine should take together."""
        self._hungry: set[int] = set()
        """Machines with room for which there was no job."""

    def add_machine(self) -> None:
        """Add a machine."""
        self.queues.append(deque())
        self._work.append(0.0)
        self._bytes.append(0)

    def has_room(self, machine: int) -> bool:
        """Tell whether a machine may be sent a job ahead."""
        running, queue = self.book.running[machine], self.queues[machine]
        if running is None or len(queue) >= self.most or not self.book.can_take(machine):
            return False
        if self._bytes[machine] > LARGE or self._is_late(running):
            return False
        if queue:
            return self._work[machine] < self.span
        if running.expected >= self.brief and not self.book.own[machine]:
            return self.book.is_crowded() and running.expected < self.short
        return 0.0 < running.expected < self.short

    def _is_late(self, running: Job) -> bool:
        """Tell whether a job takes much longer than expected."""
        begun = running.started
        if begun != begun:  # it is not known to have started
            begun = max(running.sent, running.free)
        return self.book.now > begun + 2.0 * running.expected + PATIENCE

    def add(self, job: Job) -> None:
        """Add a job that is sent ahead to its machine."""
        job.stage, job.is_ahead = Stage.queued, True
        self.queues[job.machine].append(job)
        takes = min(job.expected, self.measured(job.task_class, job.machine))
        size = self.size_of(job.number)
        self._takes[job.number] = takes, size
        self._work[job.machine] += takes
        self._bytes[job.machine] += size
        self.levels[job.options.priority] += 1

    def remove(self, job: Job) -> None:
        """Remove a job that its machine has begun, or does not have any more."""
        job.is_ahead = False
        queue = self.queues[job.machine]
        if queue[0] is job:
            queue.popleft()
        else:
            queue.remove(job)
        takes, size = self._takes.pop(job.number)
        self._bytes[job.machine] -= size
        self._work[job.machine] = self._work[job.machine] - takes if queue else 0.0
        level = job.options.priority
        self.levels[level] -= 1
        if not self.levels[level]:
            del self.levels[level]
        self.called.discard(job.number)
        self.changed.add(job.machine)

    def first(self, machine: int) -> Job | None:
        """Return the job that a machine begins next."""
        queue = self.queues[machine]
        return queue[0] if queue else None

    def fill(self) -> None:
        """Send jobs ahead to machines with few, and call back what should go elsewhere."""
        machines, self.changed = self.changed, set()
        if not self.most:
            return
        if self.has_come:
            self.has_come = False
            machines |= self._hungry
        # a machine that has many gets more later, so that many travel together
        few = [
            machine
            for machine in sorted(machines)
            if 2 * len(self.queues[machine]) <= self.most and self._work[machine] <= self.span / 2
        ]
        taking = few
        while taking and not self.book.enough():  # in turn, so that the last jobs are spread
            taking = [m for m in taking if self.has_room(m) and self.book.mechanism.foresee(m)]
        for machine in few:
            (self._hungry.add if self.has_room(machine) else self._hungry.discard)(machine)
        self.changed, self.is_unfinished = set(taking), bool(taking)  # if it took too long
        if self.levels:
            self._help_idle()

    def _help_idle(self) -> None:
        """Call back a job for every idle machine that could run it."""
        book = self.book
        idle = [k for k in book.mechanism.idle if book.can_take(k)][len(self.called) :]
        if not idle:
            return
        last = [queue[-1] for queue in self.queues if queue]
        last = [job for job in last if job.pinned < 0 and job.number not in self.called]
        for k in idle:
            able = (book.plan[:, k] > 0.0) & (book.nominal[:, k] > 0.0)
            if (job := next((each for each in last if able[each.task_class]), None)) is not None:
                last.remove(job)
                self.call_back(job)
            elif not last:
                break

    def call_back(self, job: Job) -> None:
        """Ask a machine for a job that it has not begun."""
        if job.number not in self.called:
            self.called.add(job.number)
            self.book.out.append(CallBack(job.number, job.machine, job.attempt))

    def call_all_back(self, machine: int) -> None:
        """Call back all jobs that were sent ahead to a machine."""
        for job in reversed(self.queues[machine]):
            self.call_back(job)

    def yield_to(self, priority: int) -> None:
        """Call back the jobs of a lower priority."""
        if self.levels and priority > min(self.levels):
            for queue in self.queues:
                for job in reversed(queue):
                    if job.options.priority < priority and job.pinned < 0:
                        self.call_back(job)

    def look(self) -> None:
        """Call back the jobs behind one that takes much longer than expected."""
        for machine, queue in enumerate(self.queues):
            running = self.book.running[machine]
            if queue and running is not None and self._is_late(running):
                self.call_all_back(machine)
