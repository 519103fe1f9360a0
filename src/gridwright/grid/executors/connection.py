"""Connect to a Dask scheduler, and connect again when the connection is lost."""

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
"""Seconds between checks of the list of workers."""
ANSWER = 2.0
"""Seconds in which a worker must answer."""
ECHO = 0.05
"""Seconds in which a scheduler should echo a message of ours."""


class Connection:
    """A connection to a scheduler, in the event loop in which it is opened.

    ``hear`` gets every message of workers on the topic. ``look`` gets the workers, often and when
    one comes. ``lost`` gets a worker that has left, or None when the scheduler is gone, and whether
    the worker died, that is, left without notice.
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
        """End all tasks and disconnect."""
        self.closing = True
        await _end(self.tasks)
        await self._leave()

    def spawn(self, what: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine until the connection is closed."""
        task = asyncio.create_task(what)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def submit(self, key: str, worker: str, function: Any, *arguments: Any) -> Any:
        """Submit a task that runs once, and only on this worker."""
        options = {"allow_other_workers": False, "pure": False, "retries": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Dask warns of large arguments
            return self.client.submit(function, *arguments, key=key, workers=[worker], **options)

    async def ask(self, worker: str, function: Any, *arguments: Any, patience: float = 0.0) -> Any:
        """Call a function on a worker at once, beside its tasks."""
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
        while not self._echoed.is_set():  # before that, messages of workers do not arrive
            await client.log_event(self.topic, [])
            with suppress(TimeoutError):
                async with asyncio.timeout(ECHO):
                    await self._echoed.wait()
        self._scheduler, workers = await internals.identity(client.scheduler)
        self.look(workers)

    async def _stay(self) -> None:
        """Watch the workers; when the scheduler is gone, wait until one is there again."""
        while not self.closing:
            with suppress(Exception):  # whatever it is, connect again
                if self.client is None:
                    await probe(self.address)
                    await self._connect()
                await self._watch()
            self.lost(None, False)
            await self._leave()
            await asyncio.sleep(LOOK)

    async def _watch(self) -> None:
        """Report the workers until the connection is lost."""
        client = self.client
        while client.status == "running" and not self.closing:
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
        """Pass on a message of a worker; an empty one is our echo."""
        if event[1]:
            self.hear(event[1])
        else:
            self._echoed.set()

    def _hear_all(self, event: tuple[float, Any]) -> None:
        """Note workers that come and go, as the scheduler reports them."""
        if (left := internals.departure(event[1])) is not None:
            self.lost(*left)
        elif internals.is_arrival(event[1]):
            self._changed.set()

    async def _leave(self) -> None:
        """Close the client; if this is cancelled, the next call does it."""
        if (client := self.client) is None:
            return
        with suppress(Exception):
            for topic in (self.topic, "all"):
                client.unsubscribe_topic(topic)
        # they may be about to connect again
        await _end(internals.client_tasks(client))
        with suppress(Exception):
            async with asyncio.timeout(ANSWER):
                await internals.close_at_once(client)
        self.client = None


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks, several times because Dask sometimes ignores it."""
    for _ in range(3):
        if going := {task for task in tasks if not task.done()}:
            for task in going:
                task.cancel()
            await asyncio.wait(going, timeout=ANSWER)


PATIENCE = 8.0
"""Seconds in which a scheduler must answer and have its first workers."""
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
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    is_table = isinstance(security, Mapping)
    files = [security.get(each) if is_table else getattr(security, each, None) for each in names]
    if not encrypted and any(files):
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


def quiet() -> None:
    """Turn Dask's log off: our messages say what is wrong."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def find_workers(address: str, security: Any, at_least: int) -> Workers:
    """Return the workers of a scheduler; wait some seconds until there are enough."""
    with ThreadPoolExecutor(1) as thread:  # the caller may run an event loop
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
    """Raise OSError at once if nothing listens there; Dask would retry ever less often."""
    _, host, port = check_address(address)
    async with asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection(host, port)
    writer.close()


def unreachable(address: str, error: BaseException) -> InputError:
    """Return the error for a scheduler that does not answer."""
    why = f": {error}" if str(error) else ""
    return InputError(f"no Dask scheduler answers at {address}{why}")


def choose(address: str, workers: Workers, machines: int | Sequence[str] | None) -> list[str]:
    """Return the names of the workers to use: all, the first few, or those named."""

    def natural(name: str) -> list[tuple[int, str]]:  # 2 before 10
        parts = re.split(r"(\d+)", name)
        return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    there = sorted(workers.values(), key=natural)
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
