"""The result of a job to come, and the threads that give it to those who wait."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Condition, Lock, Semaphore, Thread, get_ident, local
from typing import Any

from ..model import JobFailedError
from .worker import cut

LOGGER = logging.getLogger(__name__)
BLOCKED = 0.01
"""Seconds after which threads that are all busy are taken to be waiting for something."""
ADDING = Lock()
"""Held for a moment while a callback is added to any future, or it is cancelled."""

Callback = Callable[[Future[Any]], Any]


class JobFuture(Future[Any]):
    """The result of a job to come; its ``number`` is that of the journal."""

    def __init__(self, number: int, take_back: Callable[[int], bool], answers: Answers) -> None:
        super().__init__()
        self.number, self._take_back, self._answers = number, take_back, answers
        self._calls: tuple[Callback, ...] | None = ()
        """Callbacks to call when it is done; None when they have been handed over."""
        self._is_cancelled = False

    def cancel(self) -> bool:
        """Take the job back, whether it waits or runs; False if it has ended."""
        return not self.done() and self._take_back(self.number) and self.mark_cancelled()

    def mark_cancelled(self) -> bool:
        """Let those who wait know that the job was taken back; False if they do."""
        with ADDING:
            first, self._is_cancelled = not self._is_cancelled, True
        return first and super().cancel() and not self.set_running_or_notify_cancel()

    def add_done_callback(self, fn: Callback) -> None:
        """Have a function called with this future when it is done, at once if it is.

        The callbacks of a future are called one after the other, in the order in which they were
        added. They may wait for other futures: the thread that calls them does nothing else.
        """
        with ADDING:
            if self._calls is not None:
                self._calls += (fn,)
                if len(self._calls) > 1:
                    return
                fn = self._hand_over
        super().add_done_callback(fn)

    def _hand_over(self, done: Future[Any]) -> None:
        with ADDING:
            calls, self._calls = self._calls or (), None
        self._answers.call(lambda: _call_all(calls, done))


def _call_all(callbacks: tuple[Callback, ...], done: Future[Any]) -> None:
    for each in callbacks:
        try:
            each(done)
        except (Exception, SystemExit):  # Ctrl-C is for whoever runs in this thread
            LOGGER.exception("a callback of %r failed", done)


class Answers:
    """Gives results to those who wait for them, in one thread, and calls callbacks in others.

    A callback may wait for other futures and ask things of the grid: it holds up nobody else.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "gridwright answers", self._begin)
        self._callbacks = _Callbacks()
        self._own = 0

    def to(self, future: JobFuture) -> Raw:
        """Return what takes the pickled result that settles a future."""
        return Raw(self, future)

    def settle(self, future: JobFuture, result: bytes, error: Exception | None) -> None:
        """Have a future settled."""
        self._pool.submit(_settle, future, result, error)

    def refuse(self, future: JobFuture, error: Exception) -> None:
        """Settle a future with an error, unless it is settled already."""
        self.settle(future, b"", error)

    def cancelled(self, future: JobFuture) -> None:
        """Settle the future of a job that was taken back."""
        self._pool.submit(future.mark_cancelled)

    def call(self, what: Callable[[], None]) -> None:
        """Call something: elsewhere, if this is the thread that gives the results."""
        if get_ident() == self._own:
            self._callbacks.put(what)
        else:
            what()

    def give(self, callbacks: float | None = 0.0) -> None:
        """Wait until all results that are known have been given.

        Also wait for their callbacks, at most so many seconds (None: as long as it takes), unless
        a callback asks.
        """
        if get_ident() != self._own:
            self._pool.submit(int).result()
            self._callbacks.wait(callbacks)

    def close(self, callbacks: float | None) -> None:
        """Give the last results, wait for their callbacks like `give`, and end the threads."""
        self._pool.shutdown(wait=get_ident() != self._own)
        self._callbacks.wait(callbacks)
        self._callbacks.close()

    def _begin(self) -> None:
        self._own = get_ident()


class _Callbacks:
    """Threads that call callbacks: one more is started whenever all of them are blocked."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._taken: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._free = Semaphore(0)
        self._threads = self._left = 0
        self._returned = Condition()
        self._local = local()

    def put(self, call: Callable[[], None]) -> None:
        """Have something called. From one thread only."""
        with self._returned:
            self._left += 1
        if not self._threads:
            self._threads = 1
            Thread(target=self._hand_out, name="gridwright callbacks", daemon=True).start()
        self._calls.put(call)

    def wait(self, seconds: float | None) -> None:
        """Wait until all calls have returned, unless one of them asks."""
        if not getattr(self._local, "own", False):
            with self._returned:
                self._returned.wait_for(lambda: not self._left, seconds)

    def close(self) -> None:
        """End the threads when they are free."""
        self._calls.put(None)

    def _hand_out(self) -> None:
        """Give every call to a thread that is free, or to a new one if none is for a moment."""
        threads = 0
        while (call := self._calls.get()) is not None:
            if not self._free.acquire(timeout=BLOCKED):
                threads += 1
                Thread(target=self._work, name="gridwright callback", daemon=True).start()
            self._taken.put(call)
        for _ in range(threads):
            self._taken.put(None)

    def _work(self) -> None:
        self._local.own = True
        while (call := self._taken.get()) is not None:
            try:
                call()
            except BaseException:  # it is the user's, and must not end a thread of ours
                LOGGER.exception("a callback failed")
            with self._returned:
                self._left -= 1
                self._returned.notify_all()
            self._free.release()


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


class RemoteTraceback(Exception):  # noqa: N818  # it is the cause of an error, never raised
    """The cause of a job's exception: its traceback in the process of its machine."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}\n"""'


class RemoteError(JobFailedError):
    """The failure of a job as it comes from its machine: a traceback and a pickled exception."""

    def __init__(self, traceback: str, pickled: bytes) -> None:
        super().__init__(traceback)
        self.pickled = pickled

    def original(self) -> Exception:
        """Return the job's own exception, or a `JobFailedError` if it cannot be raised here.

        An exception such as ``SystemExit`` would end the program that waits for the job.
        """
        with suppress(BaseException):  # unpickling runs the user's code
            found = pickle.loads(self.pickled)
            if isinstance(found, Exception):
                found.__cause__ = RemoteTraceback(str(self))
                return found
        return JobFailedError(str(self))


def _settle(future: JobFuture, raw: bytes, error: Exception | None) -> None:
    result = None
    if isinstance(error, RemoteError):
        error = error.original()
    if error is None:
        try:
            result = pickle.loads(raw)
        except BaseException as wrong:  # SystemExit too: unpickling runs the user's code
            error = JobFailedError(f"the result cannot be unpickled: {_words(wrong)}")
    with suppress(InvalidStateError):  # it was taken back meanwhile
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def _words(error: BaseException) -> str:
    """Say what an exception is, even if it cannot say so itself."""
    try:
        return cut(f"{type(error).__name__}: {error}")
    except BaseException:
        return type(error).__name__
