"""Virtual time: an event loop whose clock jumps to whatever is next."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import Any, TypeVar

__all__ = ["Stop", "VirtualLoop", "run_apart", "run_virtually"]

T = TypeVar("T")
GLANCE = 0.2
"""Seconds between looks whether Ctrl-C was pressed."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time.

    Its clock starts at 0 and jumps to the next timer as soon as there is nothing else to do.
    """

    def __init__(self) -> None:
        self._virtual = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        """Return the virtual time."""
        return self._virtual

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual += seconds


class _Jump(selectors.DefaultSelector):
    """A selector that lets time pass in place of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("nothing will ever happen: everybody waits, and no timer is set")
        self._loop.pass_time(max(timeout, 0.0))
        return super().select(0)


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time.

    >>> async def hour():
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtually(hour())
    3600.0
    """
    stop = Stop()

    async def until_stopped() -> T:
        stop.cancels(asyncio.current_task())
        return await coroutine

    def run() -> T:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(until_stopped())

    return run_apart(run, stop)


class Stop:
    """A call that cancels a task, from another thread too, and before there is a task."""

    def __init__(self) -> None:
        self.wanted = Event()
        self._cancel: Callable[[], object] = bool

    def cancels(self, task: asyncio.Task[Any] | None) -> None:
        """Say which task is to be cancelled, in its loop; at once if that was wanted before."""
        assert task is not None
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self.wanted.is_set():
            task.cancel()

    def __call__(self) -> None:
        """Cancel the task, now or as soon as it is there."""
        self.wanted.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._cancel()


def run_apart(run: Callable[[], T], stop: Callable[[], object] = bool) -> T:
    """Call what runs an event loop, in a thread of its own where a loop runs already: a notebook.

    ``stop`` is called when Ctrl-C is pressed meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(bool).result()  # one that is interrupted as it starts is not waited for
        try:
            future = thread.submit(run)
            while not future.done():  # a key pressed just before a wait is heard after it
                wait([future], GLANCE)
            return future.result()
        except KeyboardInterrupt:
            stop()
            raise
