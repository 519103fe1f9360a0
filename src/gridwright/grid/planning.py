"""Planning beside the event loop: a large plan is made in a thread while the old one holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from .book import Book

__all__ = ["Planned", "Planning"]

SMALL = 1000
"""Size of a planning problem, about 20 microseconds each, that is solved within a turn."""


class Planned(NamedTuple):
    """A plan that was made, or the error that came of it."""

    plan: Future[Any]


class Planning:
    """Makes one plan at a time for a book, and tells of it in the event loop."""

    def __init__(self, book: Book, tell: Callable[[Planned], None]) -> None:
        self.book, self.tell = book, tell
        self._thread: ThreadPoolExecutor | None = None
        self._is_busy = False

    def takes_long(self) -> bool:
        """Tell whether a plan would hold up the event loop."""
        classes, groups = self.book.nominal.shape[0], len(set(self.book.group.tolist()))
        return classes * (classes + groups) ** 2 > SMALL

    def start(self) -> None:
        """Have a plan made, unless one is being made: the next start is when that is told."""
        if self._is_busy:
            return
        self._is_busy, self.book.stale = True, False
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "gridwright plans")
        loop = asyncio.get_running_loop()

        def arrive(plan: Future[Any]) -> None:
            self._is_busy = False
            self.tell(Planned(plan))

        def made(plan: Future[Any]) -> None:
            if not plan.cancelled():
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(arrive, plan)

        plan = self._thread.submit(self.book.policy.plan, self.book.situation())
        plan.add_done_callback(made)

    def close(self) -> None:
        """Wait for no plan."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
