"""Time limits of jobs: how long each may take, and what happens when it takes longer."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, NamedTuple

from ..model import InputError
from ..policies.kind import ON_TIMEOUT
from .event import Entry
from .job import Job, Send
from .turn import Turn

if TYPE_CHECKING:
    from .mapper import Mapper

STARTING = 10.0
"""Seconds in which a job should start. Its time limit begins then at the latest: the process of its
machine may have to restart first."""
SOON = 0.05
"""Seconds until a timer checks again."""
LATE = 0.02
"""A timer that is later by more seconds assumes that the event loop was blocked."""
LOOK_AHEAD = 0.5
"""Seconds between checks of the jobs that were sent ahead."""
DOUBLINGS = 60
"""A time limit doubles at most this often, so that it stays a finite number."""


class Overdue(NamedTuple):
    """A message to the mapper: a job has timed out, or a copy of it has."""

    sent: Send
    is_copy: bool = False


class TimeLimits:
    """Timers for the jobs that a mapper has sent."""

    def __init__(self, mapper: Mapper) -> None:
        self.mapper = mapper
        self.exceeded = 0
        """How many jobs have timed out so far."""
        self._timers: dict[tuple[int, int], asyncio.TimerHandle] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._due = math.inf
        """When that timer looks at deadlines."""

    def start(self, loop: asyncio.AbstractEventLoop, sent: Send, job: Job) -> None:
        """Start the timer of a job that was sent, if jobs have a time limit."""
        limit = self._limit(job)
        if limit < math.inf:
            self._wait(loop, limit * self.mapper.unit, sent, limit)

    def stop(self, number: int, attempt: int) -> None:
        """Stop the timer of an attempt."""
        timer = self._timers.pop((number, attempt), None)
        if timer is not None:
            timer.cancel()

    def look_ahead(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check soon whether jobs that were sent ahead wait too long."""

        def look() -> None:
            self._looking = None
            self.mapper.call(self.mapper.book.look_ahead, None)

        if self._looking is None:
            self._looking = loop.call_later(LOOK_AHEAD, look)

    def watch_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Discard jobs when the next deadline has passed, if they still wait then."""
        due, timer = self.mapper.book.mechanism.next_deadline(), self._deadline
        if timer is not None and not timer.cancelled() and self._due <= due:
            return
        if timer is not None:
            timer.cancel()
        self._deadline, self._due = None, due
        if due == math.inf:
            return

        def look() -> None:
            self._deadline = None
            if self.mapper.until(due) > 0:  # the run was paused meanwhile
                self.watch_deadlines(loop)
            else:
                self.mapper.call(lambda now: self.mapper.book.expire(max(now, due)), None)

        self._deadline = loop.call_later(self.mapper.until(due), look)

    def close(self) -> None:
        """Stop all timers."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._looking is not None:
            self._looking.cancel()
        for timer in self._timers.values():
            timer.cancel()

    def exceed(self, overdue: Overdue, turn: Turn) -> None:
        """Note that a job has timed out, and act as the settings say."""
        mapper, sent = self.mapper, overdue.sent
        book, now = mapper.book, mapper.now()
        if overdue.is_copy:
            self.stop(sent.job, sent.attempt)
            turn.out += book.copy_timed_out(now, sent.job, sent.attempt) or []
            return
        then = self._action(sent)
        name = mapper.executor.machines[sent.machine]
        seconds = self._seconds(book.jobs[sent.job]) if sent.job in book.jobs else math.inf
        times = f"{mapper.settings.timeout:g} times what was expected"
        limit = f"{seconds:g} s" if seconds < math.inf else times
        why = f"it took more than {limit} on machine {name}"
        said = book.timed_out(now, sent.job, sent.attempt, then=then, why=why)
        if said is None:  # it has ended meanwhile
            return
        self.exceeded += 1
        has_failed = then == "fail" and book.jobs[sent.job].stage.is_final
        if then != "wait" and not has_failed and book.machines[sent.machine].up:
            then = "stopped"
        turn.note(Entry(now, "timed out", sent.job, sent.attempt, name, {"then": then}))
        turn.out += said
        job = book.jobs[sent.job]
        # A copy that continues has a time limit too, if retries have a limit.
        if mapper.settings.retries is not None and sent.attempt in job.copies:
            seconds = self._limit(job) * mapper.unit
            loop, word = asyncio.get_running_loop(), Overdue(sent, is_copy=True)
            self._timers[sent.job, sent.attempt] = loop.call_later(seconds, mapper.hear, word)

    def _action(self, sent: Send) -> str:
        """Return what to do with a job that has timed out; ask the policy if it has a function."""
        book, then = self.mapper.book, self.mapper.settings.on_timeout
        if isinstance(then, str):
            return then
        if (job := book.jobs.get(sent.job)) is None:  # it has ended
            return "wait"
        answer = then(job.task_class, sent.machine, job.timed_out, book.view())
        if answer not in ON_TIMEOUT:
            raise InputError(f"on_timeout answered {answer!r}; expected {', '.join(ON_TIMEOUT)}")
        return answer

    def _limit(self, job: Job) -> float:
        """Return how long a job may take, in time units.

        Every time-out doubles a limit that depends on the expected duration, so that a job that
        is long everywhere ends at some time.
        """
        limit = self._seconds(job) / self.mapper.unit
        times = self.mapper.settings.timeout * 2.0 ** min(job.timed_out, DOUBLINGS)
        if times > 0 and job.expected > 0:  # otherwise its expected duration is unknown
            limit = min(limit, times * job.expected)
        return limit

    def _seconds(self, job: Job) -> float:
        """Return the limit of a job in seconds: its own, its class's or the grid's."""
        settings = self.mapper.settings
        if (own := job.options.timeout) is None:
            name, host = self.mapper.classes[job.task_class], job.options.host
            name = name.removesuffix(f"@{host}") if host else name
            own = settings.class_seconds.get(name, settings.seconds)
        return own or math.inf

    def _wait(
        self, loop: asyncio.AbstractEventLoop, seconds: float, sent: Send, limit: float
    ) -> None:
        due = loop.time() + seconds
        timer = loop.call_at(due, self._look, loop, due, sent, limit)
        self._timers[sent.job, sent.attempt] = timer

    def _look(self, loop: asyncio.AbstractEventLoop, due: float, sent: Send, limit: float) -> None:
        self._timers.pop((sent.job, sent.attempt), None)
        job = self.mapper.book.jobs.get(sent.job)
        if job is None or not self.mapper.book.is_out(job, sent.attempt):
            return
        # the run may have been paused meanwhile, or the job may have started late
        if (wait := self.mapper.until(self._begun(job) + limit)) > 0:
            if math.isnan(job.started):  # check again soon: it may start at any time
                wait = min(wait, max(limit * self.mapper.unit, SOON))
            self._wait(loop, wait, sent, limit)
        elif loop.time() - due > LATE:  # we were blocked, and its end may wait to be handled
            self._wait(loop, SOON, sent, limit)
        else:
            self.mapper.hear(Overdue(sent))

    def _begun(self, job: Job) -> float:
        """Return when a job's time limit begins.

        Without a limit of retries, as published, this is when it was sent. A job that was sent
        ahead has not begun.
        """
        if job.is_ahead:
            return self.mapper.now()
        if self.mapper.settings.retries is None:
            return job.sent
        sent = job.sent if math.isnan(job.free) else max(job.sent, job.free)
        return sent + STARTING / self.mapper.unit if math.isnan(job.started) else job.started
