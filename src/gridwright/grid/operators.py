"""The actions of operators on a running grid, requested in this process or in another."""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from ..model import GridTimeoutError, InputError, did_you_mean
from .event import Entry
from .future import Answers
from .job import PUNCTUALITIES, Instruction, Stage
from .journal import IN_MEMORY, Journal
from .journal_queries import Statistics, statistics
from .mapper import Mapper
from .prediction import Prediction
from .progress import Status
from .slots import hosts_of, slots_on
from .turn import patiently

VERBS = ("start", "pause", "resume", "drain", "ping", "kill", "fail", "impose", "predict")
Found = TypeVar("Found")
_Action = Callable[..., Coroutine[Any, Any, Any]]
GLANCE = 0.2
"""Seconds between checks for requests of other processes."""


def _on_every_slot(verb: _Action) -> _Action:
    """Let an action on a machine with several slots do the same to each of them.

    It returns the largest of what they return: whether any has changed, or the slowest answer.
    """

    @wraps(verb)
    async def act(self: Operators, machine: str, *rest: Any, **options: Any) -> Any:
        executor = self.mapper.executor
        slots = [] if machine in executor.machines else slots_on(executor, machine)
        names = slots or [machine]
        return max(await asyncio.gather(*(verb(self, name, *rest, **options) for name in names)))

    return act


