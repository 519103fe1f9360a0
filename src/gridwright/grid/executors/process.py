"""A process of ``worker.py``, which runs the jobs of a machine, and the socket to it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any, Self

from .. import worker
from ..guardian import PATIENCE as SWEEPING
from ..guardian import Pace
from ..progress import MACHINE
from ..worker import (
    BACK,
    ENDED,
    FRAME,
    HERE,
    PING,
    READY,
    RETURNED,
    RUN,
    STARTED,
    BrokenLineError,
    Frame,
)
from .protocol import Ended, Returned, Started

PATIENCE = 2.0
"""Seconds in which a process must answer a ping."""
MOMENT = 1.0
"""The most seconds between the end of a process and the end of its socket."""
STUBBORN = 2 * SWEEPING
"""Seconds after which a guardian that does not end is killed."""
ENOUGH = 0.1
"""Seconds of work after which it is known how fast a slow machine really was."""
MARK = "GRIDWRIGHT_PROCESS"
"""The environment variable by which the processes of a machine are found without a guardian.

It has the mark of the socket, and the process that started the guardian: its pid and its birth.
"""


@dataclass
class Pauses:
    """How long to wait before a process is started in the place of one that has died.

    The pause doubles with every death in a row. A job that ends makes the next pause 0 again.
    """

    shortest: float = 0.05
    longest: float = 2.0
    deaths: int = 0

    def reset(self) -> None:
        """Note that a job has ended."""
        self.deaths = 0

    def next(self) -> float:
        """Return the seconds to wait after one more death: none after the first."""
        self.deaths += 1
        if self.deaths == 1:
            return 0.0
        return min(self.shortest * 2.0 ** min(self.deaths - 2, 30), self.longest)


@dataclass(eq=False)
class Process:
    """A process that runs pickled calls one after the other, and the guardian that watches it."""

    guardian: subprocess.Popen[bytes]
    """The parent of the process. It ends in the same way, after all processes of the jobs."""
    line: Line
    mark: bytes
    """The first bytes of every frame on the socket."""
    hear: Callable[..., None]
    """Called with ``Started``, ``Ended`` or ``Returned`` and what follows the machine there."""
    gone: Callable[[str, bool], Awaitable[None]]
    """Awaited when the process has ended, with the reason and whether it died by itself."""
    pace: Pace
    """How fast it is."""
    seen: tuple[float, float] = (0.0, 0.0)
    """How long it was slowed down and stopped, as of the last measurement."""
    pid: int = -1
    """The pid of the process, once it is ready."""
    killed: bool = False
    """Whether we have killed it."""
    unheard: Frame | None = None
    """The start that we did not pass on, because we had killed it."""
    watching: asyncio.Task[None] | None = None
    outbox: list[bytes] = field(default_factory=list)
    pings: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.Future())
    """Done when the process takes calls, or has ended before."""

    @classmethod
    async def start(
        cls, name: str, hear: Callable[..., None], gone: Callable[[str, bool], Awaitable[None]]
    ) -> Self:
        """Start a process of a machine and listen to it; raise OSError if it cannot be started."""
        mark, path = secrets.token_bytes(8), os.pathsep.join(filter(None, sys.path))
        ours, theirs = socket.socketpair()
        with theirs, _memory() as memory, contextlib.ExitStack() as unless_started:
            unless_started.enter_context(ours)
            pace = Pace.of(memory.fileno())
            pace.share = 1.0
            guardian = subprocess.Popen(
                [
                    *(sys.executable, "-P", worker.__file__),
                    *(str(theirs.fileno()), str(os.getpid()), mark.hex(), str(memory.fileno())),
                ],
                pass_fds=[theirs.fileno(), memory.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path, MARK: _signed(mark), MACHINE: name},
                process_group=0,  # Ctrl-C is only for us; we end it
            )
            unless_started.pop_all()
        line = Line(ours, mark)
        await asyncio.get_running_loop().create_connection(lambda: line, sock=ours)
        self = cls(guardian, line, mark, hear, gone, pace)
        line.hear = self._hear
        self.watching = asyncio.create_task(self._watch())
        return self

    def run(self, job: int, attempt: int, work: bytes) -> None:
        """Send it a call, to be run after those that it has."""
        self._send(Frame(RUN, job, attempt, body=work))

    def call_back(self, job: int, attempt: int) -> None:
        """Ask it for a call that it has not begun."""
        self._send(Frame(BACK, job, attempt))

    def _send(self, frame: Frame) -> None:
        """Send a frame, together with the others of this moment."""
        if not self.outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self.outbox.append(frame.pack(self.mark))

    def _flush(self) -> None:
        frames, self.outbox = self.outbox, []
        self.line.write(b"".join(frames))

    async def ping(self) -> float:
        """Return the seconds that it takes to answer; raise TimeoutError if it does not."""
        loop = asyncio.get_running_loop()
        began, number = loop.time(), next(self.numbers)
        answer = self.pings[number] = loop.create_future()
        self._send(Frame(PING, number))
        try:
            async with asyncio.timeout(PATIENCE):
                await answer
        finally:
            del self.pings[number]
        return loop.time() - began

    def impose(self, share: float) -> None:
        """Let its jobs run for a share of the time."""
        if share != self.pace.share:
            self.pace.share, self.seen = share, (self.pace.watched, self.pace.stopped)
            self.guardian.send_signal(signal.SIGCONT)  # it is to look at once

    def measured_share(self) -> float | None:
        """Return the share of the time in which its jobs ran since the last measurement.

        None: it was not slow, or they ran for too short a time.
        """
        watched, stopped = self.pace.watched - self.seen[0], self.pace.stopped - self.seen[1]
        if watched < ENOUGH:
            return None
        self.seen = self.pace.watched, self.pace.stopped
        return min(max(1.0 - stopped / watched, 0.0), 1.0)

    def kill(self) -> None:
        """Kill it, even during a job, and every process that its jobs have started."""
        if not self.killed:
            self.killed = True
            self._end()
            asyncio.get_running_loop().call_later(STUBBORN, self.guardian.kill)

    async def close(self) -> None:
        """Kill it, and wait until it is gone."""
        self.kill()
        if self.watching is not None:
            await asyncio.wait([self.watching])

    def _end(self) -> None:
        """Let the guardian end everything; continue it first if it was stopped."""
        self.guardian.send_signal(signal.SIGCONT)
        self.guardian.send_signal(signal.SIGTERM)

    async def _watch(self) -> None:
        """Wait for the end of the process, not of its socket, which a child may keep open."""
        ended, listening = in_thread(self.guardian.wait), self.line.ended
        both: list[asyncio.Future[Any]] = [ended, listening]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        why = listening.result() if listening.done() else ""
        if not why:
            await asyncio.wait(both, timeout=MOMENT)
        if not ended.done():
            why = why or "its job closed the worker's socket"
            self._end()
        code = await ended
        self.line.close()
        if code == -signal.SIGKILL:  # perhaps the guardian was killed
            await in_thread(lambda: _kill_marked(self.mark))
        if not self.ready.done():
            self.ready.set_result(None)
        await self.gone(why or _why(code), not self.killed)

    def _hear(self, frame: Frame) -> None:
        about = (frame.job, frame.attempt, frame.at)
        if frame.kind == READY and not self.ready.done():
            self.pid = frame.job
            self.ready.set_result(None)
        elif frame.kind == HERE and frame.job in self.pings:
            if not self.pings[frame.job].done():
                self.pings[frame.job].set_result(None)
        elif self.killed and frame.kind != ENDED:
            if frame.kind == STARTED:  # whoever killed it has given up its job, unless it ended
                self.unheard = frame
        elif frame.kind == STARTED:
            self.hear(Started, *about)
        elif frame.kind == RETURNED:
            self.hear(Returned, frame.job, frame.attempt)
        elif frame.kind == ENDED:
            if self.unheard is not None and self.unheard[:3] == (STARTED, *about[:2]):
                self.hear(Started, *self.unheard[1:4])
            self.hear(Ended, *about, frame.body, frame.error.decode(errors="replace"))


def _memory() -> IO[bytes]:
    """Return a file in memory for a `Pace`."""
    file = os.fdopen(os.memfd_create("gridwright-pace"), "r+b")
    file.truncate(ctypes.sizeof(Pace))
    return file


class Line(asyncio.Protocol):
    """The socket to a process.

    All frames are heard that the process sent before it died, also if we could not write to it.
    """

    def __init__(self, sock: socket.socket, mark: bytes) -> None:
        self.mark = mark
        self.hear: Callable[[Frame], None] = lambda frame: None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done at the end of the socket, with an empty text or what was wrong."""
        self._transport: Any = None
        self._rest = sock.dup()  # asyncio closes the other without reading the rest
        self._bytes = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport

    def write(self, data: bytes) -> None:
        """Send bytes; do nothing if the process is gone."""
        if not self.ended.done():
            self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Hear the frames that have come."""
        self._bytes += data
        if self.ended.done():
            return
        try:
            used = 0
            while used + FRAME.size <= len(self._bytes):
                body = used + FRAME.size
                frame, size, rest = Frame.unpack(bytes(self._bytes[used:body]), self.mark)
                if (end := body + size + rest) > len(self._bytes):
                    break
                if end > body:
                    between = body + size
                    texts = bytes(self._bytes[body:between]), bytes(self._bytes[between:end])
                    frame = Frame(*frame[:4], *texts)
                self.hear(frame)
                used = end
            del self._bytes[:used]
        except BrokenLineError as error:
            self.ended.set_result(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        """Hear the rest."""
        with contextlib.suppress(OSError), self._rest:
            self._rest.setblocking(False)
            while data := self._rest.recv(1 << 16):
                self.data_received(data)
        if not self.ended.done():
            self.ended.set_result("")

    def close(self) -> None:
        """Stop listening."""
        if not self.ended.done():
            self.ended.set_result("")
        self._rest.close()
        self._transport.abort()


def measured_share(process: Process | None, imposed: float) -> float:
    """Return the share of the time in which a machine's jobs ran; if unknown, the imposed one."""
    found = None if process is None else process.measured_share()
    return imposed if found is None else found


