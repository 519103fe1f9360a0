"""The machines of a grid on a Dask worker: each has a process beside the worker's own.

The plugin reports to the grid on a topic of the scheduler, in the order of events. Every message
begins with its kind, the worker's address and the machine's number on this worker.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin, get_worker

from ..agent import Agent
from ..prediction import Prediction
from . import dask_internals as internals
from .process import Pauses, Process, end_orphans, in_thread, measured_share
from .protocol import Ended, Started

SOON = 0.05
"""Seconds after which the start of a job is reported; shorter jobs report it with their end."""
SMALL = 4096
"""The most bytes of a result on the topic, because the scheduler stores some messages."""
MOMENT = 0.005
"""Seconds for which the results of short jobs that came together are kept, to be sent together."""
BESIDE = 1000
"""As many tasks may wait on a worker for a machine."""
MANY = 10_000
"""How many jobs to remember that have begun or were called back."""
STARTING = 10.0
"""Seconds in which a process must be ready."""
SILENCE = 60.0
"""Seconds without a message from the grid after which its processes are ended."""
LOOKS = 10
"""How often to check for a message in that time."""


Numbers = tuple[int, int]
"""The numbers of a job and of its attempt."""
Call = tuple[int, int, bytes]
"""A job, an attempt and the pickled call."""


@dataclass(eq=False)
class _Machine:
    """A machine: its process and its job."""

    number: int
    process: Process | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    job: Numbers | None = None
    """The job and attempt that it is running."""
    started: float = 0.0
    owed: bool = False
    """Whether the start of its job is to be reported as soon as it starts."""
    answer: asyncio.Future[tuple[float, bytes, str] | None] | None = None
    starting: bool = False
    """Whether a process is being started."""
    away: bool = False
    """Whether it was taken away, until it is repaired."""
    down: bool = False
    """Whether the grid was told that its process has died."""
    share: float = 1.0
    """The share of the time in which its jobs run."""
    pauses: Pauses = field(default_factory=Pauses)


class Machines(WorkerPlugin):  # type: ignore[misc]
    """The machines of one grid on one worker; ``topic`` is also the plugin's name."""

    def __init__(
        self, topic: str, slots: int, resolution: float, prediction: list[Prediction]
    ) -> None:
        self.topic, self.slots = topic, slots
        self.resolution, self.prediction = resolution, prediction
        self.agent: Agent | None = None
        self.all: list[_Machine] = []
        self.waiting: dict[Numbers, int] = {}
        """The machines of jobs that have not begun."""
        self.tasks: dict[str, list[Numbers]] = {}
        """The jobs of each Dask task."""
        self.kept: dict[Numbers, tuple[bytes, str]] = {}
        """Large results of tasks with several jobs, until the grid asks for them."""
        self.begun: dict[Numbers, None] = {}
        """The last jobs that have begun."""
        self.recalled: dict[Numbers, None] = {}
        """The last jobs that were called back before they had begun."""
        self.outbox: list[list[Any]] = []
        self.minding: asyncio.Task[None] | None = None
        self.closing = False
        self.silent_looks = 0

    async def setup(self, worker: Any) -> None:
        """Start the processes."""
        self.worker, self.identity = worker, uuid4().hex
        self.closed = asyncio.Event()
        self.all = [_Machine(number) for number in range(self.slots)]
        await in_thread(end_orphans)
        for machine in self.all:
            await self._spawn(machine)
        self.minding = asyncio.create_task(self._mind())
        if self.resolution > 0:
            loop = asyncio.get_running_loop()
            self.agent = Agent(
                lambda *reading: loop.call_soon_threadsafe(self._read, *reading),
                self.resolution,
                own=_family,
                prediction=self.prediction,
                machines=self.slots,
                shares=lambda: [measured_share(each.process, each.share) for each in self.all],
            )
            self.agent.start()

    async def teardown(self, worker: Any) -> None:
        """End the processes, when the worker ends or the grid leaves."""
        self.closing = True
        self.say("leaving", 0)
        self.closed.set()
        if self.agent is not None:
            await asyncio.to_thread(self.agent.stop)
        if self.minding is not None and self.minding is not asyncio.current_task():
            self.minding.cancel()
        for machine in self.all:
            self._lose(machine)
        for machine in self.all:
            if machine.process is not None:
                await machine.process.close()

    def transition(self, key: str, start: str, finish: str, **kwargs: Any) -> None:
        """Stop the jobs of a task that was released."""
        if finish == "released" and start in ("executing", "long-running"):
            for job in self.tasks.get(key, ()):
                self.stop(job)

    def stop(self, job: Numbers) -> None:
        """Stop a job that waits or runs; its process is replaced. Forget its result."""
        self.waiting.pop(job, None)
        self.kept.pop(job, None)
        for machine in self.all:
            if machine.job == job and machine.answer is not None:
                self._lose(machine)

    def call_back(self, job: Numbers) -> bool:
        """Forget a job unless it has begun; return whether it is forgotten."""
        if job in self.begun:
            return False
        self.waiting.pop(job, None)
        _remember(self.recalled, job)
        return True

    def say(self, kind: str, machine: int, *rest: Any, soon: float = 0.0) -> None:
        """Send a message to the grid, perhaps together with others of the next moment."""
        self.outbox.append([kind, machine, *rest])
        if not soon:
            self._flush()
        elif len(self.outbox) == 1:
            asyncio.get_running_loop().call_later(soon, self._flush)

    def _flush(self) -> None:
        if self.outbox:
            words, self.outbox = self.outbox, []
            self.worker.log_event(self.topic, [self.worker.address, words])

    async def run(self, key: str, number: int, calls: list[Call]) -> Any:
        """Run calls one after the other, and report their times and results.

        Return the result of a single call if it is large.
        """
        machine = self.all[number]
        internals.run_beside_threads(self.worker, key, BESIDE)
        self.tasks[key] = jobs = [call[:2] for call in calls]
        self.waiting |= {job: number for job in jobs if job not in self.recalled}
        found = None
        try:
            async with machine.turn:
                for job, attempt, work in calls:
                    found = await self._run(machine, (job, attempt), work, len(calls) > 1)
        finally:
            del self.tasks[key]
        return found

    async def _run(self, machine: _Machine, job: Numbers, work: bytes, keep: bool) -> Any:
        if job not in self.waiting:
            return None
        if not machine.away:
            await machine.ready.wait()
        is_wanted = self.waiting.pop(job, None) is not None
        if not is_wanted or machine.away or machine.process is None:
            return None
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        _remember(self.begun, job)
        machine.job, machine.started, machine.owed = job, 0.0, False
        machine.answer = loop.create_future()
        machine.process.run(*job, work)
        early = loop.call_later(SOON, self._say_started, machine, *job)
        try:
            answer = await machine.answer
        finally:
            early.cancel()
            machine.job, machine.answer = None, None
        if answer is None:
            return None
        at, result, error = answer
        large = len(result) + len(error) > SMALL
        if large and keep:
            self.kept[job] = result, error
        said = None if large else [result, error]
        is_short = keep and time.monotonic() - begun < MOMENT
        times = (machine.started, at)
        self.say("ended", machine.number, *job, *times, said, keep, soon=MOMENT * is_short)
        return (result, error) if large and not keep else None

    async def put_away(self, away: list[bool]) -> None:
        """Take machines away or bring them back; return when all others are ready."""
        self.silent_looks = 0
        for machine, wish in zip(self.all, away, strict=True):
            before, machine.away = machine.away, wish
            if wish and not before:
                machine.down = False
                self._forget_waiting(machine)
                self._lose(machine)
            elif before and not wish and machine.process is None and not machine.starting:
                await self._spawn(machine)
        for machine in self.all:
            if not machine.away:
                async with asyncio.timeout(STARTING):
                    await machine.ready.wait()

    def impose(self, shares: list[float]) -> None:
        """Let the jobs of each machine run for a share of the time."""
        for machine, share in zip(self.all, shares, strict=True):
            if share != machine.share:
                machine.share = share
                if machine.process is not None and machine.ready.is_set():
                    machine.process.impose(share)

    def predict(self, ways: list[Prediction]) -> None:
        """Change how the availability of each machine is predicted."""
        if self.agent is not None:
            for machine, way in enumerate(ways):
                if self.agent.predictions[machine] != way:
                    self.agent.predict(machine, way)

    async def ping(self, number: int) -> bool:
        """Tell whether a machine's process answers."""
        process = self.all[number].process
        with suppress(TimeoutError):
            if process is not None:
                await process.ping()
                return True
        return False

    # details

    async def _spawn(self, machine: _Machine, pause: float = 0.0) -> bool:
        """Start a process after a pause; try again until it starts; return whether it is ready."""
        hear, gone = partial(self._hear, machine), partial(self._gone, machine)
        machine.starting, process = True, None
        name = f"{self.worker.name}/{machine.number + 1}" if self.slots > 1 else self.worker.name
        while process is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.closed.wait()
            if machine.away or self.closing:
                machine.starting = False
                return False
            with suppress(OSError):
                process = machine.process = await Process.start(name, hear, gone)
            pause = machine.pauses.longest
        await process.ready
        if machine.process is not process:
            return False  # it ended before it was ready, and another is starting
        machine.starting = False
        process.impose(machine.share)
        machine.ready.set()
        if machine.away or self.closing:  # meanwhile
            self._lose(machine)
        return True

    def _forget_waiting(self, machine: _Machine) -> None:
        """Forget the jobs of a machine that have not begun."""
        self.waiting = {job: at for job, at in self.waiting.items() if at != machine.number}

    def _lose(self, machine: _Machine) -> None:
        """Kill the process of a machine, with its job."""
        machine.ready.clear()
        if machine.process is not None:
            machine.process.kill()
        if machine.answer is not None and not machine.answer.done():
            machine.answer.set_result(None)

    def _hear(self, machine: _Machine, kind: type[Started] | type[Ended], *rest: Any) -> None:
        job, attempt, at, *answer = rest
        if kind is Started:
            machine.started = at
            if machine.owed:
                self._say_started(machine, job, attempt)
        elif machine.job == (job, attempt) and machine.answer and not machine.answer.done():
            machine.pauses.reset()
            machine.answer.set_result((at, *answer))

    async def _gone(self, machine: _Machine, why: str, died: bool) -> None:
        """Replace a process that is gone."""
        machine.process, blamed = None, machine.job
        self._lose(machine)
        if died:  # the grid sends the others elsewhere
            self._forget_waiting(machine)
        if died and not machine.down and not (machine.away or self.closing):
            machine.down = True
            self.say("down", machine.number, why, blamed)
        if machine.away or self.closing:
            return
        if await self._spawn(machine, machine.pauses.next() if died else 0.0) and machine.down:
            machine.down = False
            self.say("up", machine.number)

    def _say_started(self, machine: _Machine, job: int, attempt: int) -> None:
        machine.owed = not machine.started  # it still imports modules
        if machine.started:
            self.say("started", machine.number, job, attempt, machine.started)

    def _read(self, measured: list[float], predicted: list[float]) -> None:
        """Report the measured and the predicted CPU availability."""
        for machine, found, expected in zip(self.all, measured, predicted, strict=True):
            if not machine.away and not self.closing:
                self.say("reading", machine.number, found, expected)

    async def _mind(self) -> None:
        """End the processes when the grid is silent for long.

        This counts checks, not seconds: a worker that was frozen could hear nothing meanwhile.
        """
        while self.silent_looks < LOOKS:
            await asyncio.sleep(SILENCE / LOOKS)
            self.silent_looks += 1
        await internals.remove_plugin(self.worker, self.topic)


