"""Conduct an experiment with batches or chains: the simulator's loop decides, real machines run.

The loop draws the arrivals and says how long each task should take (`LiveLoop`). The ends of tasks
are those of real machines. Given these ends, the loop is deterministic: a run that was stopped
continues after the loop has been taken through the ends in the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import time as wall_clock
from typing import Any, NamedTuple

import cloudpickle

from ..grid import Journal
from ..grid.event import Entry
from ..grid.executors import Executor
from ..grid.executors.protocol import Ended, Event, MachineDown, MachineUp, Started
from ..grid.turn import patiently
from ..simulation.live import Happened
from .adjuster import Adjuster, call_of
from .experiment import Experiment
from .loop_model import LoopRecord, loop_of, outcome

PATIENCE = 20.0
"""Seconds in which the machines of an experiment must start."""
GLANCE = 0.25
"""Seconds between calls of ``watch``."""


class Attempt(NamedTuple):
    """What a machine runs."""

    task: int
    number: int
    """Of all attempts of this task, applications of a chain included."""
    length: float
    """The time units that it should take."""


class LoopConduct:
    """Conducts an experiment with batches or chains. A journal that has jobs is continued."""

    def __init__(
        self,
        experiment: Experiment,
        executor: Executor,
        journal: Journal,
        adjuster: Adjuster,
        watch: Callable[[Any], None] = lambda conduct: None,
    ) -> None:
        self.experiment, self.executor, self.journal = experiment, executor, journal
        self.adjuster, self.watch = adjuster, watch
        self.names = executor.machines
        self.loop = loop_of(
            experiment.imposed, experiment.chosen_policy(), experiment.duration, experiment.seed
        )
        self.record = LoopRecord(self.loop)
        self.running: dict[int, Attempt] = {}
        """What each machine runs, by its number."""
        self.lost: set[int] = set()
        """The machines whose process has died with a task, until they are up again."""
        self.up = [False] * len(self.names)
        self.failure: Exception | None = None
        self.until = experiment.duration
        """When the run has ended: a batch may have a number of tasks."""
        self.attempts = 0
        self.zero = self.stopped_at = 0.0
        self.is_going = False
        self._news = asyncio.Event()
        self._entries: list[Entry] = []
        self._known = 0
        """How many jobs are in the journal."""

    def now(self) -> float:
        """Return the time units since the experiment began."""
        return self._units(asyncio.get_running_loop().time()) if self.is_going else self.stopped_at

    def _units(self, at: float) -> float:
        return (at - self.zero) / self.experiment.time_unit

    async def run(self) -> None:
        """Conduct the experiment to its end, or until it is cancelled."""
        experiment, clock = self.experiment, asyncio.get_running_loop()
        since = self.stopped_at = self.journal.last()
        self._replay()
        watching = asyncio.create_task(self._watch())
        try:
            await self.executor.open(self._tell)
            async with asyncio.timeout(PATIENCE):
                while not all(self.up):
                    await asyncio.sleep(0.005)
            self.zero, self.is_going = clock.time() - since * experiment.time_unit, True
            await patiently(lambda: self.journal.describe(paused=False))
            self._note("begun", clock=wall_clock(), resumed=since > 0)
            for machine in list(self.running):
                self._send(machine, self.now())
            while (now := self.now()) < experiment.duration and not self._is_over():
                self._do(self.loop.advance(now))
                await patiently(self._flush)
                await self._wait(min(self.loop.upcoming(), experiment.duration))
                if watching.done():
                    watching.result()
        except asyncio.CancelledError:
            await patiently(self._flush)  # a resumed run continues from the last of these events
            fields = {"clock": wall_clock()}
            self._entries.append(Entry(self.journal.last(), "run stopped", fields=fields))
            raise
        finally:
            watching.cancel()
            await self.executor.close()
            await patiently(self._flush)
        self.until = min(self.now(), experiment.duration)
        found = outcome(self.loop, self.until)
        await patiently(lambda: self.journal.describe(outcome=found))
        self.watch(self)

    def _is_over(self) -> bool:
        """Tell whether nothing will happen any more: a batch may have a number of tasks."""
        return not self.running and self.loop.upcoming() == float("inf")

    async def _wait(self, until: float) -> None:
        """Wait until a time, or until a machine reports something."""
        left = (until - self.now()) * self.experiment.time_unit
        try:
            async with asyncio.timeout(max(min(left, 0.5), 0.0)):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    def _replay(self) -> None:
        """Take the loop through the ends that an earlier part of the run has written."""
        for entry in self.journal.events("finished"):
            self._do(self.loop.advance(entry.fields["known"]), again=True)
            machine = self.names.index(entry.machine or "")
            self.running.pop(machine, None)
            self.loop.end(machine, entry.time)
        self._do(self.loop.advance(self.stopped_at), again=True)
        self._entries, self.record.changed = [], dict(self.record.jobs)
        for kept in self.journal.jobs():
            self._known += 1
            job = self.record.jobs[kept.job.number]
            job.lost, job.started = kept.job.lost, kept.job.started
            if kept.job.stage.is_final:
                del self.record.changed[job.number]

    def _do(self, events: list[Happened], *, again: bool = False) -> None:
        """Do what the loop has decided; only note it if it was done before."""
        for event in events:
            self.record.take(event)
            match event.kind:
                case "arrival":
                    self._entries.append(Entry(event.time, "submitted", event.task))
                case "discard":
                    why = {"why": "its deadline had passed"}
                    self._entries.append(Entry(event.time, "cancelled", event.task, fields=why))
                case "start":
                    self.attempts += 1
                    self.running[event.machine] = Attempt(event.task, self.attempts, event.length)
                    if not again:
                        self._send(event.machine, event.time)
                case "failure":
                    self.running.pop(event.machine, None)
                    self.lost.discard(event.machine)
                    self._note("failure", self.names[event.machine])
                    if not again:
                        self.executor.fail(event.machine)
                case "repair":
                    self._note("repair", self.names[event.machine])
                    if not again:
                        self.executor.repair(event.machine)

    def _send(self, machine: int, time: float) -> None:
        """Run the task of a machine, which the loop has started at a time."""
        task, attempt, length = self.running[machine]
        seconds = length * self.experiment.time_unit
        call = call_of(self.adjuster.kind, seconds, self.adjuster.per_second(machine))
        self._entries.append(Entry(time, "sent", task, attempt, self.names[machine]))
        self.executor.start(task, machine, attempt, bytes(cloudpickle.dumps(call)))

    def _tell(self, event: Event) -> None:
        """Take what a machine reports."""
        match event:
            case MachineUp(machine):
                self.up[machine] = True
                self._note("up", self.names[machine])
                if machine in self.lost:  # its process died with the task
                    self.lost.discard(machine)
                    self.attempts += 1
                    self.running[machine] = self.running[machine]._replace(number=self.attempts)
                    self._send(machine, self.now())
            case MachineDown(machine, why):
                self.up[machine] = False
                self._note("down", self.names[machine], why=why)
                if machine in self.running and self.is_going:
                    self.lost.add(machine)
                    task = self.running[machine].task
                    self.record.jobs[task].lost += 1
                    self.record.changed[task] = self.record.jobs[task]
            case Started(machine, task, attempt, at) if self._is_running(machine, task, attempt):
                if not self.record.done[task]:
                    self.record.jobs[task].started = self._units(at)
                fields = {"length": self.running[machine].length}
                name = self.names[machine]
                self._entries.append(Entry(self._units(at), "started", task, attempt, name, fields))
            case Ended(machine, task, attempt, at) if self._is_running(machine, task, attempt):
                del self.running[machine]
                time = self._units(at)
                self.loop.end(machine, time)
                known = {"known": self.loop.now}
                self._entries.append(
                    Entry(time, "finished", task, attempt, self.names[machine], known)
                )
        self._news.set()

    def _is_running(self, machine: int, task: int, attempt: int) -> bool:
        found = self.running.get(machine)
        return found is not None and found[:2] == (task, attempt)

    def _note(self, kind: str, machine: str | None = None, **fields: Any) -> None:
        self._entries.append(Entry(self.now(), kind, None, None, machine, fields))

    def _flush(self) -> None:
        new = list(range(self._known, len(self.record.jobs)))
        self.record.write(self.journal, self.experiment.system, self.names, new, self._entries)
        self._known, self._entries = len(self.record.jobs), []

    async def _watch(self) -> None:
        """Show what happens, and refuse what other processes ask for."""
        while True:
            self.watch(self)
            for request in self.journal.requests():
                why = f"error: cannot {request.verb}: batches and chains take no requests"
                self.journal.answer(request.number, why)
            await asyncio.sleep(GLANCE)
