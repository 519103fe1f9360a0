"""The futures of jobs, and the threads that deliver results and call callbacks."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Condition, Event, Lock, Semaphore, Thread, get_ident, local
from typing import Any

from ..model import DeadlineError, JobFailedError, JobLostError
from .job import DISCARDED, GIVEN_UP, STAGE, Stage
from .journal_queries import Found
from .worker import cut

LOGGER = logging.getLogger(__name__)
BLOCKED = 0.01
"""Seconds until busy callback threads count as blocked."""
ADDING = Lock()
"""Held while a callback is added to a future, or the future is cancelled."""

Callback = Callable[[Future[Any]], Any]


class FutureInArgumentsError(TypeError):
    """Raised when the future of a job is pickled."""


class JobFuture(Future[Any]):
    """The future of a job.

    ``number`` is the number of the job in the journal, ``key`` its key or an empty text, and
    ``machine`` the name of the machine that has started it, empty before.
    """

    def __init__(
        self, number: int, take_back: Callable[[int], bool], answers: Answers, key: str = ""
    ) -> None:
        super().__init__()
        self.number, self.key, self._take_back, self._answers = number, key, take_back, answers
        self._calls: tuple[Callback, ...] | None = ()
        """Callbacks to call when it is done; None after they were handed over."""
        self._is_cancelled = False
        self.machine = ""
        self.is_raw = False
        """Whether its result stays pickled."""

    def __reduce__(self) -> Any:
        raise FutureInArgumentsError("a job's future can only travel as an argument of a job")

    def is_of(self, answers: Answers) -> bool:
        """Tell whether it is a future of the grid with these answers."""
        return self._answers is answers

    def running(self) -> bool:
        """Tell whether a machine has started the job."""
        return bool(self.machine) and not self.done()

    def cancel(self) -> bool:
        """Cancel the job, whether it waits or runs; return False if it has ended."""
        taken = not self.done() and self._take_back(self.number)
        if taken:
            self.mark_cancelled()
        return taken

    def mark_cancelled(self) -> bool:
        """Mark the future as cancelled; return False if it is already."""
        with ADDING:
            first, self._is_cancelled = not self._is_cancelled, True
        return first and super().cancel() and not self.set_running_or_notify_cancel()

    def add_done_callback(self, fn: Callback) -> None:
        """Call a function with this future when it is done, or at once if it is.

        The callbacks of a future are called one after the other, in the order of adding. They may
        wait for other futures.
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

        def call_all() -> None:
            for each in calls:
                try:
                    each(done)
                except (Exception, SystemExit):  # Ctrl-C is for the thread that runs this
                    LOGGER.exception("a callback of %r failed", done)

        self._answers.call(call_all)


