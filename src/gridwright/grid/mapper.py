"""The mapper: connects the book, the executor and the journal.

It lives in an event loop and works in turns. A turn enters the messages since the last one into
the book and writes the changes to the journal in one transaction. Only then does it instruct the
executor and deliver results.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from ..model import GridClosedError, InputError, JournalError
from ..policies import Policy
from .beliefs import Beliefs
from .book import Book
from .event import Entry
from .executors import Ended, Event, Executor, MachineDown, MachineUp, Reading, Returned, Started
from .future import RemoteError
from .job import CallBack, Cancel, Instruction, Job, Send, Stage
from .journal import IN_MEMORY, Journal
from .losses import keep_paused, note_down, note_losses, note_reading, note_stuck, note_up
from .settings import Settings
from .slots import hosts_of
from .time_limit import Overdue, TimeLimits
from .turn import (
    RETRY,
    ROWS,
    Answer,
    Calls,
    Change,
    Pace,
    Patience,
    Planned,
    Planning,
    Submission,
    Turn,
)
from .worker import LARGEST, cut, with_results

INSTANT = 1e-6
"""Seconds that count as no time."""
MANY = 8
"""Waiting jobs of a batch for which plain Python is too slow."""
AGAIN = 0.01
"""Seconds until a clock that stands still is read again, at the earliest."""
LAST_TRY = 5.0
"""Seconds for which a grid that closes waits for its journal."""


_Word = Submission | Event | Overdue | Change | Planned


class Mapper:
    """Runs a policy on real machines.

    Times are in units of ``unit`` seconds since ``zero`` on the clock.
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
        believed, retries = (rates, arrivals, availability), settings.retries
        start, times = self.now(), settings.times
        self.book = Book(policy, *believed, up=False, start=start, retries=retries, times=times)
        guessed, hosts = settings.guessed, hosts_of(executor)
        self.beliefs = Beliefs(self.book, settings.corrections, guessed=guessed, hosts=hosts)
        self.futures: dict[int, Answer] = {}
        self.works = Calls(journal)
        self.prepare: Callable[[Job, bytes], bytes] = lambda job, work: work
        """Turns a submitted call into the one that is sent to a machine."""
        self.begun: Callable[[int, str], None] = lambda number, machine: None
        """Called when a machine has started a job."""
        self.limits = TimeLimits(self)
        self.late_answers = self.deaths = self.given_up = 0
        self.ended: Counter[Stage] = Counter()
        """How many jobs have ended, by their last stage."""
        self.deadlines: Counter[str] = Counter()
        """How many jobs with a deadline were on time, late or discarded."""
        self.stuck: set[int] = set()
        """Classes with waiting jobs that no machine can run now."""
        self.broken: str = ""
        self._wrong: Exception = GridClosedError("the grid is closed")
        """What is raised for messages that come too late."""
        self._inbox: deque[_Word] = deque()
        self._coming: deque[Submission] = deque()
        self._on_their_way: set[int] = set()
        self._withdrawn: set[int] = set()
        """Jobs that were cancelled before they were in the book."""
        self._pausing: asyncio.TimerHandle | None = None
        self._unwritten: Turn | None = None
        """The turn that waits to be written; later turns wait for it."""
        self._patience = Patience(journal.path)
        self._closed = False
        self._pace = Pace()
        self._planning = Planning(self.book, self.hear)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False
        self._planned = 0
        self.book.ahead.measured = self.beliefs.learner.duration
        self.book.ahead.size_of = self.works.size_of
        if retries is not None:  # not in published experiments
            self.book.ahead.most = getattr(executor, "most_ahead", 0)
        if journal.path != IN_MEMORY:  # in virtual time a turn may take long
            self.book.enough, self.book.many = self._pace.is_spent, MANY
            self.book.plans_beside = self._planning.takes_long
            self.book.beside = self._planning.beside

    async def open(self) -> None:
        """Start the executor's machines."""
        self._loop = asyncio.get_running_loop()
        self._pace.clock = self._loop.time
        keep_paused(self, range(len(self.book.machines)))
        await self.executor.open(self.hear, self.settings.resolution * self.unit)

    async def close(self) -> None:
        """Stop; jobs that have not ended stay in the journal."""
        await self._write_the_rest()
        self.limits.close()
        await self.executor.close()
        self._planning.close()
        await self._write_the_rest()  # what came meanwhile
        self._closed = True

    async def _write_the_rest(self) -> None:
        """Wait until all submissions are in the journal, if it can be written."""
        end = 0.0
        while (self._coming or self._unwritten is not None) and not self.broken:
            if self._unwritten is not None:
                end = end or monotonic() + LAST_TRY
                if monotonic() > end:
                    self._break_journal("it was closed while the journal could not be written")
            await asyncio.sleep(0 if self._unwritten is None else RETRY)

    def now(self) -> float:
        """Return the time for the book and the journal."""
        return self.at(self.clock())

    def at(self, time: float) -> float:
        """Return a time of the clock in units since the beginning."""
        return (time - self.zero) / self.unit

    def until(self, time: float) -> float:
        """Return the seconds until a time, 0 if it has come; ask again after them.

        While the clock stands still, they are at least `AGAIN`.
        """
        left = (time - self.now()) * self.unit
        return max(left, AGAIN) if left > INSTANT else 0.0

    def hear(self, word: _Word) -> None:
        """Queue a message for the next turn, in the thread of the loop; submissions apart."""
        if self._closed:
            self._refuse(word)
        elif isinstance(word, Submission):
            self._coming.append(word)
            self._on_their_way.add(word.number)
            self._schedule()
        else:
            self._inbox.append(word)
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and self._unwritten is None and self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def call(
        self, what: Callable[[float], list[Instruction] | None], entry: Entry | None
    ) -> Future[bool]:
        """Change the book in the next turn; return a future of whether it was changed."""
        answer: Future[bool] = Future()
        self.hear(Change(what, entry, answer))
        return answer

    def note(self, kind: str, machine: str | None = None, **fields: Any) -> None:
        """Write an event of the present time to the journal, in the next turn."""
        self.call(lambda now: [], Entry(self.now(), kind, machine=machine, fields=fields))

    def adopt(self, job: Job, task_class: int, submission: Submission) -> None:
        """Add a job that an earlier grid left unfinished, with its submission time."""
        job.pinned = self.machine_of(job.options.machine)
        self.book.adopt(job, task_class, {each: self.stage_of(each) for each in job.needs})
        self.futures[job.number] = submission.future
        self.works.keep(job.number, submission.work)

    def withdraw(self, now: float, number: int) -> list[Instruction] | None:
        """Cancel a job, in the book or on its way there; return None if it has ended."""
        if number in self.book.jobs:
            return self.book.cancel(now, number)
        if number in self._on_their_way and number not in self._withdrawn:
            self._withdrawn.add(number)
            return []
        return None

    def is_waiting(self, number: int) -> bool:
        """Tell whether a job has not ended, and no machine runs it."""
        if (job := self.book.jobs.get(number)) is None:
            return number in self._on_their_way
        return job.stage in (Stage.blocked, Stage.waiting, Stage.queued)

    def class_of(self, name: str, host: str = "") -> int:
        """Return the number of a class, for all machines or one; add the class if it is new."""
        if name in self.classes:
            return self.beliefs.checked(self.classes.index(name), host)
        self.book.policy.arguments((len(self.classes) + 1, len(self.book.machines)))  # may refuse
        if self.book.times is not None:
            self.book.times.add_class(name, host)  # may refuse too
        self.classes.append(name)
        self.beliefs.add_class(np.ones(len(self.book.machines)), 1.0, host)
        return len(self.classes) - 1

    # one turn

    def _turn(self) -> None:
        self._scheduled = False
        if self._unwritten is not None:
            return
        turn = Turn()
        self._take_words(turn)
        if self.broken:
            self._refuse_all(turn)
            return
        self._collect(turn)
        self._unwritten = turn
        self._finish_turn()

    def _take_words(self, turn: Turn) -> None:
        """Handle messages for a short while; stop the grid if the policy fails."""
        try:
            self._take_each(turn)
        except Exception as error:  # the user's policy has left the book in an unknown state
            self._break(f"policy {self.book.policy.name}: {type(error).__name__}: {error}")

    def _take_each(self, turn: Turn) -> None:
        """Handle events, then submissions, then send jobs ahead."""
        book = self.book
        self._pace.begin()
        while self._inbox and not self.broken:
            self._enter(self._inbox.popleft(), turn)
            if book.enough():
                break
        turn.add(self.beliefs.correct_rates(self.now()))
        if book.unfinished and not self.broken:
            turn.out += book.go_on(self.now())
        while self._coming and not self.broken and not self._pace.left():
            self._enter(self._coming.popleft(), turn)
            if book.enough():
                self._pace.pause_after_this = any(book.running)
                break
        if not self.broken:
            turn.out += book.send_ahead(self.now())

    def _collect(self, turn: Turn) -> None:
        """Take from the book what the turn has to write."""
        turn.take_changed(self.book, most=math.inf if self.journal.path == IN_MEMORY else ROWS)
        turn.decisions, self.book.decisions = self.book.decisions, []
        note_losses(self, turn)
        if self.book.policy.planner is not None and self._planned != self.book.plans:
            self._planned = self.book.plans
            fields = {"number": self.book.plans, "shares": self.book.plan.round(4).tolist()}
            turn.note(Entry(self.now(), "plan", fields=fields))
        note_stuck(self, turn)

    def _finish_turn(self) -> None:
        """Write the turn, then act; if the journal cannot be written, try again later."""
        turn = self._unwritten
        if turn is None or self.broken:
            return
        try:
            turn.write(self.journal, self.book, self.classes, self.executor.machines, self.now())
        except Exception as error:
            if self._loop is not None and self._patience.lasts(error):
                self._loop.call_later(RETRY, self._finish_turn)
            else:
                self._break_journal(f"the journal {self.journal.path} cannot be written: {error}")
            return
        self._patience.rewarded()
        self._unwritten = None
        self._pace.end()
        for word in turn.words:
            if isinstance(word, Submission) and word.receipt is not None:
                word.receipt.keep()
        try:
            self._act(turn)
        finally:  # schedule another turn if there is more to do
            book = self.book
            if self._inbox or book.unfinished or book.moved or book.ahead.is_unfinished:
                self._schedule()
            elif self._coming and self._pausing is None and self._loop is not None:
                self._pausing = self._loop.call_later(self._pace.left(), self._end_pause)

    def _end_pause(self) -> None:
        self._pausing = None
        self._schedule()

    def _act(self, turn: Turn) -> None:
        """Act on a turn that is in the journal."""
        for done in turn.done:
            done()
        for instruction in turn.out:
            self._carry_out(instruction)
        for job in turn.changed:
            if job.stage.is_final:  # the journal has it: forget it
                self.ended[job.stage] += 1
                self.deadlines[job.punctuality] += 1
                self.works.drop(job.number)
                self.book.jobs.pop(job.number, None)
                self.futures.pop(job.number, None)
        if self.book.stale:
            self._planning.start()
        if self._loop is not None:
            self.limits.watch_deadlines(self._loop)
        if self.book.ahead.levels and self._loop is not None:
            self.limits.look_ahead(self._loop)

    def _enter(self, word: _Word, turn: Turn) -> None:
        turn.words.append(word)
        now, book = self.now(), self.book
        match word:
            case Submission():
                self._submitted(word, turn, now)
            case Started(machine, number, attempt, at) if math.isfinite(at):
                name, at = self.executor.machines[machine], self.at(at)
                book.started(at, number, attempt)
                turn.note(Entry(at, "started", number, attempt, name))
                self.begun(number, name)
            case Ended():
                self._ended(word, turn, now)
            case Returned(machine, number, attempt):
                self.limits.stop(number, attempt)
                turn.out += book.not_begun(now, number, attempt)
            case Overdue():
                self.limits.exceed(word, turn)
            case MachineUp(machine):
                note_up(self, turn, machine)
            case MachineDown():
                note_down(self, turn, word)
            case Reading(_, measured, predicted) if math.isfinite(measured + predicted):
                note_reading(self, turn, word)
            case Change(what, entry):
                said_so = what(now)
                if said_so is not None and entry is not None:
                    turn.note(entry)
                turn.out += said_so or []
                turn.done.append(partial(word.tell, said_so is not None))
            case Planned(plan):
                turn.out += book.take_plan(now, plan.result())

    def _submitted(self, word: Submission, turn: Turn, now: float) -> None:
        number = word.number
        self.futures[number] = word.future
        self.works.keep(number, word.work)
        self._on_their_way.discard(number)
        turn.submitted.append((number, word.work))
        turn.note(Entry(now, "submitted", number))
        pinned = self.machine_of(word.options.machine)
        needs = {each: self.stage_of(each) for each in word.needs}
        turn.out += self.book.submit(
            now, number, word.task_class, word.options, key=word.key, needs=needs, pinned=pinned
        )
        if self.book.jobs[number].stage != Stage.blocked:
            turn.add(self.beliefs.arrived(word.task_class, now))
        if number in self._withdrawn:
            self._withdrawn.discard(number)
            turn.out += self.book.cancel(now, number) or []

    def stage_of(self, number: int) -> Stage:
        """Return the stage of a job that was submitted before."""
        if (job := self.book.jobs.get(number)) is not None:
            return job.stage
        found = self.journal.select("stage FROM job WHERE number=?", (number,))
        return Stage(found[0][0]) if found else Stage.cancelled

    def machine_of(self, name: str) -> int:
        """Return the number of a machine, or −1 if the book has none with that name."""
        known = self.executor.machines[: len(self.book.machines)]
        return known.index(name) if name in known else -1

    def _ended(self, word: Ended, turn: Turn, now: float) -> None:
        machine, number, attempt, at, result, error = word
        name, job = self.executor.machines[machine], self.book.jobs.get(number)
        error = cut(job.named_stage(error) if error and job is not None else error)
        ended = self.at(at) if math.isfinite(at) else now
        self.limits.stop(number, attempt)
        said = self.book.finished(now, number, attempt, ended=ended, failed=bool(error))
        if said is None or job is None:
            self.late_answers += 1
            turn.note(Entry(ended, "late answer", number, attempt, name))
        else:
            turn.note(Entry(ended, "failed" if error else "finished", number, attempt, name))
            turn.results.append((number, result, error))
            turn.out += said
            wrong = RemoteError(error.rstrip(), result) if error else None
            turn.done.append(lambda: self.settle(number, result, wrong))
            if not error:
                self.beliefs.ended(job, now)
        if not self.book.up[machine]:  # it counted as down, but it answers
            turn.note(Entry(now, "up", machine=name))
            turn.out += self.book.machine_up(now, machine, self.beliefs.availability(machine))

    def _carry_out(self, word: Instruction) -> None:
        job = self.book.jobs.get(word.job)
        if self.broken:
            return
        if isinstance(word, Cancel):
            self.limits.stop(word.job, word.attempt)
            self.executor.cancel(*word)
        elif job is not None and self.book.is_out(job, word.attempt):  # not cancelled meanwhile
            if isinstance(word, CallBack):
                self.executor.call_back(*word)  # type: ignore[attr-defined]
            else:
                self._start(word, job)

    def _start(self, word: Send, job: Job) -> None:
        try:
            work = self.prepare(job, self.works.get(word.job))
            if job.needs:
                work = with_results(work, {each: self.journal.result(each) for each in job.needs})
        except InputError as error:  # the journal cannot be read
            self._break_journal(str(error))
            return
        if len(work) > LARGEST:
            why = f"its arguments have {len(work):,} bytes; expected at most {LARGEST:,}"
            self.hear(Ended(word.machine, word.job, word.attempt, self.clock(), b"", why))
            return
        self.executor.start(word.job, word.machine, word.attempt, work)
        if self._loop is not None:
            self.limits.start(self._loop, word, job)

    def settle(self, number: int, result: bytes, error: Exception | None) -> None:
        """Deliver the result of a job."""
        future = self.futures.get(number)
        if future is not None and not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

    def end_cancelled(self, number: int) -> None:
        """Tell whoever waits for a job that it was cancelled."""
        if (future := self.futures.get(number)) is not None:
            future.cancel()

    def _break(self, why: str, kind: type[Exception] = InputError) -> None:
        """Stop for good: no job may start that the journal does not have."""
        self.broken, self._wrong = why, kind(f"the grid has stopped: {why}")
        for future in self.futures.values():
            if not future.done():
                future.set_exception(self.refusal())
        self.futures.clear()

    def _break_journal(self, why: str) -> None:
        """Stop because the journal cannot be written."""
        self._break(why, JournalError)
        turn, self._unwritten = self._unwritten, None
        self._refuse_all(turn or Turn())

    def _refuse_all(self, turn: Turn) -> None:
        """Refuse the messages of a turn that failed, and all that wait."""
        words = [*turn.words, *self._inbox, *self._coming]
        self._inbox.clear()
        self._coming.clear()
        for word in words:
            self._refuse(word)

    def _refuse(self, word: _Word) -> None:
        if isinstance(word, Submission | Change):
            word.refuse(self.refusal())
        if isinstance(word, Submission) and word.receipt is not None:
            word.receipt.refuse(self.refusal())

    def refusal(self) -> Exception:
        """Return a new exception: each thread that raises one changes it."""
        return type(self._wrong)(*self._wrong.args)
