"""The mapper: carries word between the book, the executor and the journal.

It lives in an event loop. What has happened since the last turn is entered into the book; what
comes of it is written to the journal in one piece; only then is the executor told, and do those who
wait for a result get it.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..model import GridwrightError, InputError, JobLostError
from ..policies import Policy
from .beliefs import Beliefs
from .book import Book
from .executors import Ended, Event, Executor, MachineDown, MachineUp, Reading, Started
from .job import Cancel, Decision, Instruction, Job, Send, Stage
from .journal import Entry, Journal
from .settings import Settings
from .worker import cut

__all__ = ["JobFailedError", "Mapper", "Submission"]

INSTANT = 1e-6
"""Seconds that are none."""
AGAIN = 0.01
"""Seconds after which a clock that stands still is looked at again, at the earliest."""
STARTING = 10.0
"""Seconds in which a job should start, and before which its time limit does not run: its machine's
process may have to be started again first."""
DOUBLINGS = 60
"""A job's time limit is doubled so many times at most: more would be no number."""


class JobFailedError(GridwrightError):
    """Raised for a job whose own code failed; its traceback is the message."""


class Submission(NamedTuple):
    """A job on its way into the book."""

    number: int
    task_class: int
    work: bytes
    future: Future[bytes]


class _Overdue(NamedTuple):
    """A job that takes too long."""

    sent: Send


class _CopyOverdue(NamedTuple):
    """A copy of a job that timed out and has not answered since."""

    sent: Send


class _Call(NamedTuple):
    """Something to do in the next turn that is no event of the executor."""

    what: Callable[[float], list[Instruction] | None]
    entry: Entry
    answer: Future[bool]


_Word = Submission | Event | _Overdue | _CopyOverdue | _Call


