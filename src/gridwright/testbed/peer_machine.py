"""The process of a machine in an experiment without a scheduler.

It has the machine's book (``grid/peer.py``), a worker that runs its jobs, a listening socket for
the other machines, and a connection to each of them. On a connection, one machine asks questions
and hands over jobs, and the other replies. The experiment's own process plays nature: it lets jobs
arrive and rates change on a further socket, and takes reports there. It decides nothing.

Messages are lines of JSON, so reading one runs no code.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hmac import compare_digest
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from ..grid.executors.process import Pauses, Process
from ..grid.executors.protocol import Started
from ..grid.peer import (
    Answer,
    Begin,
    Content,
    Decided,
    Handover,
    Load,
    Message,
    Output,
    Peer,
    PeerJob,
    Question,
    Rates,
    Receipt,
    Taken,
)
from ..policies import find
from .adjuster import call_of, carry_along

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0
"""Seconds after which a machine that does not reply counts as gone."""
RETRY = 0.5
"""Seconds between attempts to connect to a machine that is gone."""
LONGEST_LINE = 1 << 20


class Setup(NamedTuple):
    """What the process of a machine is told at first."""

    number: int
    names: list[str]
    policy: str
    nominal: list[list[float]]
    """The first rates [class, machine]."""
    arrivals: list[list[float]]
    availability: list[float]
    own: Any
    """The machine's own rates now, a `Rates`."""
    rates_change: bool
    time_unit: float
    kind: str
    """Of the jobs: ``wait`` or ``spin``."""
    per_second: float
    """The speed of the machine, for jobs that spin."""
    token: str
    seed: int


def line_of(*words: Any) -> bytes:
    """Return words as a line of JSON."""
    return json.dumps(words).encode() + b"\n"


def pack(content: Content) -> bytes:
    """Return a message between machines as a line.

    >>> unpack(json.loads(pack(Receipt(PeerJob(3, 0, 1, 0.5)))))
    Receipt(job=PeerJob(number=3, task_class=0, attempt=1, size=0.5))
    """
    return line_of(type(content).__name__, *content)


def unpack(words: list[Any]) -> Content:
    """Return the message of a line."""
    match words:
        case ["Question", number, rates]:
            return Question(number, rates_of(rates))
        case ["Answer", number, rates, load]:
            return Answer(number, rates_of(rates), Load(*load))
        case ["Handover", job]:
            return Handover(PeerJob(*job))
        case ["Receipt", job]:
            return Receipt(PeerJob(*job))
    raise ValueError(f"{words!r} is not a message")


def rates_of(words: list[Any]) -> Rates:
    """Return the rates of a line."""
    version, nominal, arrivals, availability = words
    return Rates(version, tuple(nominal), tuple(arrivals), availability)


class Link:
    """A connection to another machine, on which this one asks and the other replies."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.unanswered: deque[float] = deque()
        """When the messages were sent that have no reply."""

    @classmethod
    async def open(cls, port: int, token: str, number: int) -> Link:
        """Connect to a machine and wait until it has replied; raise OSError or TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(LOOPBACK, port, limit=LONGEST_LINE)
            try:
                writer.write(line_of(token, number))
                if not await reader.readline():
                    raise ConnectionResetError
            except BaseException:
                writer.transport.abort()
                raise
        return cls(reader, writer)

    def send(self, content: Content) -> None:
        """Send a message."""
        self.unanswered.append(asyncio.get_running_loop().time())
        self.writer.write(pack(content))

    async def replies(self, hear: Callable[[Content], None]) -> None:
        """Hear replies until the connection ends, or the other machine is silent for too long."""
        with suppress(OSError, ValueError, TimeoutError):
            while line := await self._next():
                if self.unanswered:
                    self.unanswered.popleft()
                hear(unpack(json.loads(line)))
        self.writer.transport.abort()

    async def _next(self) -> bytes:
        waiting = asyncio.ensure_future(self.reader.readline())
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=1.0)
                late = asyncio.get_running_loop().time() - PATIENCE
                if not waiting.done() and self.unanswered and self.unanswered[0] < late:
                    raise TimeoutError
            return waiting.result()
        finally:
            waiting.cancel()