class Operators:
    """The actions of operators, in the thread of the grid's event loop.

    The name of a machine with several slots stands for all of them.
    """

    def __init__(self, mapper: Mapper) -> None:
        self.mapper, self.book = mapper, mapper.book
        self.away: dict[int, set[str]] = {}
        """Why machines are away: ``killed``, ``taken`` for some time, or ``failed``.

        A machine comes back when no reason is left, or when an operator starts it.
        """
        self.more: dict[str, Callable[[], Awaitable[Any]]] = {}
        """Further requests to this grid as a whole, by name."""
        self.usual: dict[int, float] = {}
        """CPU availabilities that are imposed on machines unless an operator imposes others."""
        self._ends: set[asyncio.Task[None]] = set()
        self._later: dict[tuple[str, int], asyncio.TimerHandle] = {}

    def status(self) -> Status:
        """Return the present state: queues, machines, assumed rates, counts."""
        mapper, book, able = self.mapper, self.book, self.book.able()
        copies = {machine: job for machine, (job, _) in book.held.items()}
        jobs = [job or copies.get(machine) for machine, job in enumerate(book.running)]
        running = [None if job is None else job.number for job in jobs]
        hosts = hosts_of(mapper.executor)
        now = {
            "policy": str(book.policy),
            "classes": {
                name: {
                    "waiting": len(book.waiting[i]),
                    "arrived": int(book.classes[i].arrived),
                    "machines": int(able[i]),  # 0: no machine can run it now
                }
                for i, name in enumerate(mapper.classes)
            },
            "machines": {
                name: {
                    "up": bool(book.machines[j].up),
                    "paused": bool(book.closed[j]),
                    "running": running[j],
                    "queued": len(book.own[j]),
                    "host": hosts[j],  # the machine that it is a slot of
                }
                for j, name in enumerate(mapper.executor.machines[: len(book.machines)])
            },  # a worker that is just joining is not in the book yet
            "rates": book.nominal.tolist(),
            "plans": book.plans,
            "refusals": book.refusals,
            "late_answers": mapper.late_answers,
            "deaths": mapper.deaths,  # of processes that ran a job
            "timed_out": mapper.limits.exceeded,
            "retried": book.retried,  # how often a job was tried again after one of these
            "given_up": mapper.given_up,  # jobs without retries left
            "broken": mapper.broken,
            "held_up": self.held_up(),
            "blocked": len(book.blocked),
            "deadlines": {word: mapper.deadlines[word] for word in PUNCTUALITIES},
            "ended": {str(stage): mapper.ended[stage] for stage in Stage if stage.is_final},
        }
        return Status(now)

    def held_up(self) -> str:
        """Say why waiting jobs do not run, or return an empty text."""
        mapper, book = self.mapper, self.book
        if mapper.stuck:
            names = ", ".join(mapper.classes[i] for i in sorted(mapper.stuck))
            return f"no machine can run class {names} now; is a machine paused or killed?"
        if book.homeless:
            names = ", ".join(book.homeless)
            return f"jobs wait for machine {names}, which the grid does not have"
        away = [j for j, own in enumerate(book.own) if own and not book.can_take(j)]
        if away:
            names = ", ".join(mapper.executor.machines[j] for j in away)
            return f"jobs wait for machine {names}; is it paused or killed?"
        if any(book.waiting) and not any(book.running):
            return "no machine is busy, and the policy starts none of the waiting jobs"
        return ""

    def withdraw(self, numbers: Sequence[int]) -> Future[list[int]]:
        """Cancel those of some jobs that no machine runs yet; return a future of their numbers."""
        mapper, found, answer = self.mapper, list[int](), Future[list[int]]()

        def withdraw(now: float) -> list[Instruction] | None:
            found.extend(filter(mapper.is_waiting, numbers))
            said = [each for number in found for each in mapper.withdraw(now, number) or ()]
            return said if found else None

        def done(asked: Future[bool]) -> None:
            error = asked.exception()
            answer.set_result(found) if error is None else answer.set_exception(error)

        why = {"why": "they waited when the grid was shut down"}
        entry = Entry(mapper.now(), "cancelled", fields=why)
        mapper.call(withdraw, entry).add_done_callback(done)
        return answer

    @_on_every_slot
    async def start(self, machine: str) -> bool:
        """Start a machine that was killed or has failed; its paused state does not change."""
        number = self._number(machine)
        self.away.pop(number, None)
        if self.book.machines[number].up:
            return False
        self.mapper.note("started again", machine)
        self.mapper.executor.repair(number)
        return True

    @_on_every_slot
    async def pause(self, machine: str) -> bool:
        """Give a machine no more jobs; its running job continues. Return False if it had paused."""
        number, book = self._number(machine), self.book
        return await self._tell(
            "paused", machine, lambda now: None if book.closed[number] else book.close(now, number)
        )

    @_on_every_slot
    async def resume(self, machine: str) -> bool:
        """Give a machine jobs again; start it if it was killed."""
        number, book = self._number(machine), self.book
        was_killed = "killed" in self.away.get(number, ())
        if was_killed:  # a failed machine stays away until it is repaired
            self.bring_back(number, "killed")
        return await self._tell(
            "resumed",
            machine,
            lambda now: book.open(now, number) if was_killed or book.closed[number] else None,
        )

    @_on_every_slot
    async def drain(self, machine: str) -> bool:
        """Give a machine no more jobs, and wait until its running job has ended."""
        number = self._number(machine)
        await self.pause(machine)
        while self.book.running[number] is not None or number in self.book.held:
            await asyncio.sleep(0.02)
        return True

    @_on_every_slot
    async def ping(self, machine: str) -> float:
        """Return the seconds that a machine takes to answer."""
        try:
            return await self.mapper.executor.ping(self._number(machine))
        except TimeoutError:
            raise GridTimeoutError(f"machine {machine} does not answer") from None

    @_on_every_slot
    async def kill(self, machine: str) -> bool:
        """Kill a machine, even in the middle of a job, until it is resumed."""
        number = self._number(machine)
        self.mapper.note("killed", machine)
        self.take_away(number, "killed")
        return True

    @_on_every_slot
    async def fail(self, machine: str, period: float, *, silent: bool = False) -> bool:
        """Take a machine away for some time units: it loses its job."""
        number = self._number(machine)
        if not period > 0:
            raise InputError(f"a failure of {period:g} time units; expected more than 0")
        self.mapper.note("failure", machine, period=period)
        self.take_away(number, "taken", silent=silent)

        def repair() -> None:
            self.mapper.note("repair", machine)
            self.bring_back(number, "taken")

        self._after(period, "repair", number, repair)
        return True

    def take_away(self, number: int, why: str, *, silent: bool = False) -> None:
        """Let a machine fail; it stays away for as long as there is a reason."""
        self.away.setdefault(number, set()).add(why)
        self.mapper.executor.fail(number, silent=silent)

    def bring_back(self, number: int, why: str) -> None:
        """End a reason why a machine is away; repair it if no other is left."""
        left = self.away.setdefault(number, set())
        left.discard(why)
        if not left:
            self.mapper.executor.repair(number)

    @_on_every_slot
    async def impose(self, machine: str, availability: float, period: float) -> bool:
        """Give a machine's jobs a share of its CPU for some time units, and let the grid know."""
        number, executor = self._number(machine), self.mapper.executor
        if not (0 < availability <= 1 and period > 0):
            raise InputError(
                f"availability {availability:g} for {period:g} time units; "
                "expected more than 0, at most 1, and a period of more than 0"
            )
        beliefs = self.mapper.beliefs

        def end() -> None:
            entry = Entry(self.mapper.now(), "availability free", machine=machine)
            self.mapper.call(lambda now: beliefs.impose(number, None, now), entry)
            task = asyncio.create_task(executor.impose(number, self.usual.get(number, 1.0)))
            self._ends.add(task)
            task.add_done_callback(self._ends.discard)

        await executor.impose(number, availability)
        self._after(period, "impose", number, end)
        return await self._tell(
            "availability imposed",
            machine,
            lambda now: beliefs.impose(number, availability, now),
            availability=availability,
        )

    @_on_every_slot
    async def predict(self, machine: str, prediction: Any) -> bool:
        """Change how a machine's CPU availability is predicted."""
        number, way = self._number(machine), Prediction.of(prediction)
        if not self.mapper.settings.resolution > 0:
            raise InputError("availability is not predicted, because resolution is 0")
        self.mapper.note("prediction", machine, mode=way.mode)
        self.mapper.executor.predict(number, way)
        return True

    async def serve(self) -> None:
        """Answer the requests of other processes in the journal, until cancelled."""
        journal, seen = self.mapper.journal, -1
        busy: set[asyncio.Task[None]] = set()
        taken: set[int] = set()
        try:
            while True:
                if (touched := journal.touched()) != seen:
                    seen = touched
                    for request in journal.requests():
                        if request.number not in taken:
                            taken.add(request.number)
                            busy.add(asyncio.create_task(self._do(request)))
                busy = {task for task in busy if not task.done()}
                await asyncio.sleep(GLANCE)
        finally:
            for task in busy:
                task.cancel()

    async def _do(self, request: Any) -> None:
        try:
            if request.verb in self.more:
                found = await self.more[request.verb]()
            elif request.verb in VERBS:
                verb: Callable[..., Awaitable[Any]] = getattr(self, request.verb)
                values = _values(request)
                names = _takes(verb)
                if len(values) != len(names):
                    raise InputError(
                        f"{request.verb} takes {' and '.join(names) or 'no values'}; got "
                        f"{len(values)} value{'' if len(values) == 1 else 's'}"
                    )
                found = await verb(request.machine, *values)
            else:
                raise InputError(f"cannot {request.verb}")
            answer = (
                f"{found:.6f}" if isinstance(found, float) else "done" if found else "as it was"
            )
        except GridTimeoutError as error:
            answer = f"timeout: {error}"
        except (InputError, TypeError, ValueError) as error:
            answer = f"error: {error}"
        with contextlib.suppress(Exception):  # the grid may have been closed
            await patiently(lambda: self.mapper.journal.answer(request.number, answer))

    def _number(self, machine: str) -> int:
        names = self.mapper.executor.machines
        if machine not in names:
            hint = did_you_mean(machine, names) or f"; there are {', '.join(names)}"
            raise InputError(f"no machine {machine!r}{hint}")
        return names.index(machine)

    def _after(self, period: float, kind: str, number: int, what: Callable[[], None]) -> None:
        """Do something after some time units, in place of the last such plan."""
        if (kind, number) in self._later:
            self._later[kind, number].cancel()
        due = self.mapper.now() + period

        def look() -> None:
            wait = self.mapper.until(due)
            if wait > 0:  # it was paused meanwhile
                self._later[kind, number] = loop.call_later(wait, look)
            else:
                what()

        loop = asyncio.get_running_loop()
        self._later[kind, number] = loop.call_later(period * self.mapper.unit, look)

    async def _tell(
        self, kind: str, machine: str, what: Callable[[float], Any], **fields: Any
    ) -> bool:
        entry = Entry(self.mapper.now(), kind, machine=machine, fields=fields)
        return await asyncio.wrap_future(self.mapper.call(what, entry))


