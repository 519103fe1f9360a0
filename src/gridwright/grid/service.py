"""A grid that other processes use: its server."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ..model import GridwrightError, InputError
from .future import JobFuture
from .grid import Grid
from .journal import Journal
from .journal_queries import job_page
from .messages import (
    MOST_GREETING,
    Message,
    Place,
    is_loopback,
    keep_alive,
    known_place,
    receive,
    split,
    told_error,
)
from .remote import machine_states
from .submitter import Call, Chosen

GREETING = 10.0
"""Seconds in which a client must show its token."""


THREADS = 32
"""How many requests of clients are handled at the same time."""
BEHIND = 100
"""How many results are kept in memory for a client that reads slowly."""
STARTS = 0.1
"""Seconds in which starts of jobs are collected, so that those of short jobs are not told."""
UNREAD = 1 << 20
"""Bytes that a client has not read yet, from which on it is not told of starts."""


class ServedGrid(Grid):
    """A grid whose results stay pickled: they are for other processes."""

    _is_raw = True
    tell_start: Callable[[int, str], None] | None = None
    """Told the number and the machine of each job that starts."""

    def _begun(self, number: int, machine: str) -> None:
        super()._begun(number, machine)
        if self.tell_start is not None:
            self.tell_start(number, machine)


class Service:
    """Serves a grid on a socket, in a thread of its own."""

    def __init__(
        self, grid: ServedGrid, place: Place, tls: ssl.SSLContext | None, *, any_port: bool = False
    ) -> None:
        self.grid, self.place = grid, place
        grid.unfinished.clear()  # clients ask for them by key or number
        self._clients: set[_Client] = set()
        self._starts: deque[tuple[int, str]] = deque()
        """Jobs that have started, of which clients are not told yet."""
        self._pool = ThreadPoolExecutor(THREADS, "gridwright clients")
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="gridwright service", daemon=True)
        self._thread.start()
        try:
            self._server = self._wait(self._listen(tls, any_port=any_port))
        except BaseException:
            self._stop()
            raise
        port = self._server.sockets[0].getsockname()[1]
        self.place = replace(place, port=port)
        grid.tell_start = self._started

    async def _listen(self, tls: ssl.SSLContext | None, *, any_port: bool) -> asyncio.Server:
        for port in (self.place.port, 0) if any_port and self.place.port else (self.place.port,):
            try:
                return await asyncio.start_server(self._meet, self.place.host, port, ssl=tls)
            except OSError as error:
                wrong = error
        raise InputError(f"cannot listen on {self.place.address}: {wrong.strerror or wrong}")

    def _started(self, number: int, machine: str) -> None:
        """Note that a job has started, in the thread of the grid."""
        self._starts.append((number, machine))
        if len(self._starts) == 1:
            with suppress(RuntimeError):  # the service is closed
                self._loop.call_soon_threadsafe(self._loop.call_later, STARTS, self._tell_starts)

    def _tell_starts(self) -> None:
        """Tell clients of their jobs that have started and not ended."""
        starts = {}
        while self._starts:
            number, machine = self._starts.popleft()
            starts[number] = machine
        for client in self._clients:
            client.tell_starts(starts)

    def close(self) -> None:
        """Stop listening and cut the connections; the grid goes on."""
        self.grid.tell_start = None
        self._wait(self._close())
        self._stop()

    async def _close(self) -> None:
        self._server.close()
        for client in list(self._clients):
            client.writer.transport.abort()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _wait(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends."""
        keep_alive(writer)
        try:
            async with asyncio.timeout(GREETING):
                greeting = (await receive(reader, MOST_GREETING)).words
            token = str(greeting.get("token", "")).encode()
            if not hmac.compare_digest(token, self.place.token.encode()):
                writer.write(Message({"refused": "the token is wrong"}).pack())
                await writer.drain()
                return
            client = _Client(self.grid, writer, str(greeting.get("client", ""))[:200], self._pool)
            self._clients.add(client)
            try:
                await client.serve(reader)
            finally:
                self._clients.discard(client)
        except (ConnectionError, TimeoutError, ssl.SSLError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()


class _Client:
    """A connection of a client whose token was right."""

    def __init__(
        self, grid: ServedGrid, writer: asyncio.StreamWriter, name: str, pool: ThreadPoolExecutor
    ) -> None:
        self.grid, self.writer, self.name, self._pool = grid, writer, name, pool
        self._loop = asyncio.get_running_loop()
        self._ends: asyncio.Queue[JobFuture | int] = asyncio.Queue()
        """Jobs that have ended, of which the client is not told yet."""
        self._watched: set[int] = set()
        """Jobs of whose ends the client is still to be told."""

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Welcome the client, and answer it until the connection ends."""
        origin = await self._in_thread(lambda: self.grid._in_loop(self._origin))
        words = {"welcome": True, "machines": self.grid.mapper.executor.machines}
        self._say({**words, "journal": origin})
        tasks = {asyncio.create_task(self._tell_ends())}
        try:
            while True:
                message = await receive(reader)
                if message.words.get("verb") == "operate":  # it may take long
                    task = asyncio.create_task(self._answer(message))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                else:
                    await self._answer(message)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _origin(self) -> float:
        return float(self.grid.journal.told("origin")["origin"])

    async def _in_thread(self, what: Callable[[], Any]) -> Any:
        return await self._loop.run_in_executor(self._pool, what)

    def _say(self, words: dict[str, Any], content: bytes = b"") -> None:
        if not self.writer.is_closing():
            self.writer.write(Message(words, content).pack())

    async def _answer(self, message: Message) -> None:
        """Do what a message asks for, and answer."""
        number, verb = message.words.get("id"), str(message.words.get("verb"))
        try:
            if verb not in VERBS:
                raise InputError(f"a served grid cannot {verb[:50]!r}")
            found = await self._in_thread(lambda: VERBS[verb](self, message))
        except Exception as error:
            if not isinstance(error, GridwrightError):
                error = InputError(f"the grid does not understand this {verb}: {error!r}")
            told, content = told_error(error)
            self._say({"id": number, **told}, content)
        else:
            futures = found.pop("watched", ())
            self._say({"id": number, "answer": found})
            self._watched |= {future.number for future in futures}
            for future in futures:
                future.add_done_callback(self._ended)
            running = [each for each in futures if each.running()]
            self.tell_starts({each.number: each.machine for each in running})
        await self.writer.drain()

    def tell_starts(self, starts: Mapping[int, str]) -> None:
        """Tell the client where its jobs have started, unless it reads slowly."""
        own = [each for each in starts.items() if each[0] in self._watched]
        if own and self.writer.transport.get_write_buffer_size() < UNREAD:
            self._say({"started": own})

    def _ended(self, done: Any) -> None:
        """Note that a job has ended; a client that is behind is told later from the journal."""
        word = done if self._ends.qsize() < BEHIND else done.number
        with suppress(RuntimeError):  # the service is closed
            self._loop.call_soon_threadsafe(self._ends.put_nowait, word)

    async def _tell_ends(self) -> None:
        """Tell the client how its jobs have ended, as fast as it reads."""
        try:
            while True:
                word = await self._ends.get()
                if isinstance(word, int):
                    word = await self._in_thread(partial(self.grid.future, word))
                self._tell(word)
                del word
                await self.writer.drain()
        except Exception:  # the client connects again and asks for what it missed
            self.writer.transport.abort()

    def _tell(self, done: JobFuture) -> None:
        words: dict[str, Any] = {"ended": done.number, "machine": done.machine}
        self._watched.discard(done.number)
        try:
            content = done.result()
        except CancelledError:
            self._say({**words, "stage": "cancelled"})
        except BaseException as error:
            told, content = told_error(error)
            self._say({**words, "stage": "failed", **told}, content)
        else:
            self._say({**words, "stage": "finished"}, content)

    # what clients ask for, in a thread

    def submit(self, message: Message) -> dict[str, Any]:
        words = message.words
        works = split(message.content, [int(size) for size, _, _ in words["calls"]])
        calls = [
            Call(work, tuple(map(int, needs)), str(key))
            for work, (_, key, needs) in zip(works, words["calls"], strict=True)
        ]
        chosen = Chosen(**words["options"], client=self.name, request=str(words["request"]))
        sent = self.grid._send(str(words["name"]), calls, chosen)
        sent.wait()
        return {"jobs": [each.number for each in sent.futures], "watched": sent.futures}

    def template(self, message: Message) -> dict[str, Any]:
        """Return the name and latency of the template of a chain; None if there are none."""
        name, stages = str(message.words["name"]), int(message.words["stages"])
        return {"template": self.grid._template(name, stages)}

    def watch(self, message: Message) -> dict[str, Any]:
        """Tell of the ends of some jobs, by number or key; the number of an unknown one is None."""
        futures: list[JobFuture | None] = []
        for each in message.words["jobs"]:
            try:
                futures.append(self.grid.future(each))
            except InputError:
                futures.append(None)
        numbers = [None if each is None else each.number for each in futures]
        return {"jobs": numbers, "watched": [each for each in futures if each is not None]}

    def cancel(self, message: Message) -> dict[str, Any]:
        """Cancel jobs: all of these, or those that wait."""
        grid, numbers = self.grid, [int(each) for each in message.words["jobs"]]
        if message.words.get("waiting"):
            waits = grid.mapper.is_waiting
            numbers = grid._in_loop(lambda: [each for each in numbers if waits(each)])
        return {"cancelled": [grid.cancel(each) for each in numbers]}

    def status(self, message: Message) -> dict[str, Any]:
        return self.grid.status()

    def statistics(self, message: Message) -> dict[str, Any]:
        return self.grid.statistics(message.words.get("within", ())).as_json()

    def machines(self, message: Message) -> dict[str, Any]:
        return {"machines": [each._asdict() for each in self.grid._read(machine_states)]}

    def jobs(self, message: Message) -> dict[str, Any]:
        """Return a page of jobs."""
        return self.grid._read(lambda journal: _page(journal, message.words["page"]))

    def operate(self, message: Message) -> dict[str, Any]:
        """Do something to a machine."""
        verb, machine = message.words["do"], message.words["machine"]
        if verb not in ("pause", "resume", "drain", "kill", "ping"):
            raise InputError(f"a client cannot {verb!r} a machine")
        return {"did": getattr(self.grid, verb)(machine)}


VERBS: dict[str, Callable[[_Client, Message], dict[str, Any]]] = {
    each.__name__: each
    for each in (
        _Client.submit,
        _Client.template,
        _Client.watch,
        _Client.cancel,
        _Client.status,
        _Client.statistics,
        _Client.machines,
        _Client.jobs,
        _Client.operate,
    )
}


def _page(journal: Journal, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of jobs, with their keys and clients."""
    page = job_page(journal, **asked)
    numbers = [each["number"] for each in page.jobs]
    which = f"FROM job WHERE number IN ({', '.join('?' * len(numbers))})"
    rows = journal.select(f"number, key, json_extract(options, '$.client') {which}", numbers)
    about = {number: {"key": key or "", "client": name or ""} for number, key, name in rows}
    return {"total": page.total, "jobs": [{**each, **about[each["number"]]} for each in page.jobs]}


def serve(
    grid: ServedGrid,
    name: str,
    host: str = "127.0.0.1",
    port: int = 0,
    cert: str = "",
    key: str = "",
) -> Service:
    """Serve a grid under a name; clients of this user find it with `connect`.

    A name that was served before keeps its token, and its port if that is free.
    """
    if bool(cert) != bool(key):
        raise InputError("TLS needs both a certificate and its key")
    if not cert and not is_loopback(host):
        raise InputError(
            f"{host} can be reached by others, who could run anything here: "
            "give a certificate and its key for TLS, or stay on 127.0.0.1"
        )
    tls = None
    if cert:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            tls.load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{cert} and {key} are no certificate and key: {error}") from None
    known = known_place(name)
    token = known.token if known is not None else secrets.token_urlsafe(24)
    kept = known.port if known is not None and not port and known.host == host else 0
    ca_file = str(Path(cert).resolve()) if cert else ""
    place = Place(host, port or kept, token, bool(cert), ca_file)
    service = Service(grid, place, tls, any_port=not port)
    try:
        service.place.write(name)
    except OSError as error:
        service.close()
        raise InputError(f"the place of grid {name} cannot be written: {error}") from None
    return service


def wait_for_end(stop: Event, broken: Callable[[], str]) -> None:
    """Wait until a service is told to stop, or its grid has stopped by itself."""
    while not stop.wait(0.5) and not broken():
        pass
