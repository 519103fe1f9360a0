"""A process of ``worker.py`` and the line to it: what a machine's jobs run in."""

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
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

from .. import worker
from ..worker import HEADER, pack

__all__ = ["PATIENCE", "Process"]

PATIENCE = 2.0
"""Seconds in which a process must answer that it is there."""
PAUSE = 0.5
"""Seconds before another is started in the place of one that never got ready."""


@dataclass(eq=False)
class Process:
    """A process that runs one pickled call at a time.

    Parameters
    ----------
    process
        It itself.
    writer
        The line to it.
    hear
        Told of what it says about its jobs: ``started`` or ``ended``, and what goes with it.
    gone
        Awaited with the reason when it has ended, whoever ended it.
    """

    process: subprocess.Popen[bytes]
    writer: asyncio.StreamWriter
    hear: Callable[..., None]
    gone: Callable[[str], Awaitable[None]]
    listening: asyncio.Task[None] | None = None
    pings: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.Future())
    """Settled when it takes calls, or has ended without ever doing so."""

    @classmethod
    async def start(cls, hear: Callable[..., None], gone: Callable[[str], Awaitable[None]]) -> Self:
        """Start a process, and listen to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", worker.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        self = cls(process, writer, hear, gone)
        self.listening = asyncio.create_task(self._listen(reader))
        return self

    def run(self, job: int, attempt: int, work: bytes) -> None:
        """Send it a call."""
        self.writer.write(pack((job, attempt, work)))

    async def ping(self) -> float:
        """Return the seconds that it takes to answer; TimeoutError if it does not."""
        loop = asyncio.get_running_loop()
        began, number = loop.time(), next(self.numbers)
        answer = self.pings[number] = loop.create_future()
        self.writer.write(pack(number))
        try:
            async with asyncio.timeout(PATIENCE):
                await answer
        finally:
            del self.pings[number]
        return loop.time() - began

    def kill(self) -> None:
        """End it, in the middle of a job too."""
        self.process.kill()

    async def close(self) -> None:
        """End it, and wait until it is gone."""
        self.kill()
        self.writer.close()
        if self.listening is not None:
            await self.listening

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Pass on what it says until it is gone."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = HEADER.unpack(await reader.readexactly(HEADER.size))[0]
                kind, *rest = pickle.loads(await reader.readexactly(size))
                if kind == "ready":
                    self.ready.set_result(None)
                elif kind != "here":
                    self.hear(kind, *rest)
                elif rest[0] in self.pings:
                    self.pings[rest[0]].set_result(None)
        self.kill()
        code = await asyncio.to_thread(self.process.wait)
        self.writer.close()
        if not self.ready.done():
            self.ready.set_result(None)
            await asyncio.sleep(PAUSE)
        await self.gone(_why(code))


def _why(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with status {code}"
