"""A client of a grid that is served: submit jobs to it from another process."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Lock, Thread
from typing import Any, NamedTuple, Self
from uuid import uuid4

from ..model import GridClosedError, GridError, GridTimeoutError, InputError
from .future import Answers, JobFuture, Raw
from .messages import Message, Place, find_place, heard_error, keep_alive, receive
from .progress import Status, show_progress
from .submitter import Call, Chosen, Sent, Submitter

GREETING = 10.0
"""Seconds in which a served grid must answer a new client."""
AT_ONCE = 1 << 26
"""Bytes of calls that travel in one message, if there is more than one call."""
AGAIN = 0.2
"""Seconds between attempts to connect again."""
LAST = 1.0
"""Seconds to wait for callbacks when a client is closed."""


class _Asked(NamedTuple):
    """A request that has no answer yet."""

    message: Message
    answer: Future[Any]
    heard: Callable[[dict[str, Any]], Any]
    """Turns the answer into what the caller gets, before later messages are handled."""


class Client(Submitter):
    """A connection to a grid that is served; see `connect`.

    It is an executor like `Grid`. If the connection breaks, it connects again. What was submitted
    once is submitted once.
    """

    @property
    def _sends_modules(self) -> bool:
        return True

    def __init__(self, place: Place, *, client: str = "", patience: float = 30.0) -> None:
        self.place, self.patience = place, patience
        self.client = client or f"{getpass.getuser()}@{socket.gethostname()}"
        self.machines: list[str] = []
        """The names of the grid's machines."""
        self._pid, self._own = os.getpid(), uuid4().hex
        self._numbers, self._ids = count(), count()
        self._answers = Answers()
        self._pending: dict[int, JobFuture] = {}
        self._keys: dict[int, str] = {}
        """The keys of pending jobs that this client has submitted."""
        self._journal: float | None = None
        """When the journal of the grid was begun; another one has other jobs."""
        self._asked: dict[int, _Asked] = {}
        self._lock, self._is_ended = Lock(), False
        self._why = ""
        """Why it is closed, if it is."""
        self._writer: asyncio.StreamWriter | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="gridwright client", daemon=True)
        self._thread.start()
        try:
            reader = asyncio.run_coroutine_threadsafe(self._greet(), self._loop).result()
        except BaseException:
            self._end("it could not connect")
            raise
        self._living = asyncio.run_coroutine_threadsafe(self._live(reader), self._loop)

    def status(self) -> Status:
        """Return the present state of the grid: queues, machines, assumed rates, counts."""
        return Status(self._ask("status"))

    def progress(self, file: Any = None) -> None:
        """Show a bar until all jobs of this client have ended: see `Grid.progress`."""
        show_progress(self.status, lambda: not self._pending, file)

    def statistics(self, within: Sequence[float] = ()) -> dict[str, Any]:
        """Return statistics of the jobs of all clients, as `Statistics.as_json` gives them.

        ``within`` are times in seconds, as for `Grid.statistics`.
        """
        return self._ask("statistics", within=list(within))

    def machine_states(self) -> list[dict[str, Any]]:
        """Return the state of each machine."""
        return self._ask("machines")["machines"]

    def jobs(self, **page: Any) -> dict[str, Any]:
        """Return a page of the jobs of all clients; the arguments are those of `job_page`."""
        return self._ask("jobs", page=page)

    def operate(self, verb: str, machine: str) -> Any:
        """Pause, resume, drain, kill or ping a machine."""
        return self._ask("operate", do=verb, machine=machine)["did"]

    def future(self, job: str | int) -> JobFuture:
        """Return the future of a job of any client, by its key or number."""

        def heard(answer: dict[str, Any]) -> JobFuture:
            if answer["jobs"][0] is None:
                what = f"key {job!r}" if isinstance(job, str) else f"number {job}"
                raise InputError(f"the grid has no job with {what}")
            return self._future(answer["jobs"][0], job if isinstance(job, str) else "")

        found: JobFuture = self._request("watch", heard, jobs=[job]).result()
        return found

    def result(self, job: str | int, timeout: float | None = None) -> Any:
        """Return the result of a job of any client, by its key or number."""
        return self.future(job).result(timeout)

    def cancel(self, number: int) -> bool:
        """Cancel a job that waits or runs; return False if it has ended."""
        return bool(self._ask("cancel", jobs=[number])["cancelled"][0])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the jobs of this client and close the connection; the grid goes on.

        Without ``wait`` the connection is closed at once, and the jobs go on.
        """
        if self._pid != os.getpid() or self._is_ended:
            return
        if cancel_futures and self._keys:
            self._ask("cancel", jobs=list(self._keys), waiting=True)
        if wait:
            _wait_for(list(self._pending.values()))
        self.close()

    def close(self) -> None:
        """Close the connection; the jobs of this client go on."""
        if self._pid == os.getpid():
            self._end("the client is closed")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the jobs of this client; after an exception, close at once."""
        self.shutdown(wait=kind is None)

    def __enter__(self) -> Self:
        return self

    # submitting

    def _owns(self, future: JobFuture) -> bool:
        return future.is_of(self._answers)

    def _send(self, name: str, calls: Sequence[Call], chosen: Chosen) -> Sent:
        """Submit calls; each has a key, so that one that is sent twice runs once."""
        options = {
            key: getattr(chosen, key)
            for key in ("task_class", "retries", "timeout", "priority", "machine")
        }
        if chosen.deadline is not None:
            options["deadline"] = chosen.deadline
        if chosen.stage:
            options |= {"stage": chosen.stage, "chain": chosen.chain}
        keys = [call.key or f"~{self._own}:{next(self._numbers)}" for call in calls]
        words = [
            [len(call.work), key, list(call.needs)] for call, key in zip(calls, keys, strict=True)
        ]

        def heard(answer: dict[str, Any], keys: Sequence[str]) -> list[JobFuture]:
            self._keys |= zip(answer["jobs"], keys, strict=True)
            return [self._future(*each) for each in zip(answer["jobs"], keys, strict=True)]

        futures: list[JobFuture] = []
        begin = 0
        while begin < len(calls):
            end, size = begin + 1, len(calls[begin].work)
            while end < len(calls) and size + len(calls[end].work) <= AT_ONCE:
                size += len(calls[end].work)
                end += 1
            content = b"".join(call.work for call in calls[begin:end])
            about: dict[str, Any] = {"name": name, "options": options, "calls": words[begin:end]}
            about["request"] = f"{self._own}:{next(self._numbers)}"
            some = partial(heard, keys=keys[begin:end])
            futures += self._request("submit", some, content, **about).result()
            begin = end
        return Sent(futures, lambda: None)

    def _template(self, name: str, stages: int) -> tuple[str, float] | None:
        found = self._ask("template", name=name, stages=stages)["template"]
        return None if found is None else (found[0], found[1])

    def _future(self, number: int, key: str) -> JobFuture:
        """Return the future of a job of which the grid will tell; in the thread of the loop."""
        if (known := self._pending.get(number)) is not None:
            return known
        future = JobFuture(number, self.cancel, self._answers, "" if key[:1] == "~" else key)
        self._pending[number] = future
        return future

    # asking

    def _ask(self, verb: str, **words: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._request(verb, lambda answer: answer, **words).result()
        return found

    def _request(
        self, verb: str, heard: Callable[[dict[str, Any]], Any], content: bytes = b"", **words: Any
    ) -> Future[Any]:
        """Ask the grid for something, and again if the connection breaks before its answer."""
        if self._pid != os.getpid():
            raise GridClosedError("this process is a fork: the client belongs to its parent")
        answer: Future[Any] = Future()
        with self._lock:
            if self._why:
                raise GridClosedError(self._why)
            number = next(self._ids)
            asked = _Asked(Message({"id": number, "verb": verb, **words}, content), answer, heard)
            self._loop.call_soon_threadsafe(self._say, number, asked)
        return answer

    def _say(self, number: int, asked: _Asked) -> None:
        if self._why:
            if asked.answer.set_running_or_notify_cancel():
                asked.answer.set_exception(GridClosedError(self._why))
            return
        self._asked[number] = asked
        if self._writer is not None:
            self._writer.write(asked.message.pack())

    # the connection, in the thread of the loop

    async def _greet(self) -> asyncio.StreamReader:
        """Connect and show the token."""
        try:
            async with asyncio.timeout(GREETING):
                reader, writer = await asyncio.open_connection(
                    self.place.host, self.place.port, ssl=self.place.tls()
                )
                keep_alive(writer)
                writer.write(Message({"token": self.place.token, "client": self.client}).pack())
                said = (await receive(reader)).words
        except ssl.SSLError as error:
            raise InputError(f"{self.place.address} cannot be trusted: {error}") from None
        except TimeoutError:
            raise GridTimeoutError(f"{self.place.address} does not answer") from None
        except OSError as error:
            raise GridError(f"no grid answers at {self.place.address}: {error}") from None
        if "refused" in said:
            self._writer = writer
            await self._hang_up()
            raise InputError(f"{self.place.address} refused: {said['refused']}")
        self._writer = writer
        self.machines = list(said.get("machines", ()))
        if self._journal not in (None, said.get("journal")):
            for number in [each for each in self._pending if each not in self._keys]:
                self._lose(number)
        self._journal = said.get("journal")
        return reader

    async def _live(self, reader: asyncio.StreamReader) -> None:
        """Handle messages; connect again when the connection breaks."""
        while True:
            with suppress(ConnectionError, OSError, ssl.SSLError):
                while True:
                    self._hear(await receive(reader))
            await self._hang_up()
            end = self._loop.time() + self.patience
            while self._writer is None:
                await asyncio.sleep(AGAIN)
                try:
                    reader = await self._greet()
                except (GridError, InputError) as error:
                    if self._loop.time() > end or isinstance(error, InputError):
                        self._give_up(f"the connection was lost: {error}")
                        return
            for number, asked in list(self._asked.items()):
                self._say(number, asked)
            if numbers := list(self._pending):
                jobs = [self._keys.get(each, each) for each in numbers]
                number = next(self._ids)
                watch = Message({"id": number, "verb": "watch", "jobs": jobs})
                self._say(number, _Asked(watch, Future(), partial(self._found_again, numbers)))

    def _found_again(self, numbers: Sequence[int], answer: dict[str, Any]) -> None:
        """Note which of the pending jobs a grid knows that was connected again."""
        for old, new in zip(numbers, answer["jobs"], strict=True):
            if new is None:
                self._lose(old)
            elif new != old and (future := self._pending.pop(old, None)) is not None:
                future.number = new
                self._keys[new] = self._keys.pop(old, "")
                self._pending.setdefault(new, future)

    def _lose(self, number: int) -> None:
        """Settle the future of a job that the grid does not know any more."""
        self._keys.pop(number, None)
        if (future := self._pending.pop(number, None)) is not None:
            words = f"the grid at {self.place.address} does not know job {number} any more"
            self._answers.settle(future, b"", GridError(words))

    async def _hang_up(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.transport.abort()
            with suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    def _hear(self, message: Message) -> None:
        words, content = message
        if "ended" in words:
            self._ended(words, content)
            return
        if "started" in words:
            self._started(words["started"])
            return
        asked = self._asked.pop(words.get("id", -1), None)
        if asked is None or not asked.answer.set_running_or_notify_cancel():
            return
        if "answer" in words:
            try:
                asked.answer.set_result(asked.heard(words["answer"]))
            except InputError as error:
                asked.answer.set_exception(error)
        else:
            asked.answer.set_exception(heard_error(words, content))

    def _started(self, starts: Sequence[tuple[int, str]]) -> None:
        for number, machine in starts:
            if (future := self._pending.get(number)) is not None:
                future.machine = str(machine)

    def _ended(self, words: dict[str, Any], content: bytes) -> None:
        future = self._pending.pop(words["ended"], None)
        self._keys.pop(words["ended"], None)
        if future is None:
            return
        future.machine = str(words.get("machine", ""))
        raw = Raw(self._answers, future)
        if words["stage"] == "cancelled":
            raw.cancel()
        elif words["stage"] == "failed":
            raw.set_exception(heard_error(words, content))
        else:
            raw.set_result(content)

    def _give_up(self, why: str) -> None:
        """Close with an error for whoever waits."""
        with self._lock:
            self._why = self._why or why
        for asked in self._asked.values():
            if asked.answer.set_running_or_notify_cancel():
                asked.answer.set_exception(GridClosedError(why))
        for number, future in self._pending.items():
            words = f"{why}; job {number} goes on, and result({number}) has its result later"
            self._answers.settle(future, b"", GridClosedError(words))
        self._asked.clear()
        self._pending.clear()
        self._keys.clear()

    def _end(self, why: str) -> None:
        async def close() -> None:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            await self._hang_up()
            self._give_up(why)

        with self._lock:
            ended, self._is_ended = self._is_ended, True
        if ended:
            return
        asyncio.run_coroutine_threadsafe(close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._answers.close(LAST)


def _wait_for(futures: Sequence[JobFuture]) -> None:
    wait(futures)


def connect(
    grid: str = "grid",
    *,
    token: str = "",
    ca_file: str = "",
    client: str = "",
    patience: float = 30.0,
) -> Client:
    """Connect to a grid that ``gridwright grid serve`` runs; the result is an executor.

    Parameters
    ----------
    grid
        The name of a grid that is served on this computer, or ``tls://HOST:PORT``.
    token
        The token of a grid with an address; by default the environment variable
        ``GRIDWRIGHT_TOKEN``.
    ca_file
        The certificate of who signed the certificate of the grid.
    client
        The name of this client; clients take turns. By default the user and the computer.
    patience
        Seconds for which a client tries to connect again when the connection breaks.
    """
    return Client(find_place(grid, token, ca_file), client=client, patience=patience)