def in_thread(function: Callable[[], Any]) -> asyncio.Future[Any]:
    """Return a future of what a function returns, which must not raise.

    Unlike ``asyncio.to_thread``, this also works while the interpreter exits.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any) -> None:
        if not found.done():
            found.set_result(result)

    def call() -> None:
        result = function()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result)

    Thread(target=call, name="gridwright waits", daemon=True).start()
    return found


def end_orphans() -> None:
    """Kill the processes of this user's jobs whose grid and guardian were both killed."""
    for pid, (_, owner, birth) in list(_marked()):
        if _birth(owner) != birth:
            _kill(pid)


def _kill_marked(mark: bytes) -> None:
    """Kill the processes of one machine."""
    for pid, (its_mark, *_) in list(_marked()):
        if its_mark == mark.hex():
            _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _signed(mark: bytes) -> str:
    """Return the value of MARK for a process that this one starts."""
    return f"{mark.hex()} {os.getpid()} {_birth(str(os.getpid()))}"


def _marked() -> Iterator[tuple[int, list[str]]]:
    """Find the processes of machines that this user's grids have started in this container."""
    begin, here = f"{MARK}=".encode(), _container("self")
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for each in (folder / "environ").read_bytes().split(b"\0"):
                if each.startswith(begin) and folder.stat().st_uid == os.geteuid():
                    words = each.removeprefix(begin).decode("ascii", "replace").split()
                    if len(words) == 3 and _container(folder.name) == here:
                        yield int(folder.name), words


def _birth(pid: str) -> str:
    """Return when a process was started, in ticks since the computer was; empty if it is gone."""
    with contextlib.suppress(OSError):
        after_its_name = Path("/proc", pid, "stat").read_text("utf-8", "replace").rpartition(")")[2]
        state, *fields = after_its_name.split()
        return "" if state in "ZX" else fields[18]
    return ""


def _container(pid: str) -> str:
    """Return the namespace of a process, in which its pid is valid."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")
    return ""


def _why(code: int) -> str:
    if code >= 0:
        return f"its process exited with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"its process was killed by {name}" + " (out of memory?)" * (code == -signal.SIGKILL)
