"""The connection to a Dask scheduler, which is made again when it is lost."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from ...model import InputError
from ...model.record import Record
from . import dask_internals as internals

LOOK = 0.3
"""Seconds between looks at which workers are there."""
ANSWER = 2.0
"""Seconds in which a worker must answer."""
ECHO = 0.05
"""Seconds in which a scheduler should have said what we say."""


class Connection:
    """A connection, and what is done while there is one.

    Everything happens in the event loop that it is opened in.

    Parameters
    ----------
    address
        Of the scheduler.
    security
        As Dask has it.
    topic
        What workers say things on.
    hear
        Told of every word that is said there.
    look
        Told often, and when one comes, which workers there are.
    lost
        Told of a worker that has left, or of all (None) when the scheduler is gone, and whether
        the worker died: it left without a word to the scheduler.
    """

    def __init__(
        self,
        address: str,
        security: Any,
        topic: str,
        hear: Callable[[list[Any]], None],
        look: Callable[[Workers], None],
        lost: Callable[[str | None, bool], None],
    ) -> None:
        self.address, self.security = address, security
        self.topic, self.hear, self.look, self.lost = topic, hear, look, lost
        self.client: Any = None
        self.closing = False
        self.tasks: set[asyncio.Task[Any]] = set()
        self._scheduler = ""
        self._changed, self._echoed = asyncio.Event(), asyncio.Event()

    async def open(self) -> None:
        """Connect, and stay connected."""
        try:
            async with asyncio.timeout(2 * PATIENCE):
                await self._connect()
        except (OSError, ValueError, TypeError) as error:
            await self._leave()
            raise unreachable(self.address, error) from None
        self.spawn(self._stay())

    async def close(self) -> None:
        """Leave, whatever state things are in."""
        self.closing = True
        await _end(self.tasks)
        await self._leave()

    def spawn(self, what: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Have something done on the side, until the link is closed."""
        task = asyncio.create_task(what)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def submit(self, key: str, worker: str, function: Any, *arguments: Any) -> Any:
        """Submit a task that runs once, on one worker, and nowhere else."""
        options = {"allow_other_workers": False, "pure": False, "retries": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # large arguments are no reason to lecture
            return self.client.submit(function, *arguments, key=key, workers=[worker], **options)

    async def ask(
        self,
        worker: str,
        function: Callable[..., Any],
        *arguments: Any,
        patience: float | None = None,
    ) -> Any:
        """Have a worker call a function at once."""
        if self.client is None:
            raise ConnectionError("the scheduler is gone")
        async with asyncio.timeout(patience or ANSWER):
            said = await self.client.run(function, *arguments, workers=[worker])
        return said[worker]

    async def _connect(self) -> None:
        from distributed import Client

        options = {"asynchronous": True, "set_as_default": False, "name": "gridwright"}
        client = Client(self.address, security=self.security, timeout=PATIENCE, **options)
        self.client = client
        await client
        client.subscribe_topic("all", self._hear_all)
        client.subscribe_topic(self.topic, self._hear)
        self._echoed.clear()
        while not self._echoed.is_set():  # until we are heard, what is said is not heard by us
            await client.log_event(self.topic, [])
            with suppress(TimeoutError):
                async with asyncio.timeout(ECHO):
                    await self._echoed.wait()
        self._scheduler, workers = await internals.identity(client.scheduler)
        self.look(workers)

    async def _stay(self) -> None:
        """Look at the workers; when the scheduler is gone, wait until one is there again."""
        while not self.closing:
            with suppress(Exception):  # whatever it is, all that helps is to connect again
                if self.client is None:
                    await probe(self.address)
                    await self._connect()
                await self._watch()
            self.lost(None, False)
            await self._leave()
            await asyncio.sleep(LOOK)

    async def _watch(self) -> None:
        """Look which workers are there until the connection is lost."""
        client = self.client
        while (
            client.status == "running" and not self.closing
        ):  # Dask notes the end of the line at once
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._changed.wait()
            self._changed.clear()
            asking = asyncio.ensure_future(internals.identity(client.scheduler))
            try:
                async with asyncio.timeout(PATIENCE):
                    while not asking.done() and client.status == "running":
                        await asyncio.wait([asking], timeout=LOOK)
            finally:
                asking.cancel()
            if not asking.done() or asking.result().scheduler != self._scheduler:
                return  # gone, or another scheduler at the same address
            self.look(asking.result().workers)

    def _hear(self, event: tuple[float, Any]) -> None:
        """Hear what workers say, and our own echo, which is nothing."""
        if event[1]:
            self.hear(event[1])
        else:
            self._echoed.set()

    def _hear_all(self, event: tuple[float, Any]) -> None:
        """Hear of workers that come and go, from the scheduler itself."""
        if (left := internals.departure(event[1])) is not None:
            self.lost(*left)
        elif internals.is_arrival(event[1]):
            self._changed.set()

    async def _leave(self) -> None:
        """Close the client; if this is itself cut short, whoever leaves next does it."""
        if (client := self.client) is None:
            return
        with suppress(Exception):
            for topic in (self.topic, "all"):
                client.unsubscribe_topic(topic)
        # either may be about to connect again, and would then think itself open
        await _end(internals.client_tasks(client))
        with suppress(Exception):
            async with asyncio.timeout(ANSWER):
                await internals.close_at_once(client)
        self.client = None


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks; Dask swallows being cancelled here and there."""
    for _ in range(3):
        if going := {task for task in tasks if not task.done()}:
            for task in going:
                task.cancel()
            await asyncio.wait(going, timeout=ANSWER)


PATIENCE = 8.0
"""Seconds in which a scheduler must answer, and may be without workers."""
Workers = dict[str, str]
"""Names of workers by their addresses."""


def check_address(address: str) -> tuple[str, str, int]:
    """Return the protocol, host and port of an address.

    >>> check_address("tcp://127.0.0.1:8786")
    ('tcp', '127.0.0.1', 8786)
    """
    place = re.fullmatch(r"(tcp|tls)://(\[.+\]|[^:/\s]+):(\d{1,5})", address)
    if place is None or int(place[3]) > 65535:
        raise InputError(
            f"{address!r} is not the address of a cluster; expected tcp://HOST:PORT or tls://HOST:PORT"
        )
    return place[1], place[2].strip("[]"), int(place[3])


class Tls(Record):
    """The files of a TLS credential: the authority to trust, our certificate and our key."""

    ca_file: str
    cert: str
    key: str

    def options(self) -> dict[str, str]:
        """Return the options of Dask for every part of a cluster."""
        found = {"tls_ca_file": self.ca_file}
        for part in ("scheduler", "worker", "client"):
            found |= {f"tls_{part}_cert": self.cert, f"tls_{part}_key": self.key}
        return found


def security_of(address: str, security: Any) -> Any:
    """Make Dask's security of TLS options; refuse them for an address that is not encrypted."""
    try:
        from distributed import Security

        internals.check()
    except internals.UnsupportedDaskError as error:
        raise InputError(str(error)) from None
    except ImportError:
        raise InputError("a cluster needs Dask: pip install 'gridwright[grid]'") from None
    quiet()
    encrypted = check_address(address)[0] == "tls"
    if encrypted and not security:
        raise InputError(
            f"{address} asks for TLS: give security=dict(tls_ca_file=…, tls_client_cert=…, "
            "tls_client_key=…)"
        )
    if not encrypted and _has_files(security):
        raise InputError(
            f"TLS files are given, but {address} is not encrypted: use tls://{address[6:]}"
        )
    if not isinstance(security, Mapping):
        return security or Security()
    try:
        found = Security(require_encryption=encrypted, **security)
        internals.connection_arguments(found)  # reads the files
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"these TLS options cannot be used: {error}") from None
    return found


