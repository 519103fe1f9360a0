"""The embedded executor: one process on this computer for each machine, and no server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import worker
from ..agent import Agent
from ..prediction import Prediction
from ..worker import HEADER, pack
from .seam import Ended, Event, MachineDown, MachineUp, Reading, Started

__all__ = ["LocalExecutor"]

PATIENCE = 2.0
"""Seconds in which a process must answer that it is there."""


@dataclass
class _Machine:
    """A process, and the line to it."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    writer: asyncio.StreamWriter | None = None
    reading: asyncio.Task[None] | None = None
    running: tuple[int, int] | None = None
    restarting: bool = False
    """Whether its process was killed on purpose, to stop a job."""
    away: bool = False
    """Whether it was taken away, until it is repaired."""
    pings: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    next_job: tuple[int, int, bytes] | None = None
    """What to start when it is there again."""


@dataclass
class LocalExecutor:
    """Machines that are processes of this computer.

    A process that dies is a machine that goes down; another takes its place.
    """

    machines: list[str]
    tell: Callable[[Event], None] = field(default=lambda event: None)
    closing: bool = False

    def __init__(self, machines: int | Sequence[str], *, prediction: Any = "weekly") -> None:
        names = [str(k + 1) for k in range(machines)] if isinstance(machines, int) else machines
        self.machines = list(names)
        self.closing = False
        self.prediction = Prediction.of(prediction)
        self._agent: Agent | None = None
        self._numbers = itertools.count()
        self._all = [_Machine(number) for number in range(len(self.machines))]

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Start the processes."""
        self.tell = tell
        for machine in self._all:
            await self._spawn(machine)
        if resolution > 0:
            self._measure(asyncio.get_running_loop(), resolution)

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Send a call to a machine."""
        it = self._all[machine]
        if it.away:
            return  # it has gone silent: nobody hears this
        if it.restarting or it.writer is None:
            it.next_job = (job, attempt, work)
        else:
            it.running = (job, attempt)
            it.writer.write(pack((job, attempt, work)))

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt. A function in the middle of its work ends only with its process."""
        it = self._all[machine]
        if it.next_job is not None and it.next_job[:2] == (job, attempt):
            it.next_job = None
        elif it.running == (job, attempt) and it.process is not None:
            it.restarting = True
            it.process.kill()

    async def ping(self, machine: int) -> float:
        """Return the seconds that a process takes to answer."""
        it, loop = self._all[machine], asyncio.get_running_loop()
        if it.writer is None or it.away:
            raise TimeoutError
        began, number = loop.time(), next(self._numbers)
        answer = it.pings[number] = loop.create_future()
        it.writer.write(pack(number))
        try:
            async with asyncio.timeout(PATIENCE):
                await answer
        finally:
            del it.pings[number]
        return loop.time() - began

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Kill a process, and start no other in its place until the machine is repaired."""
        it = self._all[machine]
        if it.away:
            return
        it.away, it.next_job = True, None
        if it.process is not None:
            it.process.kill()
        if not silent:
            self.tell(MachineDown(machine, "it was taken away"))

    def repair(self, machine: int) -> None:
        """Start a process again."""
        it = self._all[machine]
        if it.away:
            it.away = False
            if it.reading is None or it.reading.done():
                it.reading = asyncio.create_task(self._spawn(it))

    def pid(self, machine: int) -> int:
        """Return the process of a machine."""
        process = self._all[machine].process
        return process.pid if process is not None else -1

    async def close(self) -> None:
        """End the processes: those that work are killed."""
        self.closing = True
        if self._agent is not None:
            await asyncio.to_thread(self._agent.stop)
        for machine in self._all:
            if machine.process is not None:
                machine.process.kill()
            if machine.writer is not None:
                machine.writer.close()
        for machine in self._all:
            if machine.reading is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await machine.reading
            if machine.process is not None:
                await asyncio.to_thread(machine.process.wait)

    def _measure(self, loop: asyncio.AbstractEventLoop, resolution: float) -> None:
        """Have one agent tell of all machines: they share this computer's processors.

        The grid's are this process and all that descends from it: the workers, those that it has
        buried included, and what their jobs start.
        """

        def tell(measured: float, predicted: float) -> None:
            for machine in self._all:
                if not machine.away:
                    self.tell(Reading(machine.number, measured, predicted))

        self._agent = Agent(
            lambda *reading: loop.call_soon_threadsafe(tell, *reading),
            resolution,
            own=lambda: [os.getpid()],
            prediction=self.prediction,
        )
        self._agent.start()

    async def _spawn(self, machine: _Machine) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            machine.process = subprocess.Popen(
                [sys.executable, "-P", worker.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        reader, machine.writer = await asyncio.open_connection(sock=ours)
        machine.reading = asyncio.create_task(self._listen(machine, reader))
        if not machine.restarting:
            self.tell(MachineUp(machine.number))
        machine.restarting = False
        if machine.next_job is not None:
            next_job, machine.next_job = machine.next_job, None
            self.start(next_job[0], machine.number, *next_job[1:])

    async def _listen(self, machine: _Machine, reader: asyncio.StreamReader) -> None:
        """Pass on what a machine says until it is gone; then start another in its place."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = HEADER.unpack(await reader.readexactly(HEADER.size))[0]
                kind, *rest = pickle.loads(await reader.readexactly(size))
                if machine.away:
                    continue
                if kind == "here":
                    if rest[0] in machine.pings:
                        machine.pings[rest[0]].set_result(None)
                elif kind == "started":
                    self.tell(Started(machine.number, *rest))
                else:
                    machine.running = None
                    self.tell(Ended(machine.number, *rest))
        if self.closing or machine.process is None or machine.writer is None:
            return
        machine.process.kill()
        code = await asyncio.to_thread(machine.process.wait)
        machine.writer.close()
        machine.writer, machine.running = None, None
        if not machine.restarting and not machine.away:
            self.tell(MachineDown(machine.number, _why(code)))
        if not self.closing and not machine.away:
            await self._spawn(machine)


def _why(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with status {code}"
