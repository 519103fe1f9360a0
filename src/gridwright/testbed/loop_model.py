"""Batches and chains of an experiment: the events of the simulator's loop as jobs of a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf, isnan

import numpy as np

from ..grid.event import Entry
from ..grid.job import Job, Stage
from ..grid.journal import Journal
from ..model import System
from ..policies import Policy
from ..simulation.live import Happened, LiveLoop

Takes = Callable[[Happened], float]
"""How long a task really takes that starts, given the event of its start."""


class LoopRecord:
    """The jobs of a loop, made from its events.

    A job of a batch is a task. A job of a chain is the whole chain: it starts with its first
    application and ends with its last.
    """

    def __init__(self, loop: LiveLoop) -> None:
        self.loop = loop
        self.jobs: dict[int, Job] = {}
        self.changed: dict[int, Job] = {}
        self.done: Counter[int] = Counter()
        """How many applications of each job have ended."""

    def take(self, event: Happened) -> None:
        """Take an event."""
        if event.task < 0:
            return
        if event.kind == "arrival":
            self.jobs[event.task] = Job(event.task, event.task_class, event.time)
        job = self.changed[event.task] = self.jobs[event.task]
        match event.kind:
            case "assignment":
                job.stage, job.machine, job.assigned = Stage.queued, event.machine, event.time
            case "start":
                job.stage, job.machine, job.attempt = Stage.sent, event.machine, 1 + job.lost
                if isnan(job.sent):
                    job.sent = job.started = event.time
            case "finish":
                self.done[event.task] += 1
                if self.done[event.task] == self._applications(event.task_class):
                    job.stage, job.machine = Stage.finished, event.machine
                    job.ended = job.heard = job.settled = event.time
            case "discard":
                job.stage, job.heard, job.settled = Stage.cancelled, event.time, event.time
            case "loss":
                job.lost += 1

    def _applications(self, task_class: int) -> int:
        if not self.loop.in_ticks:
            return 1
        return int(self.loop.mechanism.state.templates[task_class].applications)

    def write(
        self,
        journal: Journal,
        system: System,
        machines: list[str],
        new: list[int],
        entries: list[Entry],
    ) -> None:
        """Write the jobs that have changed to a journal, in one transaction with other entries."""
        names = {-1: None, **dict(enumerate(machines))}
        rows = [
            (job, system.classes[job.task_class], names[job.machine])
            for job in self.changed.values()
        ]
        if rows or entries:
            journal.write(entries, rows, [(number, b"") for number in new])
        self.changed = {}


def loop_of(system: System, policy: Policy, duration: float, seed: int) -> LiveLoop:
    """Return the loop of an experiment."""
    return LiveLoop(system, policy, horizon=duration, seed=seed)


def modelled(loop: LiveLoop, until: float, takes: Takes = lambda start: start.length) -> LoopRecord:
    """Let everything happen in virtual time; by default tasks take as long as the model says."""
    record, due = LoopRecord(loop), dict[int, float]()
    while (time := min(loop.upcoming(), *due.values(), inf)) < until:
        for machine in [machine for machine, at in due.items() if at <= time]:
            loop.end(machine, due.pop(machine))
        for event in loop.advance(time):
            record.take(event)
            if event.kind == "start":
                due[event.machine] = event.time + takes(event)
            elif event.kind == "failure":
                due.pop(event.machine, None)
    for machine, at in due.items():
        loop.end(machine, at)
    return record


def outcome(loop: LiveLoop, until: float) -> dict[str, float]:
    """Run a loop to a time; return what it counts, such as tasks on time."""
    found = loop.close(until)
    return {name: float(value) for name, value in found.items() if np.ndim(value) == 0}