# functions that the grid calls on a worker


async def run(topic: str, key: str, number: int, calls: list[Call]) -> Any:
    """Run jobs: the task that the grid submits."""
    worker = get_worker()
    plugin = internals.plugin(worker, topic)
    if plugin is None:  # it has ended because the grid was silent
        worker.log_event(topic, [worker.address, [["forgot", number]]])
        return None
    return await plugin.run(key, number, calls)


async def hello(
    topic: str,
    away: list[bool],
    shares: list[float],
    measuring: tuple[float, list[Prediction]],
    dask_worker: Any,
) -> tuple[float, str, str]:
    """Start the machines that are not away; return the time, the clock and our identity."""
    if (plugin := internals.plugin(dask_worker, topic)) is None:
        plugin = Machines(topic, len(away), *measuring)
        await internals.add_plugin(dask_worker, plugin, topic)
    plugin.predict(measuring[1])
    plugin.impose(shares)
    await plugin.put_away(away)
    return time.monotonic(), clock(), plugin.identity


async def stop(topic: str, job: Numbers, dask_worker: Any) -> None:
    """Stop a job."""
    if (plugin := internals.plugin(dask_worker, topic)) is not None:
        plugin.stop(job)


async def call_back(topic: str, job: Numbers, dask_worker: Any) -> bool:
    """Forget a job unless it has begun; return whether it is forgotten."""
    plugin = internals.plugin(dask_worker, topic)
    return plugin is None or bool(plugin.call_back(job))


