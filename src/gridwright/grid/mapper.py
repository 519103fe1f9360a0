"""The mapper: carries word between the book, the executor and the journal.

It lives in an event loop. What has happened since the last turn is entered into the book; what
comes of it is written to the journal in one piece; only then is the executor told, and do those who
wait for a result get it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from ..model import InputError
from ..policies import Policy
from .book import Book
from .executors import Ended, Event, Executor, MachineDown, MachineUp, Started
from .job import Cancel, Instruction, Job, Send, Stage
from .journal import Entry, Journal
from .learning import Learner

__all__ = ["JobFailedError", "Mapper", "Submission"]

ON_TIMEOUT = ("resubmit", "wait", "fail")


class JobFailedError(Exception):
    """Raised for a job whose own code failed; its traceback is the message."""


class Submission(NamedTuple):
    """A job on its way into the book."""

    number: int
    task_class: int
    work: bytes
    future: Future[bytes]


class _Call(NamedTuple):
    """Something to do in the next turn that is no event of the executor."""

    what: Callable[[float], list[Instruction] | None]
    entry: Entry
    answer: Future[bool]


class Mapper:
    """Drives a policy on real machines."""

    def __init__(
        self,
        policy: Policy,
        executor: Executor,
        journal: Journal,
        classes: list[str],
        prior: Any,
        *,
        timeout: float = 0.0,
        on_timeout: str = "resubmit",
        learns: bool = True,
    ) -> None:
        if on_timeout not in ON_TIMEOUT:
            raise InputError(f"on_timeout is {on_timeout!r}; expected {', '.join(ON_TIMEOUT)}")
        self.executor, self.journal, self.classes = executor, journal, classes
        self.timeout, self.on_timeout, self.learns = timeout, on_timeout, learns
        self.epoch = time.time() - time.monotonic()
        self.book = Book(policy, prior, np.ones(len(classes)), up=False, start=self.now())
        self.learner = Learner(np.array(prior, dtype=float))
        self.futures: dict[int, Future[bytes]] = {}
        self.works: dict[int, bytes] = {}
        self.late_answers = 0
        self.broken: str = ""
        self._inbox: list[Submission | Event | _Call] = []
        self._timers: dict[tuple[int, int], asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False

    async def open(self) -> None:
        """Start the executor's machines."""
        self._loop = asyncio.get_running_loop()
        await self.executor.open(self.hear)

    async def close(self) -> None:
        """Stop; jobs that have not ended stay in the journal as they are."""
        for timer in self._timers.values():
            timer.cancel()
        await self.executor.close()

    def now(self) -> float:
        """Return the time as the journal writes it: seconds since 1970, never going back."""
        return time.monotonic() + self.epoch

    def hear(self, word: Submission | Event | _Call) -> None:
        """Take something in for the next turn. In the loop's own thread."""
        self._inbox.append(word)
        if not self._scheduled and self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def call(self, what: Callable[[float], list[Instruction] | None], entry: Entry) -> Future[bool]:
        """Have the book told of something in the next turn."""
        answer: Future[bool] = Future()
        self.hear(_Call(what, entry, answer))
        return answer

    def adopt(self, job: Job, task_class: int, submission: Submission) -> None:
        """Take in a job that an earlier grid left unfinished, with its own submission time."""
        self.book.adopt(job, task_class)
        self.futures[job.number] = submission.future
        self.works[job.number] = submission.work

    def add_class(self, name: str) -> int:
        """Make room for one more class of jobs."""
        prior = np.ones(len(self.executor.machines))
        self.classes.append(name)
        self.book.add_class(prior, 1.0)
        self.learner.add_class(prior)
        return len(self.classes) - 1

    # one turn

    def _turn(self) -> None:
        self._scheduled = False
        inbox, self._inbox = self._inbox, []
        turn = _Turn()
        for word in inbox:
            if self.broken:
                self._refuse(word)
                continue
            try:
                self._enter(word, turn)
            except Exception as error:  # in a policy of the user's; what it left is in no order
                self._break(f"policy {self.book.policy.name}: {type(error).__name__}: {error}")
                self._refuse(word)
        if self.broken:
            return
        changed, self.book.changed = self.book.changed, {}
        try:
            self._write(turn, changed.values())
        except Exception as error:
            self._break(f"the journal {self.journal.path} cannot be written: {error}")
            for word in inbox:
                self._refuse(word)
            return
        for instruction in turn.out:
            self._carry_out(instruction)
        for done in turn.done:
            done()
        for job in changed.values():
            if job.stage.is_final:
                self._forget(job.number)

    def _enter(self, word: Submission | Event | _Call, turn: _Turn) -> None:
        now, book = self.now(), self.book
        match word:
            case Submission(number, task_class, work, future):
                self.futures[number], self.works[number] = future, work
                turn.submitted.append((number, work))
                turn.note(Entry(now, "submitted", number))
                turn.out += book.submit(now, number, task_class)
                if self.learner.came(task_class, now) and self.learns:
                    self._believe_arrivals(now, turn)
            case Started(machine, number, attempt, at):
                book.started(at + self.epoch, number, attempt)
                name = self.executor.machines[machine]
                turn.note(Entry(at + self.epoch, "started", number, attempt, name))
            case Ended():
                self._ended(word, turn)
            case MachineUp(machine):
                turn.note(Entry(now, "up", machine=self.executor.machines[machine]))
                turn.out += book.machine_up(now, machine)
            case MachineDown(machine, why):
                turn.note(Entry(now, "down", machine=self.executor.machines[machine], detail=why))
                turn.out += book.machine_down(now, machine)
            case _Call(what, entry, answer):
                said = what(now)
                if said is not None:
                    turn.note(entry)
                    turn.out += said
                turn.done.append(lambda: answer.set_result(said is not None))

    def _ended(self, word: Ended, turn: _Turn) -> None:
        machine, number, attempt, at, result, error = word
        at += self.epoch
        name = self.executor.machines[machine]
        self._stop_timer(number, attempt)
        job = self.book.jobs.get(number)
        said = self.book.finished(at, number, attempt, failed=bool(error))
        if said is None or job is None:
            self.late_answers += 1
            turn.note(Entry(at, "late answer", number, attempt, name))
            turn.out += self.book.machine_up(at, machine)  # it was given up, and is there
            return
        turn.note(Entry(at, "failed" if error else "finished", number, attempt, name))
        turn.results.append((number, result, error))
        turn.out += said
        turn.done.append(lambda: self._settle(number, result, error))
        if not error:
            self.learner.ran(job.task_class, job.machine, at - job.started)
            found = self.learner.rates(self.book.nominal) if self.learns else None
            if found is not None:
                turn.note(Entry(at, "rates", detail=repr(found.round(6).tolist())))
                turn.out += self.book.believe(at, rates=found)

    def _believe_arrivals(self, now: float, turn: _Turn) -> None:
        found = self.learner.arrivals(self.book.classes["arrival"], now)
        if found is not None:
            turn.note(Entry(now, "arrivals", detail=repr(found.round(6).tolist())))
            turn.out += self.book.believe(now, arrivals=found.tolist())

    def _write(self, turn: _Turn, changed: Iterable[Job]) -> None:
        jobs = []
        for job in changed:
            where = self.executor.machines[job.machine] if job.machine >= 0 else None
            jobs.append((job, self.classes[job.task_class], where))
        self.journal.write(turn.entries, jobs, turn.submitted, turn.results)

    def _carry_out(self, word: Instruction) -> None:
        self._stop_timer(word.job, word.attempt)
        if isinstance(word, Cancel):
            self.executor.cancel(word.job, word.machine, word.attempt)
            return
        job = self.book.jobs.get(word.job)
        if job is None or job.stage != Stage.sent or job.attempt != word.attempt:
            return  # it was taken back in the same turn
        self.executor.start(word.job, word.machine, word.attempt, self.works[word.job])
        if self.timeout > 0 and self._loop is not None and self.on_timeout != "wait":
            limit = self.timeout * job.expected
            key = (word.job, word.attempt)
            self._timers[key] = self._loop.call_later(limit, self._time_out, word)

    def _stop_timer(self, number: int, attempt: int) -> None:
        timer = self._timers.pop((number, attempt), None)
        if timer is not None:
            timer.cancel()

    def _time_out(self, word: Send) -> None:
        self._timers.pop((word.job, word.attempt), None)
        name = self.executor.machines[word.machine]
        entry = Entry(self.now(), "timed out", word.job, word.attempt, name)
        if self.on_timeout == "fail":
            why = f"it took more than {self.timeout:g} times what was expected"
            self.hear(Ended(word.machine, word.job, word.attempt, time.monotonic(), b"", why))
            self.executor.cancel(word.job, word.machine, word.attempt)
        else:
            self.call(lambda now: self.book.timed_out(now, word.job, word.attempt), entry)

    def _settle(self, number: int, result: bytes, error: str) -> None:
        """Give a job's result to whoever waits for it."""
        future = self.futures.get(number)
        if future is not None and not future.done():
            if error:
                future.set_exception(JobFailedError(error.rstrip()))
            else:
                future.set_result(result)

    def _forget(self, number: int) -> None:
        """Forget a job that has ended: the journal has it."""
        for known in (self.works, self.book.jobs, self.futures):
            known.pop(number, None)

    def _break(self, why: str) -> None:
        """Stop for good: nothing is started that could not be remembered."""
        self.broken = why
        for future in self.futures.values():
            if not future.done():
                future.set_exception(InputError(f"the grid has stopped: {why}"))
        self.futures.clear()

    def _refuse(self, word: Submission | Event | _Call) -> None:
        if isinstance(word, Submission) and not word.future.done():
            word.future.set_exception(InputError(f"the grid has stopped: {self.broken}"))
        elif isinstance(word, _Call) and not word.answer.done():
            word.answer.set_exception(InputError(f"the grid has stopped: {self.broken}"))


class _Turn:
    """What comes of one turn."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.submitted: list[tuple[int, bytes]] = []
        self.results: list[tuple[int, bytes, str]] = []
        self.out: list[Instruction] = []
        self.done: list[Callable[[], None]] = []
        self.note = self.entries.append