class OperatedGrid(ABC):
    """A grid with the actions of operators as methods that wait until they are done."""

    operators: Operators
    journal: Journal
    _answers: Answers

    @property
    def _sends_modules(self) -> bool:
        """Whether its machines cannot import modules that lie beside the script."""
        return bool(getattr(self.operators.mapper.executor, "lacks_modules", False))

    @abstractmethod
    def _wait_for(self, what: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the grid's event loop, and wait for it."""

    @abstractmethod
    def _in_loop(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread of the grid's event loop."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise GridClosedError if the grid is closed."""

    def _read(self, query: Callable[[Journal], Found]) -> Found:
        """Query one state of the journal in this thread; the event loop does not wait for it."""
        self._check_open()
        if self.journal.path == IN_MEMORY:  # only the connection of the loop can read it
            found: Found = self._in_loop(lambda: query(self.journal))
            return found
        with self.journal.reader() as journal:
            return query(journal)

    def pause(self, machine: str) -> bool:
        """Give a machine no more jobs; its running job continues."""
        return bool(self._wait_for(self.operators.pause(machine)))

    def resume(self, machine: str) -> bool:
        """Give a machine jobs again; start it if it was killed."""
        return bool(self._wait_for(self.operators.resume(machine)))

    def drain(self, machine: str) -> None:
        """Give a machine no more jobs, and wait until its running job has ended."""
        self._wait_for(self.operators.drain(machine))
        self._answers.give()

    def ping(self, machine: str) -> float:
        """Return the seconds that a machine takes to answer."""
        return float(self._wait_for(self.operators.ping(machine)))

    def kill(self, machine: str) -> None:
        """Kill a machine, even in the middle of a job, until it is resumed."""
        self._wait_for(self.operators.kill(machine))

    def fail(self, machine: str, for_: float) -> None:
        """Take a machine away for some seconds: it loses its job, which runs again."""
        self._wait_for(self.operators.fail(machine, for_))

    def impose(self, machine: str, availability: float, period: float) -> None:
        """Give a machine's jobs a share of its CPU for some seconds, and let the grid know."""
        self._wait_for(self.operators.impose(machine, availability, period))

    def predict(self, machine: str, prediction: Any) -> None:
        """Change how a machine's CPU availability is predicted: the name of a mode, or a table."""
        self._wait_for(self.operators.predict(machine, prediction))

    def statistics(self, within: Sequence[float] = ()) -> Statistics:
        """Return statistics of the jobs so far: waiting times, delays, responses, rates.

        ``within`` are times in seconds: the share of the finished jobs that responded within each
        of them is among the tails, beside the percentiles of the response.
        """
        return self._read(lambda journal: statistics(journal, within=within))

    def status(self) -> Status:
        """Return the present state: queues, machines, assumed rates, counts.

        It is a dictionary; printed, it says the same in words.
        """
        found: Status = self._in_loop(self.operators.status)
        return found


def _takes(verb: Callable[..., Any]) -> list[str]:
    """Return what a verb takes besides the machine."""
    given = list(signature(verb).parameters.values())[1:]
    return [each.name for each in given if each.kind is each.POSITIONAL_OR_KEYWORD]


def _values(request: Any) -> list[Any]:
    """Return the arguments of a request: numbers, or a prediction as JSON."""
    if request.verb == "predict":
        return [json.loads(request.value or "{}")]
    return [float(word) for word in request.value.split()]
