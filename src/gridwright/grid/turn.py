"""One turn of the mapper: its submissions, its changes, its pace, and writing it to the journal."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic, thread_time
from typing import Any, NamedTuple, Protocol

from .book import Book
from .event import Entry
from .job import PLAIN, Decision, Instruction, Job, Options
from .journal import IN_MEMORY, Journal

BREATH = 0.01
"""Seconds of CPU time after which a turn takes no more messages; they wait for the next."""
PAUSE = 0.5
"""After a turn full of submissions, new ones wait for this part of its duration."""
LONGEST_PAUSE = 0.1
"""The longest such wait, in seconds, in which events of machines are handled."""
AT_HAND = 64 * 2**20
"""Bytes of pickled calls to keep in memory; others are read from the journal."""

ROWS = 500
"""The most jobs that only moved between queues which a turn writes."""
RETRY = 0.05
"""Seconds until a failed write is tried again."""

WARNING = logging.getLogger("gridwright").warning
WARN_AFTER = 1.0
"""Seconds without success until the grid warns."""
GIVE_UP_AFTER = 60.0
"""Seconds until an error that may clear by itself counts as final."""
CLEARS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
"""Errors that end when another process or an operator acts: wait for them."""
MAY_CLEAR = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM}
"""Errors that may clear by themselves, for example on a network disk."""


class Receipt:
    """Lets a thread wait until all of its jobs are in the journal."""

    def __init__(self, jobs: int) -> None:
        self._left, self._all = jobs, Event()
        self._error: Exception | None = None

    def keep(self) -> None:
        """Note that one more job is in the journal."""
        self._left -= 1
        if self._left <= 0:
            self._all.set()

    def refuse(self, error: Exception) -> None:
        """Note that a job cannot be written."""
        self._error = error
        self._all.set()

    def wait(self) -> None:
        """Wait for all jobs; raise the error if one cannot be written."""
        self._all.wait()
        if self._error is not None:
            raise self._error


class Change(NamedTuple):
    """A change that somebody other than the executor asks for."""

    what: Callable[[float], list[Instruction] | None]
    entry: Entry | None
    """What to note in the journal if something was changed."""
    answer: Future[bool]

    def tell(self, has_changed: bool) -> None:
        """Answer, unless the caller has given up."""
        with suppress(InvalidStateError):
            self.answer.set_result(has_changed)

    def refuse(self, error: Exception) -> None:
        """Answer that the grid takes no changes any more."""
        with suppress(InvalidStateError):
            self.answer.set_exception(error)


class Answer(Protocol):
    """The receiver of a job's result."""

    def done(self) -> bool:
        """Tell whether nobody waits for the result any more."""

    def set_result(self, result: bytes, /) -> None:
        """Take the pickled result."""

    def set_exception(self, error: Exception, /) -> None:
        """Take the error of a job without a result."""

    def cancel(self) -> Any:
        """Note that the job was cancelled."""


class Submission(NamedTuple):
    """A job that is to be added to the book."""

    number: int
    task_class: int
    work: bytes
    future: Answer
    receipt: Receipt | None = None
    """Told when the job is in the journal."""
    options: Options = PLAIN
    key: str | None = None
    needs: tuple[int, ...] = ()
    """The jobs whose results are among its arguments."""

    def refuse(self, error: Exception) -> None:
        """Tell whoever waits for the job that the grid does not take it."""
        if not self.future.done():
            self.future.set_exception(error)


class Turn:
    """Everything that one turn changes."""

    def __init__(self) -> None:
        self.words: list[Any] = []
        """The messages that were handled."""
        self.entries: list[Entry] = []
        self.submitted: list[tuple[int, bytes]] = []
        self.results: list[tuple[int, bytes, str]] = []
        self.changed: list[Job] = []
        self.decisions: list[Decision] = []
        self.out: list[Instruction] = []
        self.done: list[Callable[[], None]] = []
        """What to do when the turn is in the journal."""
        self.note = self.entries.append

    def add(self, answer: tuple[list[Instruction], list[Entry]]) -> None:
        """Add the instructions and events of the beliefs."""
        self.out += answer[0]
        self.entries += answer[1]

    def take_changed(self, book: Book, most: float) -> None:
        """Take the jobs to write from the book.

        At most ``most`` jobs that only moved between queues are taken. The others wait for later
        turns: nothing depends on them, as a grid that continues the journal lets them wait again.
        """
        changed, book.changed = book.changed, {}
        for number in changed:
            book.moved.pop(number, None)
        for number, _ in self.submitted:
            book.moved.pop(number, None)
            changed[number] = book.jobs[number]
        while book.moved and most > 0:
            number, job = book.moved.popitem()
            changed[number] = job
            most -= 1
        self.changed = list(changed.values())

    def write(
        self,
        journal: Journal,
        book: Book,
        classes: Sequence[str],
        machines: Sequence[str],
        now: float,
    ) -> None:
        """Write the turn in one transaction, if it has anything to write."""
        if not any((self.entries, self.submitted, self.results, self.changed, self.decisions)):
            return
        jobs = []
        for job in self.changed:
            if job.stage.is_final:
                job.settled = now
            where = machines[job.machine] if job.machine >= 0 else None
            jobs.append((job, classes[job.task_class], where))
        asking, asked = machines, classes
        if not book.policy.kind.pulls:
            asking, asked = asked, asking
        rows = [
            (
                each.time,
                asking[each.asked],
                " ".join([asked[k] for k in each.candidates]),
                asked[each.choice] if 0 <= each.choice < len(asked) else None,
                each.plan,
            )
            for each in self.decisions
        ]
        journal.write(self.entries, jobs, self.submitted, self.results, rows)