class Answers:
    """Settles futures in one thread, and calls their callbacks in others.

    A callback may wait for other futures and use the grid without delaying other results.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._callbacks = _Callbacks()
        self._closing, self._closed = Lock(), False
        # not a pool: Python ends those at its exit while a grid may still wait for its jobs
        self._thread = Thread(target=self._work, name="gridwright answers", daemon=True)
        self._thread.start()

    def settle(self, future: JobFuture, result: bytes, error: Exception | None) -> None:
        """Settle a future in the thread of results, unless it is settled already."""
        self._put(partial(settle, future, result, error))

    def cancelled(self, future: JobFuture) -> None:
        """Mark the future of a cancelled job."""
        self._put(future.mark_cancelled)

    def call(self, what: Callable[[], None]) -> None:
        """Call something: in another thread, if this is the thread of results."""
        if get_ident() == self._thread.ident:
            self._callbacks.put(what)
        else:
            what()

    def give(self, callbacks: float | None = 0.0) -> None:
        """Wait until all known results are delivered.

        Also wait for their callbacks, at most some seconds (None: without limit), unless this is
        called by a callback.
        """
        if get_ident() != self._thread.ident:
            given = Event()
            self._put(given.set)
            given.wait()
            self._callbacks.wait(callbacks)

    def close(self, callbacks: float | None) -> None:
        """Deliver the last results, wait for their callbacks like `give`, and end the threads."""
        with self._closing:
            self._closed = True
            self._calls.put(None)
        if get_ident() != self._thread.ident:
            self._thread.join()
        self._callbacks.wait(callbacks)
        self._callbacks.close()

    def _put(self, call: Callable[[], Any]) -> None:
        with self._closing:
            if self._closed:
                raise RuntimeError("the grid is closed")
            self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except BaseException:  # unpickling runs the user's code
                LOGGER.exception("a result could not be delivered")
            del call


class _Callbacks:
    """Threads that call callbacks; one more starts whenever all of them are blocked."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._taken: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._free = Semaphore(0)
        self._threads = self._left = 0
        self._returned = Condition()
        self._local = local()

    def put(self, call: Callable[[], None]) -> None:
        """Queue a call. Use this from one thread only."""
        with self._returned:
            self._left += 1
        if not self._threads:
            self._threads = 1
            Thread(target=self._hand_out, name="gridwright callbacks", daemon=True).start()
        self._calls.put(call)

    def wait(self, seconds: float | None) -> None:
        """Wait until all calls have returned, unless this is called by one of them."""
        if not getattr(self._local, "own", False):
            with self._returned:
                self._returned.wait_for(lambda: not self._left, seconds)

    def close(self) -> None:
        """End the threads after their calls."""
        self._calls.put(None)

    def _hand_out(self) -> None:
        """Give each call to a free thread, or to a new one if none becomes free soon."""
        threads = 0
        while (call := self._calls.get()) is not None:
            if not self._free.acquire(timeout=BLOCKED):
                threads += 1
                Thread(target=self._work, name="gridwright callback", daemon=True).start()
            self._taken.put(call)
            del call  # it would keep the future alive until the next one
        for _ in range(threads):
            self._taken.put(None)

    def _work(self) -> None:
        self._local.own = True
        while (call := self._taken.get()) is not None:
            try:
                call()
            except BaseException:  # the user's code must not end our thread
                LOGGER.exception("a callback failed")
            del call
            with self._returned:
                self._left -= 1
                self._returned.notify_all()
            self._free.release()


class Raw:
    """The receiver of a job's pickled result. Each waiting job has one, so it is small."""

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
        """Take the error of a job without a result."""
        self.answers.settle(self.future, b"", error)

    def cancel(self) -> None:
        """Note that the job was cancelled."""
        self.answers.cancelled(self.future)


MISLEADING = (StopIteration, StopAsyncIteration, CancelledError)
"""Exceptions that mean something else to Python when a future raises them."""


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

        An exception such as ``SystemExit`` would end the program that waits for the job. Those in
        ``MISLEADING`` would hang or cancel whoever awaits it.
        """
        with suppress(BaseException):  # unpickling runs the user's code
            found = pickle.loads(self.pickled)
            if isinstance(found, Exception) and not isinstance(found, MISLEADING):
                found.__cause__ = RemoteTraceback(str(self))
                if named := STAGE.match(str(self)):
                    found.add_note(named[0])
                return found
        if not self.pickled and GIVEN_UP.match(str(self)):
            return JobLostError(str(self))
        if not self.pickled and DISCARDED.match(str(self)):
            return DeadlineError(str(self))
        return JobFailedError(str(self))


def settle(future: JobFuture, raw: bytes, error: Exception | None) -> None:
    """Give a future its pickled result, or an error."""
    result: Any = raw if future.is_raw else None
    if future.is_raw:
        pass  # it is passed on as it is
    elif isinstance(error, RemoteError):
        error = error.original()
    elif error is None:
        try:
            result = pickle.loads(raw)
        except BaseException as wrong:  # SystemExit too: unpickling runs the user's code
            error = JobFailedError(f"the result cannot be unpickled: {_words(wrong)}")
    with suppress(InvalidStateError):  # it was cancelled meanwhile
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def ended_future(found: Found, answers: Answers, *, is_raw: bool = False) -> JobFuture:
    """Return the future of a job in the journal that has ended."""
    future = JobFuture(found.number, lambda number: False, answers, found.key)
    future.machine, future.is_raw = found.machine, is_raw
    if found.stage == Stage.cancelled:
        future.mark_cancelled()
    else:
        failed = found.stage == Stage.failed
        error = RemoteError(found.error.rstrip(), found.result) if failed else None
        settle(future, found.result, error)
    return future


def _words(error: BaseException) -> str:
    """Return the type and message of an exception, or its type if it has no text."""
    try:
        return cut(f"{type(error).__name__}: {error}")
    except BaseException:
        return type(error).__name__