class Machine:
    """A machine: its book, its worker, and its connections."""

    def __init__(self, setup: Setup, control: Control) -> None:
        self.setup, self.control = setup, control
        self.book = Peer(
            setup.number,
            find(setup.policy),
            np.array(setup.nominal),
            np.array(setup.arrivals),
            np.array(setup.availability),
            rates_change=setup.rates_change,
            rng=np.random.default_rng([setup.seed, setup.number]),
        )
        self.book.change(rates_of(setup.own))
        for machine in range(len(setup.names)):
            if machine != setup.number:
                self.book.gone(0.0, machine)  # until it is connected
        if setup.kind == "spin":
            carry_along()
        self.zero = 0.0
        self.ports: dict[int, int] = {}
        self.links: dict[int, Link] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.process: Process | None = None
        self.running: PeerJob | None = None
        self.sent = self.started = float("nan")
        self.pauses = Pauses()

    def now(self) -> float:
        """Return the time units since the experiment began."""
        return (asyncio.get_running_loop().time() - self.zero) / self.setup.time_unit

    def _units(self, at: float) -> float:
        return (at - self.zero) / self.setup.time_unit

    # the experiment

    async def open(self) -> None:
        """Start the worker and listen for the other machines."""
        await self._start_worker()
        assert self.process is not None
        await self.process.ready
        server = await asyncio.start_server(self._serve, LOOPBACK, 0, limit=LONGEST_LINE)
        self.control.say("ready", server.sockets[0].getsockname()[1])

    def told(self, words: list[Any]) -> None:
        """Do what the experiment says."""
        match words:
            case ["address", machine, port]:
                self._meet(machine, port)
            case ["begin", zero]:
                self.zero = zero
            case ["job", job]:
                self._act(self.book.arrive(self.now(), PeerJob(*job)))
            case ["change", rates]:
                self.book.change(rates_of(rates))
            case ["close"]:
                self.control.say("counts", dict(self.book.sent))
                self.control.end()

    def _act(self, out: list[Output], reply: asyncio.StreamWriter | None = None) -> None:
        """Do what the book says. Reports come first: a job that is confirmed is reported."""
        for each in out:
            match each:
                case Taken(job):
                    self.control.say("taken", job.number, self.now())
                case Decided():
                    self.control.say("decided", each, dict(self.book.sent))
        for each in out:
            match each:
                case Message(to, (Question() | Handover()) as content):
                    self.links[to].send(content)
                case Message(_, content) if reply is not None:
                    reply.write(pack(content))
                case Begin(job):
                    self._run(job)

    # its worker

    async def _start_worker(self) -> None:
        name = self.setup.names[self.setup.number]
        self.process = await Process.start(name, self._hear_worker, self._worker_gone)
        if self.running is not None:
            self._run(self.running)

    def _run(self, job: PeerJob) -> None:
        self.running, self.sent = job, self.now()
        own = self.book.rates[self.setup.number]
        rate = own.nominal[job.task_class] * own.availability
        call = call_of(
            self.setup.kind, job.size / rate * self.setup.time_unit, self.setup.per_second
        )
        if self.process is not None:
            self.process.run(job.number, job.attempt, cloudpickle.dumps(call))

    def _hear_worker(self, kind: Any, number: int, attempt: int, at: float, *rest: Any) -> None:
        if self.running is None or self.running.number != number:
            return
        if kind is Started:
            self.started = self._units(at)
            self.control.say("started", number, self.sent, self.started)
            return
        self.running = None
        self.pauses.reset()
        times = (self.now(), self.sent, self.started, self._units(at))
        self.control.say("ended", number, *times)
        self._act(self.book.ended(self.now(), number))

    async def _worker_gone(self, why: str, died: bool) -> None:
        """Start another worker, which begins with the job that the last one ran."""
        if not died:
            return  # the experiment ends
        self.process = None
        self.control.say("worker died", self.running.number if self.running else None, why)
        await asyncio.sleep(self.pauses.next())
        await self._start_worker()

    # the other machines

    def _meet(self, machine: int, port: int) -> None:
        """Connect to a machine that listens at a port, for as long as it does."""
        self.ports[machine] = port
        self._leave(machine)
        task = asyncio.create_task(self._keep_linked(machine, port))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _keep_linked(self, machine: int, port: int) -> None:
        while self.ports[machine] == port:
            try:
                link = await Link.open(port, self.setup.token, self.setup.number)
            except (OSError, TimeoutError):
                self._leave(machine)
                await asyncio.sleep(RETRY)
                continue
            if self.ports[machine] != port:
                return
            self.links[machine] = link
            self._act(self.book.here(self.now(), machine))
            self.control.say("linked", len(self.links))
            await link.replies(partial(self._replied, machine, link))
            if self.links.get(machine) is link:
                self._leave(machine)

    def _replied(self, machine: int, link: Link, content: Content) -> None:
        if self.links.get(machine) is link:
            self._act(self.book.hear(self.now(), machine, content))

    def _leave(self, machine: int) -> None:
        """Note that a machine is gone."""
        link = self.links.pop(machine, None)
        if link is not None:
            link.writer.transport.abort()
            self._act(self.book.gone(self.now(), machine))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reply to a machine that has connected."""
        with suppress(OSError, ValueError):
            token, sender = json.loads(await reader.readline() or b"null")
            if compare_digest(str(token), self.setup.token):
                writer.write(line_of("welcome"))
                while line := await reader.readline():
                    self._act(self.book.hear(self.now(), sender, unpack(json.loads(line))), writer)
        writer.transport.abort()


class Control:
    """The socket to the process of the experiment.

    Reports are written before anything else is done, so that they survive the death of the machine.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.ended = asyncio.get_running_loop().create_future()
        self._bytes = bytearray()

    def say(self, *words: Any) -> None:
        """Report something; end this process if the experiment is gone."""
        try:
            self.sock.sendall(line_of(*words))
        except OSError:
            os._exit(0)

    def end(self) -> None:
        """Let the process end."""
        if not self.ended.done():
            self.ended.set_result(None)

    def lines(self) -> list[Any]:
        """Return the lines that have come; end this process if the experiment is gone."""
        try:
            data = self.sock.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            os._exit(0)
        *lines, rest = (bytes(self._bytes) + data).split(b"\n")
        self._bytes = bytearray(rest)
        return [json.loads(line) for line in lines]


async def serve(sock: socket.socket) -> None:
    """Be a machine until the experiment ends."""
    loop, control = asyncio.get_running_loop(), Control(sock)

    def failed(_: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error else str(context["message"])
        control.say("error", text)
        os._exit(1)

    loop.set_exception_handler(failed)
    waiting: list[Any] = []
    while not waiting:
        await _readable(sock)
        waiting = control.lines()
    machine = Machine(Setup(*waiting.pop(0)), control)
    await machine.open()

    def read() -> None:
        for words in control.lines():
            machine.told(words)

    for words in waiting:
        machine.told(words)
    loop.add_reader(sock, read)
    await control.ended
    if machine.process is not None:
        await machine.process.close()
    os._exit(0)  # its connections need not be closed one by one


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    found = asyncio.Event()
    loop.add_reader(sock, found.set)
    await found.wait()
    loop.remove_reader(sock)


def main() -> None:
    """Serve the socket whose number is the first argument."""
    try:
        asyncio.run(serve(socket.socket(fileno=int(sys.argv[1]))))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