class Mapper:
    """Drives a policy on real machines.

    Times are in units of so many seconds since ``zero`` on a clock.
    """

    def __init__(
        self,
        policy: Policy,
        executor: Executor,
        journal: Journal,
        classes: Sequence[str],
        rates: Any,
        arrivals: Any,
        settings: Settings,
        *,
        clock: Callable[[], float],
        zero: float,
        unit: float = 1.0,
        availability: Any = None,
    ) -> None:
        self.executor, self.journal, self.classes = executor, journal, list(classes)
        self.settings = settings
        self.clock, self.zero, self.unit = clock, zero, unit
        self.book = Book(
            policy,
            rates,
            arrivals,
            availability,
            up=False,
            start=self.now(),
            retries=settings.retries,
        )
        self.beliefs = Beliefs(self.book, settings.corrections, guessed=settings.guessed)
        self.futures: dict[int, Future[bytes]] = {}
        self.works: dict[int, bytes] = {}
        self.prepare: Callable[[Job, bytes], bytes] = lambda job, work: work
        """Makes what is sent to a machine of what was submitted."""
        self.late_answers = self.deaths = self.timed_out = self.given_up = 0
        self.stuck: set[int] = set()
        """Classes that wait, and that no machine can run now."""
        self.broken: str = ""
        self._inbox: list[_Word] = []
        self._timers: dict[tuple[int, int], asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False
        self._planned = 0

    async def open(self) -> None:
        """Start the executor's machines."""
        self._loop = asyncio.get_running_loop()
        await self.executor.open(self.hear, self.settings.resolution * self.unit)

    async def close(self) -> None:
        """Stop; jobs that have not ended stay in the journal as they are."""
        for timer in self._timers.values():
            timer.cancel()
        await self.executor.close()

    def now(self) -> float:
        """Return the time as the book and the journal have it."""
        return self.at(self.clock())

    def at(self, time: float) -> float:
        """Return a time of the clock in units since the beginning."""
        return (time - self.zero) / self.unit

    def until(self, time: float) -> float:
        """Return the seconds to wait for a time; 0 where it has come.

        While the clock stands still it may only be asked again in a while.
        """
        left = (time - self.now()) * self.unit
        return max(left, AGAIN) if left > INSTANT else 0.0

    def hear(self, word: _Word) -> None:
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
        self.classes.append(name)
        self.beliefs.add_class(np.ones(len(self.book.machines)), 1.0)
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
        decisions, self.book.decisions = self.book.decisions, []
        self._note_losses(turn)
        self._note_plan(turn)
        self._note_stuck(turn)
        try:
            self._write(turn, changed.values(), decisions)
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

    def _enter(self, word: _Word, turn: _Turn) -> None:
        now, book = self.now(), self.book
        match word:
            case Submission(number, task_class, work, future):
                self.futures[number], self.works[number] = future, work
                turn.submitted.append((number, work))
                turn.note(Entry(now, "submitted", number))
                turn.out += book.submit(now, number, task_class)
                turn.add(self.beliefs.arrived(task_class, now))
            case Started(machine, number, attempt, at) if math.isfinite(at):
                book.started(self.at(at), number, attempt)
                name = self.executor.machines[machine]
                turn.note(Entry(self.at(at), "started", number, attempt, name))
            case Ended():
                self._ended(word, turn)
            case _Overdue(sent):
                self._overdue(sent, turn)
            case _CopyOverdue(sent):
                turn.out += book.copy_timed_out(now, sent.job, sent.attempt) or []
            case MachineUp(machine):
                self._up(machine, now, turn)
            case MachineDown(machine, why, died):
                self._down(machine, cut(why), died=died, turn=turn)
            case Reading(machine, measured, predicted) if math.isfinite(measured + predicted):
                name, said = self.executor.machines[machine], f"{measured:.4f} {predicted:.4f}"
                turn.note(Entry(now, "availability", machine=name, detail=said))
                turn.out += self.beliefs.read(machine, predicted, now)
            case _Call(what, entry, answer):
                said_so = what(now)
                if said_so is not None:
                    turn.note(entry)
                    turn.out += said_so
                turn.done.append(lambda: answer.set_result(said_so is not None))

    def _down(self, machine: int, why: str, *, died: bool, turn: _Turn) -> None:
        now, name = self.now(), self.executor.machines[machine]
        turn.note(Entry(now, "down", machine=name, detail=why))
        died = died and self.book.running[machine] is not None
        self.deaths += died
        turn.out += self.book.machine_down(
            now, machine, died=f"{why} on machine {name}" if died else ""
        )

    def _up(self, machine: int, now: float, turn: _Turn) -> None:
        if machine >= len(self.book.machines):
            self.beliefs.add_machine(np.ones(len(self.classes)))
        turn.note(Entry(now, "up", machine=self.executor.machines[machine]))
        turn.out += self.book.machine_down(now, machine)  # if it was gone unnoticed
        turn.out += self.book.machine_up(now, machine, self.beliefs.availability(machine))

    def _ended(self, word: Ended, turn: _Turn) -> None:
        machine, number, attempt, at, result, error = word
        now, name, error = self.now(), self.executor.machines[machine], cut(error)
        ended = self.at(at) if math.isfinite(at) else now
        self._stop_timer(number, attempt)
        job = self.book.jobs.get(number)
        said = self.book.finished(now, number, attempt, ended=ended, failed=bool(error))
        if said is None or job is None:
            self.late_answers += 1
            turn.note(Entry(ended, "late answer", number, attempt, name))
        else:
            turn.note(Entry(ended, "failed" if error else "finished", number, attempt, name))
            turn.results.append((number, result, error))
            turn.out += said
            wrong = JobFailedError(error.rstrip()) if error else None
            turn.done.append(lambda: self._settle(number, result, wrong))
            if not error:
                turn.add(self.beliefs.ended(job, now))
        if not self.book.machines[machine].up:  # it was given up, and is there
            turn.note(Entry(now, "up", machine=name))
            turn.out += self.book.machine_up(now, machine, self.beliefs.availability(machine))

    def _note_losses(self, turn: _Turn) -> None:
        """Note which jobs machines went down with, and which have no retries left."""
        book, now, names = self.book, self.now(), self.executor.machines
        losses, book.losses = book.losses, []
        for number, attempt, machine in losses:
            turn.note(Entry(now, "lost", number, attempt, names[machine]))
        given_up, book.given_up = book.given_up, []
        for job, machine in given_up:
            error, number = JobLostError(_in_vain(job)), job.number
            self.given_up += 1
            turn.note(Entry(now, "failed", number, job.attempt, names[machine]))
            turn.results.append((number, b"", str(error)))
            turn.done.append(partial(self._settle, number, b"", error))
        released, book.released = book.released, []
        for machine in released:
            turn.note(Entry(now, "up", machine=names[machine]))

    def _note_stuck(self, turn: _Turn) -> None:
        """Say once of a class that it waits for a machine that could run it."""
        for i, name in enumerate(self.classes):
            stuck = bool(self.book.waiting[i]) and self.book.able(i) == 0
            if stuck and i not in self.stuck:
                self.stuck.add(i)
                turn.note(
                    Entry(self.now(), "nobody", detail=f"class {name}: no machine can run it")
                )
            elif not stuck:
                self.stuck.discard(i)

    def _note_plan(self, turn: _Turn) -> None:
        if self.book.policy.planner is not None and self._planned != self.book.plans:
            self._planned = self.book.plans
            shares = json.dumps(self.book.plan.round(4).tolist())
            turn.note(Entry(self.now(), "plan", detail=f"{self.book.plans} {shares}"))

    def _write(self, turn: _Turn, changed: Iterable[Job], decisions: Sequence[Decision]) -> None:
        now, names, jobs = self.now(), self.executor.machines, []
        for job in changed:
            if job.stage.is_final:
                job.settled = now
            where = names[job.machine] if job.machine >= 0 else None
            jobs.append((job, self.classes[job.task_class], where))
        asking, asked = names, self.classes
        if self.book.policy.kind == "push":
            asking, asked = asked, asking
        rows = [
            (
                each.time,
                asking[each.asked],
                " ".join([asked[k] for k in each.candidates]),
                asked[each.choice] if 0 <= each.choice < len(asked) else None,
                each.plan,
            )
            for each in decisions
        ]
        self.journal.write(turn.entries, jobs, turn.submitted, turn.results, rows)

    def _carry_out(self, word: Instruction) -> None:
        self._stop_timer(word.job, word.attempt)
        if isinstance(word, Cancel):
            self.executor.cancel(word.job, word.machine, word.attempt)
            return
        job = self.book.jobs.get(word.job)
        if job is None or job.stage != Stage.sent or job.attempt != word.attempt:
            return  # it was taken back in the same turn
        work = self.prepare(job, self.works[word.job])
        self.executor.start(word.job, word.machine, word.attempt, work)
        if self.settings.timeout > 0 and self._loop is not None:
            limit = self._limit(job)
            timer = self._loop.call_later(limit * self.unit, self._time_out, word, limit)
            self._timers[word.job, word.attempt] = timer

    def _limit(self, job: Job) -> float:
        """Return how long a job may take.

        One that is long wherever it runs must get through some day: every time-out doubles it.
        """
        return self.settings.timeout * job.expected * 2.0 ** min(job.timed_out, DOUBLINGS)

    def _stop_timer(self, number: int, attempt: int) -> None:
        timer = self._timers.pop((number, attempt), None)
        if timer is not None:
            timer.cancel()

    def _time_out(self, word: Send, limit: float) -> None:
        key = (word.job, word.attempt)
        self._timers.pop(key, None)
        job = self.book.jobs.get(word.job)
        if job is None or job.stage != Stage.sent or job.attempt != word.attempt:
            return
        # it may have been paused meanwhile, or have started late
        if (wait := self.until(self._begun(job) + limit)) > 0 and self._loop is not None:
            self._timers[key] = self._loop.call_later(wait, self._time_out, word, limit)
            return
        self.hear(_Overdue(word))

    def _begun(self, job: Job) -> float:
        """Return since when a job's time limit runs.

        Where retries have no limit, as published, that is when it was sent.
        """
        if self.settings.retries is None:
            return job.sent
        return job.sent + STARTING / self.unit if math.isnan(job.started) else job.started

    def _overdue(self, word: Send, turn: _Turn) -> None:
        """Note that a job takes too long, and do what is to be done then."""
        now, then, name = self.now(), self.settings.on_timeout, self.executor.machines[word.machine]
        times = f"{self.settings.timeout:g} times what was expected"
        why = f"it took more than {times} on machine {name}"
        said = self.book.timed_out(now, word.job, word.attempt, then=then, why=why)
        if said is None:  # it has ended meanwhile
            return
        self.timed_out += 1
        if then in ("resubmit", "duplicate") and self.book.machines[word.machine].up:
            then = "stopped"
        turn.note(Entry(now, "timed out", word.job, word.attempt, name, then))
        turn.out += said
        job = self.book.jobs[word.job]
        if self.settings.retries is not None and word.attempt in job.copies and self._loop:
            later = self._loop.call_later(
                self._limit(job) * self.unit, self.hear, _CopyOverdue(word)
            )
            self._timers[word.job, word.attempt] = later

    def _settle(self, number: int, result: bytes, error: Exception | None) -> None:
        """Give a job's result to whoever waits for it."""
        future = self.futures.get(number)
        if future is not None and not future.done():
            if error is not None:
                future.set_exception(error)
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

    def _refuse(self, word: _Word) -> None:
        if isinstance(word, Submission) and not word.future.done():
            word.future.set_exception(InputError(f"the grid has stopped: {self.broken}"))
        elif isinstance(word, _Call) and not word.answer.done():
            word.answer.set_exception(InputError(f"the grid has stopped: {self.broken}"))


def _in_vain(job: Job) -> str:
    """Say how the attempts at a job ended that was given up."""
    causes = Counter(job.causes)
    words = [f"{why} ({n} times)" if n > 1 else why for why, n in causes.items()]
    times = f"{len(job.causes)} attempts" if len(job.causes) > 1 else "1 attempt"
    return f"job {job.number} was given up after {times}: {', '.join(words)}"


class _Turn:
    """What comes of one turn."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.submitted: list[tuple[int, bytes]] = []
        self.results: list[tuple[int, bytes, str]] = []
        self.out: list[Instruction] = []
        self.done: list[Callable[[], None]] = []
        self.note = self.entries.append

    def add(self, answer: tuple[list[Instruction], list[Entry]]) -> None:
        """Add what beliefs came to."""
        self.out += answer[0]
        self.entries += answer[1]