def _has_files(security: Any) -> bool:
    """Tell whether TLS options name any file of a client."""
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    if isinstance(security, Mapping):
        return any(security.get(name) for name in names)
    return any(getattr(security, name, None) for name in names)


def quiet() -> None:
    """Let Dask log nothing: what is wrong is told in one line."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def find_workers(address: str, security: Any, at_least: int) -> Workers:
    """Ask a scheduler which workers it has; wait a while until there are some."""
    with ThreadPoolExecutor(1) as thread:  # whoever calls may have an event loop of their own
        return thread.submit(asyncio.run, _ask(address, security, at_least)).result()


async def _ask(address: str, security: Any, at_least: int) -> Workers:
    deadline = time.monotonic() + PATIENCE
    scheduler = internals.open_rpc(address, security, PATIENCE)
    try:
        async with asyncio.timeout(PATIENCE + 1):
            while True:
                workers = (await internals.identity(scheduler)).workers
                if len(workers) >= at_least or time.monotonic() > deadline - 0.1:
                    return workers
                await asyncio.sleep(0.1)
    except (OSError, ValueError, TypeError) as error:
        raise unreachable(address, error) from None
    finally:
        await scheduler.close_rpc()


async def probe(address: str) -> None:
    """Raise OSError at once if nobody listens there; Dask would try ever less often."""
    _, host, port = check_address(address)
    async with asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection(host, port)
    writer.close()


def unreachable(address: str, error: BaseException) -> InputError:
    """Say in one line that nobody answers."""
    why = f": {error}" if str(error) else ""
    return InputError(f"no Dask scheduler answers at {address}{why}")


def choose(address: str, workers: Workers, machines: int | Sequence[str] | None) -> list[str]:
    """Return the workers to use, as they are called: all, the first few, or those named."""
    there = sorted(workers.values(), key=_natural)
    known = ", ".join(there) or "none"
    if machines is None or isinstance(machines, int):
        wanted = len(there) if machines is None else machines
        if wanted < 1 and machines is not None:
            raise InputError(f"machines is {machines}; expected at least 1")
        if wanted > len(there) or not there:
            raise InputError(
                f"the cluster at {address} has {len(there)} workers ({known}); expected at least "
                f"{max(1, wanted)}: gridwright dask workers --on {address} adds one"
            )
        return there[:wanted]
    chosen = [str(machine) for machine in machines]
    if not chosen:
        raise InputError("machines names no worker; expected at least 1")
    for name in chosen:
        if name not in there and name not in workers:
            raise InputError(f"no worker {name!r} at {address}; there are {known}")
    if len({workers.get(name, name) for name in chosen}) < len(chosen):
        raise InputError(f"machines names a worker twice: {', '.join(chosen)}")
    return chosen


def _natural(name: str) -> list[tuple[int, str]]:
    """Order names as people do: 2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