class Pace:
    """Keeps turns short, and lets events of machines in between many submissions.

    The clock is that of the event loop. In virtual time no turn takes long, and nothing depends on
    how fast the computer is.
    """

    def __init__(self) -> None:
        self.clock: Callable[[], float] = monotonic
        self.pause_after_this = False
        self._cpu = self._began = self._intake = 0.0

    def begin(self) -> None:
        """Begin a turn."""
        self._cpu, self._began, self.pause_after_this = thread_time(), self.clock(), False

    def is_spent(self) -> bool:
        """Tell whether a turn has taken long enough."""
        if self.clock() - self._began <= BREATH:  # CPU time is less, and takes longer to ask for
            return False
        return thread_time() - self._cpu > BREATH

    def end(self) -> None:
        """End a turn; submissions then wait if there were many."""
        if self.pause_after_this:
            now = self.clock()
            self._intake = now + min(PAUSE * (now - self._began), LONGEST_PAUSE)

    def left(self) -> float:
        """Return the seconds for which submissions have to wait, 0 if they may be handled now."""
        return max(self._intake - self.clock(), 0.0)


class Calls:
    """The pickled calls of jobs that have not ended: in memory, or else in the journal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.at_hand: dict[int, bytes] = {}
        self.size = 0

    def keep(self, number: int, work: bytes) -> None:
        """Keep a call that is, or will be, in the journal."""
        if self.size + len(work) <= AT_HAND or self.journal.path == IN_MEMORY:
            self.at_hand[number] = work
            self.size += len(work)

    def get(self, number: int) -> bytes:
        """Return a call."""
        kept = self.at_hand.get(number)
        return self.journal.work(number) if kept is None else kept

    def size_of(self, number: int) -> int:
        """Return the bytes of a call; all that may be in memory for one that is not."""
        kept = self.at_hand.get(number)
        return AT_HAND if kept is None else len(kept)

    def drop(self, number: int) -> None:
        """Forget a call."""
        self.size -= len(self.at_hand.pop(number, b""))


class Patience:
    """Decides whether a write that failed is tried again, and warns of long waits."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._since: float | None = None
        self._warned = False

    def lasts(self, error: Exception) -> bool:
        """Tell whether to try again."""
        now = monotonic()
        self._since = now if self._since is None else self._since
        waited = now - self._since
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF
        if isinstance(error, MemoryError):  # Python raises this for SQLITE_NOMEM
            code = sqlite3.SQLITE_NOMEM
        if code not in CLEARS and not (code in MAY_CLEAR and waited < GIVE_UP_AFTER):
            return False
        if waited >= WARN_AFTER and not self._warned:
            self._warned = True
            WARNING(
                "the journal %s cannot be written: %s; the grid waits and tries again",
                *(self.path, error),
            )
        return True

    def rewarded(self) -> None:
        """Note that a write has succeeded."""
        if self._since is not None:
            if self._warned:
                waited = monotonic() - self._since
                WARNING("the journal %s is written again, after %.0f s", self.path, waited)
            self._since, self._warned = None, False


async def patiently(write: Callable[[], None]) -> None:
    """Write to a journal; try again while it is locked or the disk is full."""
    while True:
        try:
            return write()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in CLEARS:
                raise
        await asyncio.sleep(RETRY)


async def end_the_rest() -> None:
    """Cancel all other tasks of the event loop, and wait for their ends."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


SMALL = 1000
"""Size of a planning problem, about 20 microseconds each, that is solved within a turn."""


class Planned(NamedTuple):
    """A plan that was made, or the error of making it."""

    plan: Future[Any]


class Planning:
    """Does long work for a book in a thread, such as large plans, while the old plan holds."""

    def __init__(self, book: Book, tell: Callable[[Any], None]) -> None:
        self.book, self.tell = book, tell
        self._thread: ThreadPoolExecutor | None = None
        self._is_busy = False

    def takes_long(self) -> bool:
        """Tell whether a plan would hold up the event loop."""
        classes, groups = self.book.nominal.shape[0], len(set(self.book.group.tolist()))
        return classes * (classes + groups) ** 2 > SMALL

    def start(self) -> None:
        """Start making a plan, unless one is being made."""
        if self._is_busy:
            return
        self._is_busy, self.book.stale = True, False

        def arrive(plan: Future[Any]) -> None:
            self._is_busy = False
            self.tell(Planned(plan))

        self._begin(partial(self.book.policy.plan, self.book.situation()), arrive)

    def beside(self, work: Callable[[], Any], take: Callable[[Any], None]) -> None:
        """Do some work that does not fail, and let the book take what it makes in a later turn."""

        def enter(made: Future[Any], now: float) -> list[Instruction]:
            take(made.result())
            return []

        self._begin(work, lambda made: self.tell(Change(partial(enter, made), None, Future())))

    def _begin(self, work: Callable[[], Any], arrive: Callable[[Future[Any]], None]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "gridwright plans")
        loop = asyncio.get_running_loop()

        def made(result: Future[Any]) -> None:
            if not result.cancelled():
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(arrive, result)

        self._thread.submit(work).add_done_callback(made)

    def close(self) -> None:
        """Stop without waiting for what is being made."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
