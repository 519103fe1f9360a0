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
from .process import Pauses, Process
from .protocol import Ended, Started

SOON = 0.05
"""Seconds after which the start of a job is reported; shorter jobs report it with their end."""
SMALL = 4096
"""The most bytes of a result on the topic, because the scheduler stores some messages."""
STARTING = 10.0
"""Seconds in which a process must be ready."""
SILENCE = 60.0
"""Seconds without a message from the grid after which its processes are ended."""
LOOKS = 10
"""How often to check for a message in that time."""


@dataclass(eq=False)
class _Machine:
    """A machine: its process and its job."""

    number: int
    process: Process | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    key: str = ""
    """The Dask task that it is running."""
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
        self.waiting: set[str] = set()
        """Tasks whose machine is not ready yet."""
        self.minding: asyncio.Task[None] | None = None
        self.closing = False
        self.silent_looks = 0

    async def setup(self, worker: Any) -> None:
        """Start the processes."""
        self.worker, self.identity = worker, uuid4().hex
        self.closed = asyncio.Event()
        self.all = [_Machine(number) for number in range(self.slots)]
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
        """Stop a job whose task was released."""
        if finish == "released" and start in ("executing", "long-running"):
            self.stop(key)

    def stop(self, key: str) -> None:
        """Stop a job that waits or runs; its process is replaced."""
        self.waiting.discard(key)
        for machine in self.all:
            if machine.key == key and machine.answer is not None:
                self._lose(machine)

    def say(self, kind: str, machine: int, *rest: Any) -> None:
        """Send a message to the grid."""
        self.worker.log_event(self.topic, [kind, self.worker.address, machine, *rest])

    async def run(self, key: str, number: int, job: int, attempt: int, work: bytes) -> Any:
        """Run a call and report its times and result; return the result if it is large."""
        machine = self.all[number]
        internals.run_beside_threads(self.worker, key, len(self.all))
        self.waiting.add(key)
        async with machine.turn:
            if not machine.away:
                await machine.ready.wait()
            wanted = key in self.waiting
            self.waiting.discard(key)
            if not wanted or machine.away or machine.process is None:
                return None
            loop = asyncio.get_running_loop()
            machine.key, machine.started, machine.owed = key, 0.0, False
            machine.answer = loop.create_future()
            machine.process.run(job, attempt, work)
            early = loop.call_later(SOON, self._say_started, machine, job, attempt)
            try:
                answer = await machine.answer
            finally:
                early.cancel()
                machine.key, machine.answer = "", None
        if answer is None:
            return None
        at, result, error = answer
        large = len(result) + len(error) > SMALL
        said = None if large else [result, error]
        self.say("ended", number, job, attempt, machine.started, at, said)
        return (result, error) if large else None

    async def put_away(self, away: list[bool]) -> None:
        """Take machines away or bring them back; return when all others are ready."""
        self.silent_looks = 0
        for machine, wish in zip(self.all, away, strict=True):
            before, machine.away = machine.away, wish
            if wish and not before:
                machine.down = False
                self._lose(machine)
            elif before and not wish and machine.process is None and not machine.starting:
                await self._spawn(machine)
        for machine in self.all:
            if not machine.away:
                async with asyncio.timeout(STARTING):
                    await machine.ready.wait()

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
        machine.ready.set()
        if machine.away or self.closing:  # meanwhile
            self._lose(machine)
        return True

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
        elif machine.answer is not None and not machine.answer.done():
            machine.pauses.reset()
            machine.answer.set_result((at, *answer))

    async def _gone(self, machine: _Machine, why: str, died: bool) -> None:
        """Replace a process that is gone."""
        machine.process = None
        self._lose(machine)
        if died and not machine.down and not (machine.away or self.closing):
            machine.down = True
            self.say("down", machine.number, why)
        if machine.away or self.closing:
            return
        if await self._spawn(machine, machine.pauses.next() if died else 0.0) and machine.down:
            machine.down = False
            self.say("up", machine.number)

    def _say_started(self, machine: _Machine, job: int, attempt: int) -> None:
        machine.owed = not machine.started  # it still imports modules
        if machine.started:
            self.say("started", machine.number, job, attempt, machine.started)

    def _read(self, measured: float, predicted: list[float]) -> None:
        """Report the measured and the predicted CPU availability."""
        for machine, expected in zip(self.all, predicted, strict=True):
            if not machine.away and not self.closing:
                self.say("reading", machine.number, measured, expected)

    async def _mind(self) -> None:
        """End the processes when the grid is silent for long.

        This counts checks, not seconds: a worker that was frozen could hear nothing meanwhile.
        """
        while self.silent_looks < LOOKS:
            await asyncio.sleep(SILENCE / LOOKS)
            self.silent_looks += 1
        await internals.remove_plugin(self.worker, self.topic)


# functions that the grid calls on a worker


async def run(topic: str, key: str, number: int, job: int, attempt: int, work: bytes) -> Any:
    """Run a job: the task that the grid submits."""
    worker = get_worker()
    plugin = internals.plugin(worker, topic)
    if plugin is None:  # it has ended because the grid was silent
        worker.log_event(topic, ["forgot", worker.address, number])
        return None
    return await plugin.run(key, number, job, attempt, work)


async def hello(
    topic: str, away: list[bool], measuring: tuple[float, list[Prediction]], dask_worker: Any
) -> tuple[float, str, str]:
    """Start the machines that are not away; return the time, the clock and our identity."""
    if (plugin := internals.plugin(dask_worker, topic)) is None:
        plugin = Machines(topic, len(away), *measuring)
        await internals.add_plugin(dask_worker, plugin, topic)
    plugin.predict(measuring[1])
    await plugin.put_away(away)
    return time.monotonic(), clock(), plugin.identity


async def stop(topic: str, key: str, dask_worker: Any) -> None:
    """Stop a job."""
    if (plugin := internals.plugin(dask_worker, topic)) is not None:
        plugin.stop(key)


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