async def collect(topic: str, job: Numbers, dask_worker: Any) -> tuple[bytes, str] | None:
    """Return a large result, or None if it is lost."""
    plugin = internals.plugin(dask_worker, topic)
    return None if plugin is None else plugin.kept.get(job)


async def farewell(topic: str, dask_worker: Any) -> None:
    """Remove the machines."""
    if internals.plugin(dask_worker, topic) is not None:
        await internals.remove_plugin(dask_worker, topic)


async def ping(topic: str, number: int, dask_worker: Any) -> bool:
    """Tell whether a machine answers."""
    plugin = internals.plugin(dask_worker, topic)
    return plugin is not None and bool(await plugin.ping(number))


def forget(topic: str, dask_scheduler: Any) -> None:
    """Let the scheduler forget the messages on a topic."""
    internals.forget_topic(dask_scheduler, topic)


def _remember(some: dict[Numbers, None], job: Numbers) -> None:
    """Add a job; forget the oldest if they are many."""
    some[job] = None
    if len(some) > MANY:
        del some[next(iter(some))]


def clock() -> str:
    """Identify this computer's clock, which all its processes share until the next boot."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    return uuid4().hex


def _family() -> list[int]:
    """Return this worker and its parent, if that is Python: their descendants are the grid's."""
    import psutil

    own = psutil.Process()
    with suppress(psutil.Error):
        parent = own.parent()
        if parent is not None and "python" in parent.name().lower():
            return [parent.pid, own.pid]
    return [own.pid]
