"""Virtual time: an event loop whose clock jumps to whatever is next."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["VirtualLoop", "run_apart", "run_virtually"]

T = TypeVar("T")


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

    def run() -> T:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(coroutine)

    return run_apart(run)


def run_apart(run: Callable[[], T], stop: Callable[[], object] = bool) -> T:
    """Call what runs an event loop, in a thread of its own where a loop runs already: a notebook.

    ``stop`` is called when Ctrl-C is pressed meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(run)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop()
            raise
