"""The result of a job to come."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from threading import get_ident
from typing import Any

from .mapper import JobFailedError

__all__ = ["Answers", "JobFuture"]


class JobFuture(Future[Any]):
    """The result of a job to come; its ``number`` is that of the journal."""

    def __init__(self, number: int, take_back: Callable[[int], bool]) -> None:
        super().__init__()
        self.number, self._take_back = number, take_back

    def cancel(self) -> bool:
        """Take the job back, whether it waits or runs; False if it has ended."""
        taken = not self.done() and self._take_back(self.number) and super().cancel()
        return taken and not self.set_running_or_notify_cancel()  # so that who waits is told


class Answers:
    """A thread that gives results to those who wait for them.

    What they do with them, in callbacks too, holds up nobody else, and may ask things of the grid.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "gridwright answers", self._begin)
        self._own = 0

    def to(self, future: JobFuture) -> Raw:
        """Return what takes the pickled result that settles a future."""
        return Raw(self, future)

    def settle(self, future: JobFuture, result: bytes, error: Exception | None) -> None:
        """Have a future settled."""
        self._pool.submit(_settle, future, result, error)

    def give(self) -> None:
        """Wait until all results that are known have been given, unless a callback asks."""
        if get_ident() != self._own:
            self._pool.submit(int).result()

    def close(self) -> None:
        """Give the last ones, and wait for that, unless a callback asks."""
        self._pool.shutdown(wait=get_ident() != self._own)

    def _begin(self) -> None:
        self._own = get_ident()


class Raw:
    """Takes a job's pickled result. There is one for every job that waits, so it is small."""

    __slots__ = ("answers", "future")

    def __init__(self, answers: Answers, future: JobFuture) -> None:
        self.answers, self.future = answers, future

    def done(self) -> bool:
        """Tell whether nobody waits for the result any more."""
        return self.future.done()

    def set_result(self, result: bytes, /) -> None:
        """Take the pickled result."""
        self.answers.settle(self.future, result, None)

    def set_exception(self, error: Exception, /) -> None:
        """Take the reason why there is none."""
        self.answers.settle(self.future, b"", error)


def _settle(future: JobFuture, raw: bytes, error: Exception | None) -> None:
    try:
        result = None if error is not None else pickle.loads(raw)
    except Exception as wrong:
        error = JobFailedError(f"the result cannot be unpickled: {wrong}")
    with suppress(InvalidStateError):  # it was taken back meanwhile
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
