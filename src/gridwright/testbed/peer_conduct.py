"""Conduct an experiment without a scheduler: every machine is a process that decides for itself.

This process lets jobs arrive at machines and rates change, kills machines when the faults say so,
restarts machines that die, and writes the journal. It decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import time as wall_clock
from typing import Any

from ..grid import Journal
from ..grid.event import Entry
from ..grid.executors.process import Pauses, in_thread
from ..grid.job import Job
from ..grid.peer_jobs import Arrive, PeerJobs
from ..grid.turn import patiently
from ..model import GridError
from . import peer_machine
from .adjuster import Adjuster
from .changes import Change, rates_after
from .experiment import Experiment
from .peer_machine import LONGEST_LINE, Setup, line_of
from .workload import Fault, JobList

PROGRAM = f"from {peer_machine.__name__} import main; main()"
"""What the process of a machine runs."""
PATIENCE = 60.0
"""Seconds in which the machines must start and connect."""
SOON = 1.0
"""Seconds in which a machine that was restarted should connect to the others."""
FAREWELL = 3.0
"""Seconds in which machines must end by themselves."""
GLANCE = 0.25
"""Seconds between calls of ``watch``."""


@dataclass(eq=False)
class Life:
    """The process of a machine, from its start to its end."""

    popen: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    port: int = 0
    links: int = 0
    """The other machines that it is connected to."""
    is_up: bool = False
    sent: Counter[str] = field(default_factory=Counter)
    """The messages that it has sent to other machines."""

    def say(self, *words: Any) -> None:
        """Tell the machine something; it does not matter if it is gone."""
        self.writer.write(line_of(*words))

    async def lines(self) -> AsyncIterator[list[Any]]:
        """Yield what it reports until it is gone, what it said before its death included."""
        try:
            while line := await self.reader.readline():
                yield json.loads(line)
        except (OSError, ValueError):  # it died within a line
            return


class PeerConduct:
    """Conducts an experiment without a scheduler. A journal that has jobs is continued."""

    def __init__(
        self,
        experiment: Experiment,
        journal: Journal,
        jobs: JobList,
        faults: Sequence[Fault],
        adjuster: Adjuster,
        watch: Callable[[Any], None] = lambda conduct: None,
    ) -> None:
        self.experiment, self.journal, self.adjuster = experiment, journal, adjuster
        self.jobs, self.faults, self.watch = jobs, faults, watch
        self.names, self.classes = experiment.machine_names(), experiment.system.classes
        machines = len(self.names)
        self.where = PeerJobs(machines)
        self.lives: list[Life | None] = [None] * machines
        self.wanted = [asyncio.Event() for _ in range(machines)]
        """Set unless a fault keeps the machine away."""
        self.changed: list[Change] = []
        """The changes that have happened."""
        self.came = 0
        """How many jobs have arrived."""
        self.failure: Exception | None = None
        self.sent: Counter[str] = Counter(journal.told("messages").get("messages", {}))
        """The messages of machines that are gone."""
        self.token = secrets.token_hex(16)
        self.zero = self.stopped_at = 0.0
        self.is_going = self.is_over = False
        self._news = asyncio.Event()
        self._entries: list[Entry] = []
        self._new: list[int] = []
        self._decisions: list[tuple[float, str, str, str | None, int]] = []
        self._arrivals: list[Arrive] = []
        """What to do when all of this is in the journal."""

    @property
    def messages(self) -> dict[str, int]:
        """How many messages of each kind machines have sent each other."""
        return dict(sum((life.sent for life in self.lives if life), self.sent))

    def now(self) -> float:
        """Return the time units since the experiment began."""
        if not self.is_going:
            return self.stopped_at
        return (asyncio.get_running_loop().time() - self.zero) / self.experiment.time_unit

    async def run(self) -> None:
        """Conduct the experiment to its end, or until it is cancelled."""
        experiment, loop = self.experiment, asyncio.get_running_loop()
        since = self.stopped_at = self.journal.last()
        changes = experiment.changes()
        self.changed = [change for change in changes if change.time < since]
        for wanted in self.wanted:
            wanted.set()
        keepers = [asyncio.create_task(self._keep(j)) for j in range(len(self.names))]
        parts: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(life and life.links >= len(self.names) - 1 for life in self.lives):
                    self._look_at(keepers)
                    await asyncio.sleep(0.005)
            self.zero, self.is_going = loop.time() - since * experiment.time_unit, True
            for j, life in enumerate(self.lives):
                assert life is not None
                life.say("begin", self.zero)
                self._up(j, life)
            await patiently(lambda: self.journal.describe(paused=False))
            self._note("begun", clock=wall_clock(), resumed=since > 0)
            self._adopt()
            writer = asyncio.create_task(self._write())
            parts = [
                writer,
                asyncio.create_task(self._generate()),
                asyncio.create_task(self._change(changes[len(self.changed) :])),
                asyncio.create_task(self._fail(since)),
                asyncio.create_task(self._watch()),
            ]
            while (left := (experiment.duration - self.now()) * experiment.time_unit) > 0:
                await asyncio.wait([*parts, *keepers], timeout=min(left, 0.5))
                self._look_at([*parts, *keepers])
            while self.came < len(self.jobs) and self.jobs.times[self.came] < experiment.duration:
                self._next_job()  # a busy computer may be late
        except asyncio.CancelledError:
            self._note("run stopped", clock=wall_clock())
            raise
        finally:
            for part in parts:
                part.cancel()
            await self._end(keepers)
            await patiently(self._flush)
            await patiently(lambda: self.journal.describe(messages=self.messages))
            self.watch(self)

    def _look_at(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Raise the error of a part, if one has failed."""
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()
        if self.failure is not None:
            raise self.failure

    # the machines

    async def _keep(self, machine: int) -> None:
        """Start the process of a machine, and again whenever it has ended."""
        pauses = Pauses()
        while True:
            await self.wanted[machine].wait()
            life = self.lives[machine] = await self._start(machine)
            async for words in life.lines():
                if words[0] == "ended":
                    pauses.reset()
                self._hear(machine, life, words)
            code = await in_thread(life.popen.wait)
            self._down(machine, life, f"its process ended with status {code}")
            await asyncio.sleep(pauses.next())

    async def _start(self, machine: int) -> Life:
        ours, theirs = socket.socketpair()
        with theirs:
            popen = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                process_group=0,  # Ctrl-C is only for us; we end it
            )
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST_LINE)
        except BaseException:  # the experiment ends at this moment
            ours.close()
            popen.kill()
            popen.wait()
            raise
        system = self.experiment.system
        setup = Setup(
            machine,
            self.names,
            self.experiment.policy,
            system.nominal.tolist(),
            system.arrivals.tolist(),
            system.mean_availability.tolist(),
            rates_after(system, machine, self.changed),
            bool(system.changes and system.changes.rates),
            self.experiment.time_unit,
            self.experiment.job,
            self.adjuster.per_second(machine),
            self.token,
            self.experiment.seed,
        )
        life = Life(popen, reader, writer)
        life.say(*setup)
        return life

    def _hear(self, machine: int, life: Life, words: list[Any]) -> None:
        """Take what a machine reports."""
        name = self.names[machine]
        match words:
            case ["ready", port]:
                self._introduce(machine, life, port)
            case ["linked", links]:
                life.links = links
                if links >= self._others(machine):
                    self._up(machine, life)
            case ["taken", number, time]:
                self.where.taken(time, machine, number)
            case ["decided", [time, job, asked, choice, plan], counts]:
                life.sent = Counter(counts)
                about = self.classes[job[1]], " ".join(self.names[j] for j in asked)
                chosen = self.names[choice] if 0 <= choice < len(self.names) else None
                self._decisions.append((time, *about, chosen, plan))
            case ["started", number, sent, at]:
                self.where.started(machine, number, sent=sent, at=at)
                self._entries += [Entry(sent, "sent", number, None, name)]
                self._entries += [Entry(at, "started", number, None, name)]
            case ["ended", number, time, sent, started, at]:
                times = {"sent": sent, "started": started, "at": at}
                first = self.where.ended(time, machine, number, **times)
                kind = "finished" if first else "late answer"
                self._entries.append(Entry(at, kind, number, None, name))
            case ["worker died", number, why]:
                self._entries.append(Entry(self.now(), "lost", number, None, name, {"why": why}))
            case ["counts", counts]:
                life.sent = Counter(counts)
            case ["error", text]:
                self.failure = GridError(f"machine {name}: {text.strip().splitlines()[-1]}")
        self._news.set()

    def _others(self, machine: int) -> int:
        """Return how many other machines take connections."""
        return sum(bool(life and life.port) for j, life in enumerate(self.lives) if j != machine)

    def _introduce(self, machine: int, life: Life, port: int) -> None:
        """Tell a machine that listens the addresses of the others, and them its own."""
        life.port = port
        if self.is_going:
            life.say("begin", self.zero)
            life.say("change", rates_after(self.experiment.system, machine, self.changed))
            asyncio.get_running_loop().call_later(SOON, self._up, machine, life)
        for j, other in enumerate(self.lives):
            if other is not None and other.port and j != machine:
                other.say("address", machine, port)
                life.say("address", j, other.port)

    def _up(self, machine: int, life: Life) -> None:
        """Let jobs arrive at a machine."""
        if self.is_going and not life.is_up and self.lives[machine] is life:
            life.is_up = True
            self._note("up", self.names[machine])
            self._arrive(self.where.machine_up(machine))

    def _down(self, machine: int, life: Life, why: str) -> None:
        """Note that a machine has died: its jobs arrive at their homes again."""
        self.lives[machine] = None
        self.sent += life.sent
        life.writer.close()
        if life.is_up and not self.is_over:
            self._note("down", self.names[machine], why=why)
            self._arrive(self.where.machine_down(machine))

    async def _end(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        """Let the machines end; kill those that do not."""
        self.is_over = True
        for wanted in self.wanted:
            wanted.clear()
        ending = [life for life in self.lives if life is not None]
        for life in ending:
            life.say("close")
        deadline = asyncio.get_running_loop().time() + FAREWELL
        while any(self.lives) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for life in filter(None, self.lives):
            life.popen.kill()
            self.sent += life.sent
        for keeper in keepers:
            keeper.cancel()
        await asyncio.wait(keepers)
        for life in {*ending, *filter(None, self.lives)}:
            life.popen.kill()
            life.writer.transport.abort()
            await in_thread(life.popen.wait)
        await asyncio.sleep(0)  # the sockets are closed
        self.lives = [None] * len(self.names)

    # the jobs

    def _adopt(self) -> None:
        """Let the unfinished jobs of a run that was stopped arrive again."""
        for kept in self.journal.jobs():
            self.came += 1
            if not kept.job.stage.is_final:
                kept.job.task_class = self.classes.index(kept.task_class)
                kept.job.lost += kept.job.stage != "waiting"
                self._submit(kept.job)

    async def _generate(self) -> None:
        """Let every job arrive at its time."""
        while self.came < len(self.jobs):
            await self._sleep_until(float(self.jobs.times[self.came]))
            self._next_job()

    def _next_job(self) -> None:
        number, self.came = self.came, self.came + 1
        self._new.append(number)
        self._entries.append(Entry(self.now(), "submitted", number))
        self._submit(Job(number, int(self.jobs.task_classes[number]), self.now()))

    def _submit(self, job: Job) -> None:
        assert self.jobs.homes is not None
        home, size = int(self.jobs.homes[job.number]), float(self.jobs.works[job.number])
        self._arrive(self.where.submit(job, home, size))

    def _arrive(self, arrivals: list[Arrive]) -> None:
        self._arrivals += arrivals
        self._news.set()

    async def _change(self, changes: Sequence[Change]) -> None:
        """Change rates at their times."""
        for change in changes:
            await self._sleep_until(change.time)
            self.changed.append(change)
            fields = {"what": change.what, "task_class": change.task_class, "value": change.value}
            self._note("changed", self.names[change.machine], **fields)
            life = self.lives[change.machine]
            if life is not None:
                rates = rates_after(self.experiment.system, change.machine, self.changed)
                life.say("change", rates)

    async def _fail(self, since: float) -> None:
        """Kill machines at the times of the faults, and bring them back."""
        events = sorted(
            (time, begins, fault.machine)
            for fault in self.faults
            for time, begins in ((fault.start, 1), (fault.end, 0))
            if fault.end > since
        )
        for time, begins, machine in events:
            await self._sleep_until(time)
            self._note("failure" if begins else "repair", self.names[machine])
            life = self.lives[machine]
            if begins:
                self.wanted[machine].clear()
                if life is not None:
                    life.popen.kill()
            else:
                self.wanted[machine].set()

    async def _sleep_until(self, time: float) -> None:
        while (wait := (time - self.now()) * self.experiment.time_unit) > 0:
            await asyncio.sleep(wait)

    # the journal

    def _note(self, kind: str, machine: str | None = None, **fields: Any) -> None:
        self._entries.append(Entry(self.now(), kind, None, None, machine, fields))
        self._news.set()

    async def _write(self) -> None:
        """Write what has happened, and only then let jobs arrive."""
        while True:
            await self._news.wait()
            self._news.clear()
            arrivals, self._arrivals = self._arrivals, []
            await patiently(self._flush)
            for home, job in arrivals:
                life = self.lives[home]
                if life is not None:
                    life.say("job", job)

    def _flush(self) -> None:
        """Write what has happened since the last time in one transaction."""
        rows, now = [], self.now()
        for job in self.where.changed.values():
            if job.stage.is_final:
                job.settled = now
            machine = self.names[job.machine] if job.machine >= 0 else None
            rows.append((job, self.classes[job.task_class], machine))
        new = [(number, b"") for number in self._new]
        if rows or self._entries or self._decisions:
            self.journal.write(self._entries, rows, new, (), self._decisions)
        self.where.changed, self._entries, self._new, self._decisions = {}, [], [], []

    async def _watch(self) -> None:
        """Show what happens, and refuse what other processes ask for."""
        while True:
            self.watch(self)
            for request in self.journal.requests():
                why = f"error: cannot {request.verb}: no scheduler controls these machines"
                await patiently(partial(self.journal.answer, request.number, why))
            await asyncio.sleep(GLANCE)
