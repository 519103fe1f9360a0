"""The connection to a Dask scheduler, which is made again when it is lost."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from .scheduler import PATIENCE, Workers, names, probe, unreachable

__all__ = ["ANSWER", "LOOK", "Link"]

LOOK = 0.3
"""Seconds between looks at which workers are there."""
ANSWER = 2.0
"""Seconds in which a worker must answer."""
ECHO = 0.05
"""Seconds in which a scheduler should have said what we say."""


class Link:
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
        identity = await client.scheduler.identity(n_workers=-1)
        self._scheduler = identity["id"]
        self.look(names(identity))

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
            asking = asyncio.ensure_future(client.scheduler.identity(n_workers=-1))
            try:
                async with asyncio.timeout(PATIENCE):
                    while not asking.done() and client.status == "running":
                        await asyncio.wait([asking], timeout=LOOK)
            finally:
                asking.cancel()
            if not asking.done() or asking.result()["id"] != self._scheduler:
                return  # gone, or another scheduler at the same address
            self.look(names(asking.result()))

    def _hear(self, event: tuple[float, Any]) -> None:
        """Hear what workers say, and our own echo, which is nothing."""
        if event[1]:
            self.hear(event[1])
        else:
            self._echoed.set()

    def _hear_all(self, event: tuple[float, Any]) -> None:
        """Hear of workers that come and go, from the scheduler itself."""
        word = event[1]
        if word.get("action") == "remove-worker":
            self.lost(word["worker"], not word.get("expected", True))
        elif word.get("action") == "add-worker":
            self._changed.set()

    async def _leave(self) -> None:
        """Close the client; if this is itself cut short, whoever leaves next does it."""
        if (client := self.client) is None:
            return
        with suppress(Exception):
            for topic in (self.topic, "all"):
                client.unsubscribe_topic(topic)
        # either may be about to connect again, and would then think itself open
        making = [getattr(client, each, None) for each in ("_started", "_handle_report_task")]
        await _end({task for task in making if isinstance(task, asyncio.Task)})
        with suppress(Exception):
            async with asyncio.timeout(ANSWER):
                # as if something had gone wrong: it waits for nobody then
                await client.__aexit__(ConnectionError, None, None)
        self.client = None


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks; Dask swallows being cancelled here and there."""
    for _ in range(3):
        if going := {task for task in tasks if not task.done()}:
            for task in going:
                task.cancel()
            await asyncio.wait(going, timeout=ANSWER)
