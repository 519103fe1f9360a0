"""A grid: send it your own functions, and a policy decides where they run."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from threading import Condition, Lock, Thread
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..model import GridClosedError, InputError
from ..policies import Policy
from ..policies import find as find_policy
from .corrections import Corrections, corrections_of
from .executors import Executor
from .future import Answers, JobFuture
from .given import check_function, check_name, check_retries, executor_of, names_of, rates_of
from .job import Instruction, Stage
from .journal import Entry, Journal, home
from .mapper import Mapper, Submission
from .operators import Operators
from .settings import Settings
from .statistics import Statistics, statistics
from .worker import LARGEST

__all__ = ["Grid"]

LOGGER = logging.getLogger(__name__)
UNNAMED = "1"
"""The class of jobs that are submitted without one, where the grid was given no classes."""
LOOK = 1.0
"""Seconds between looks at what a grid that is shut down is still waiting for,"""
LOOKS = 3
"""and looks in a row that must find nothing going on before it says so."""
LAST = 1.0
"""Seconds for which a grid that is closed waits for callbacks."""


def _cloudpickle() -> Any:
    try:
        import cloudpickle
    except ImportError:
        raise InputError("a grid needs cloudpickle: pip install 'gridwright[grid]'") from None
    return cloudpickle


class Grid:
    """Machines that run your functions where a policy puts them.

    Parameters
    ----------
    policy
        A push or pull policy, by name, file or itself.
    machines
        How many machines, or their names: a process each, two unless told; or those workers of a
        cluster, all unless told.
    executor
        ``local``: processes of this computer; ``dask``: workers of a cluster; or one of your own.
    address
        That of the cluster's scheduler, ``tcp://HOST:PORT``.
    classes
        Names of the task classes; further ones are added as they come. A job without a class
        belongs to the first of these, or to ``1`` if there are none.
    rates
        Execution rates [class, machine] to begin with; all alike unless given. Measured ones take
        their place.
    journal
        The file that remembers everything; one that is there already is gone on with: jobs that
        have not ended are run again.
    timeout
        A job times out when it takes this many times what is expected; 0: never. Every time-out
        doubles the job's next limit.
    on_timeout
        What happens then. ``fail``: the job is stopped and fails. ``resubmit``: it is stopped and
        tried again. ``duplicate``: it goes on, a copy of it is started elsewhere, and the first
        answer counts. ``wait``: it goes on.
    retries
        How often a job is tried again after its process died, or after it timed out; then its
        future raises `JobLostError`. Jobs that an operator or a worker that leaves interrupts are
        always tried again.
    corrections
        Which beliefs follow the measurements: ``True``, ``False``, or `Corrections`.
    resolution
        Seconds between readings of the machines' CPU availability; 0: none are taken.

    Examples
    --------
    >>> with Grid("fcfs", machines=2) as grid:
    ...     future = grid.submit(pow, 2, 10)
    ...     future.result(timeout=60)
    1024
    """

    def __init__(
        self,
        policy: Policy | str = "pas_dg",
        machines: int | Sequence[str] | None = None,
        *,
        executor: Executor | str = "local",
        address: str = "",
        classes: Sequence[str] = (),
        rates: Any = None,
        journal: str | Path | None = None,
        timeout: float = 0.0,
        on_timeout: str = "fail",
        retries: int = 2,
        corrections: Corrections | bool = True,
        resolution: float = 0.0,
    ) -> None:
        chosen = find_policy(policy)
        check_retries(retries)
        names = names_of(classes, "classes") or ([] if rates is None else [UNNAMED])
        settings = Settings(
            timeout=timeout,
            on_timeout=on_timeout,
            corrections=corrections_of(corrections),
            guessed=rates is None,
            resolution=resolution,
            retries=retries,
        )
        executor = executor_of(executor, machines, address)
        prior = rates_of(rates, names, len(executor.machines))
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
        self.journal = Journal(Path(journal or home() / "grids" / f"{stamp}.sqlite"))
        try:
            self.journal.claim()
            zero = self._begin(executor, chosen)
            arrivals = np.ones(len(names))
            self.mapper = Mapper(
                chosen,
                executor,
                self.journal,
                names,
                prior,
                arrivals,
                settings,
                clock=time.monotonic,
                zero=zero,
            )
        except InputError:
            self.journal.close()
            raise
        self.operators = Operators(self.mapper)
        self._answers = Answers()
        self._next = 0
        self._unnamed = names[0] if names else UNNAMED
        self._pending: dict[int, JobFuture] = {}
        """Futures of the jobs that have not ended."""
        self._ended = Condition()
        self._closing, self._leaving, self._closed = Lock(), False, False
        self.unfinished = self._adopt()
        """Futures of the jobs that an earlier grid left unfinished, by number."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="gridwright", daemon=True)
        self._thread.start()
        self._serving: Future[None] | None = None
        try:
            self._wait_for(self.mapper.open())
            self._serving = asyncio.run_coroutine_threadsafe(self.operators.serve(), self._loop)
        except BaseException:
            self.close()
            raise

    def submit(
        self, function: Callable[..., Any], /, *args: Any, task_class: str = "", **kwargs: Any
    ) -> JobFuture:
        """Send a call to the grid; its result is that of the future."""
        cloudpickle = _cloudpickle()
        self._check_open()
        if self._leaving:
            raise GridClosedError("the grid is shut down: it takes no more jobs")
        check_function(function)
        if task_class:
            check_name(task_class, "task_class")
        try:
            work = cloudpickle.dumps((function, args, kwargs))
        except Exception as error:
            name = getattr(function, "__name__", function)
            raise InputError(f"{name} and its arguments cannot be pickled: {error}") from None
        if len(work) > LARGEST:
            raise InputError(
                f"the pickled call has {len(work):,} bytes; expected at most {LARGEST:,}"
            )
        number, self._next = self._next, self._next + 1
        future = self._future(number)
        try:
            self._loop.call_soon_threadsafe(self._take, number, task_class, work, future)
        except RuntimeError:  # its loop was closed meanwhile
            raise GridClosedError("the grid is closed") from None
        return future

    def map(
        self, function: Callable[..., Any], *iterables: Iterable[Any], task_class: str = ""
    ) -> list[JobFuture]:
        """Send a call for every set of arguments, as ``map`` takes them."""
        return [
            self.submit(function, *args, task_class=task_class)
            for args in zip(*iterables, strict=False)
        ]

    def cancel(self, number: int) -> bool:
        """Take a job back; False if it has ended."""
        taken = self._take_back(number)
        if taken and (future := self._pending.get(number)) is not None:
            future.mark_cancelled()
        return taken

    def _take_back(self, number: int) -> bool:
        book = self.mapper.book
        entry = Entry(self.mapper.now(), "cancelled", number)
        return self._tell(
            lambda now: book.cancel(now, number) if number in book.jobs else None, entry
        )

    def pause(self, machine: str) -> bool:
        """Let a machine take no further jobs; what it is running goes on."""
        return bool(self._wait_for(self.operators.pause(machine)))

    def resume(self, machine: str) -> bool:
        """Let a machine take jobs again; one that was killed is started again."""
        return bool(self._wait_for(self.operators.resume(machine)))

    def drain(self, machine: str) -> None:
        """Let a machine take no further jobs, and wait until it has ended what it is running."""
        self._wait_for(self.operators.drain(machine))
        self._answers.give()

    def ping(self, machine: str) -> float:
        """Return the seconds that a machine takes to answer."""
        return float(self._wait_for(self.operators.ping(machine)))

    def kill(self, machine: str) -> None:
        """End a machine, in the middle of a job too, until it is resumed."""
        self._wait_for(self.operators.kill(machine))

    def fail(self, machine: str, for_: float) -> None:
        """Take a machine away for so many seconds: it loses its job, which runs again."""
        self._wait_for(self.operators.fail(machine, for_))

    def impose(self, machine: str, availability: float, period: float) -> None:
        """Have a machine's CPU availability taken to be so much, for so many seconds."""
        self._wait_for(self.operators.impose(machine, availability, period))

    def predict(self, machine: str, prediction: Any) -> None:
        """Have a machine's CPU availability predicted in another way: a mode's name or a table."""
        self._wait_for(self.operators.predict(machine, prediction))

    def statistics(self) -> Statistics:
        """Return how jobs have fared so far: waiting, delays, response, rates."""
        return self._in_loop(lambda: statistics(self.journal))

    def status(self) -> dict[str, Any]:
        """Return how things stand: queues, machines, rates as they are believed."""
        book, names = self.mapper.book, self.mapper.executor.machines

        def look() -> dict[str, Any]:
            running = [None if job is None else job.number for job in book.running]
            return {
                "policy": str(book.policy),
                "classes": {
                    name: {
                        "waiting": len(book.waiting[i]),
                        "arrived": int(book.classes[i].arrived),
                        "machines": book.able(i),  # 0: nobody can run it now
                    }
                    for i, name in enumerate(self.mapper.classes)
                },
                "machines": {
                    name: {
                        "up": bool(book.machines[j].up),
                        "paused": bool(book.closed[j]),
                        "running": running[j],
                        "queued": len(book.own[j]),
                    }
                    for j, name in enumerate(names)
                },
                "rates": book.nominal.tolist(),
                "plans": book.plans,
                "refusals": book.refusals,
                "late_answers": self.mapper.late_answers,
                "deaths": self.mapper.deaths,  # of processes that ran a job
                "timed_out": self.mapper.timed_out,
                "given_up": self.mapper.given_up,  # jobs without retries left
                "broken": self.mapper.broken,
            }

        return self._in_loop(look)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs, and close the grid when all that were submitted have ended.

        Parameters
        ----------
        wait
            Wait for that, and for the callbacks of their futures. Otherwise return at once: the
            grid closes by itself, and the interpreter does not exit before.
        cancel_futures
            Cancel the jobs that wait; those that run go on.
        """
        if self._closed:
            return
        self._leaving = True
        try:
            if cancel_futures:
                self._cancel_waiting()
            if wait:
                self._finish()
            else:
                Thread(target=self._finish, name="gridwright shutdown").start()
        except BaseException:  # Ctrl-C: who interrupts this wants to leave
            self.close()
            raise

    def close(self) -> None:
        """Stop the machines now. Jobs that have not ended stay in the journal.

        Their futures raise `GridClosedError`; another grid with the same journal runs them.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
        if self._serving is not None:
            self._serving.cancel()
        asyncio.run_coroutine_threadsafe(self.mapper.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(_end_the_rest())
        self._loop.close()
        self.journal.close()
        for number, future in list(self._pending.items()):
            words = f"the grid was closed before job {number} had ended; a Grid with the journal "
            self._answers.refuse(future, GridClosedError(f"{words}{self.journal.path} runs it"))
        self._answers.close(LAST)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for all jobs and close; after an exception, close at once."""
        if kind is None:
            self.shutdown()
        else:
            self.close()

    # details

    def _begin(self, executor: Executor, policy: Policy) -> float:
        """Say in the journal what the grid is; return when it began, by our clock."""
        about = self.journal.about
        origin = float(about.get("origin", time.time()))
        self.journal.describe(
            kind="grid", origin=origin, unit=1.0, policy=str(policy), machines=executor.machines
        )
        return time.monotonic() - (time.time() - origin)

    def _adopt(self) -> dict[int, JobFuture]:
        """Take over what an earlier grid has left in the journal."""
        futures: dict[int, JobFuture] = {}
        for kept in self.journal.jobs():
            job = kept.job
            self._next = max(self._next, job.number + 1)
            if job.stage.is_final:
                continue
            if job.stage == Stage.sent:
                job.lost += 1
            future = futures[job.number] = self._future(job.number)
            known = self.mapper.classes
            number = (
                known.index(kept.task_class)
                if kept.task_class in known
                else self.mapper.add_class(kept.task_class)
            )
            raw = self._answers.to(future)
            self.mapper.adopt(job, number, Submission(job.number, number, kept.work, raw))
        return futures

    def _take(self, number: int, name: str, work: bytes, future: JobFuture) -> None:
        """Give a job to the mapper. In the loop's own thread."""
        known = self.mapper.classes
        name = name or self._unnamed
        task_class = known.index(name) if name in known else self.mapper.add_class(name)
        self.mapper.hear(Submission(number, task_class, work, self._answers.to(future)))

    def _future(self, number: int) -> JobFuture:
        """Make the future of a job, and note that it has not ended."""
        future = self._pending[number] = JobFuture(number, self._take_back, self._answers)
        Future.add_done_callback(future, self._has_ended)
        return future

    def _has_ended(self, future: Future[Any]) -> None:
        assert isinstance(future, JobFuture)
        del self._pending[future.number]
        if not self._pending:
            with self._ended:
                self._ended.notify_all()

    def _finish(self) -> None:
        """Wait until all jobs have ended, say once what holds them up, and close."""
        looked = 0
        with self._ended:
            while not self._ended.wait_for(lambda: not self._pending, LOOK):
                why = self._held_up()
                looked = looked + 1 if why else 0
                if looked == LOOKS:
                    LOGGER.warning(
                        "the grid waits for its jobs (%d left): %s", len(self._pending), why
                    )
        self._answers.give(callbacks=None)
        self.close()

    def _held_up(self) -> str:
        """Say why jobs wait that nobody runs; "" if there are none."""
        book, mapper = self.mapper.book, self.mapper

        def look() -> str:
            if mapper.stuck:
                names = ", ".join(mapper.classes[i] for i in sorted(mapper.stuck))
                return f"no machine can run class {names} now; is one paused or killed?"
            if any(book.waiting) and not any(book.running):
                return "no machine runs anything, and the policy starts none of those that wait"
            return ""

        try:
            return str(self._in_loop(look))
        except GridClosedError:  # meanwhile, by another thread
            return ""

    def _cancel_waiting(self) -> None:
        """Take back the jobs that no machine runs yet."""
        book, found = self.mapper.book, list[int]()

        def take_back(now: float) -> list[Instruction]:
            found.extend(job.number for queue in (*book.waiting, *book.own) for job in queue)
            return [word for number in found for word in book.cancel(now, number) or ()]

        self._tell(take_back, Entry(self.mapper.now(), "cancelled", detail="all that waited"))
        for number in found:
            if (future := self._pending.get(number)) is not None:
                self._answers.cancelled(future)

    def _tell(self, what: Callable[[float], Any], entry: Entry) -> bool:
        return self._in_loop(lambda: self.mapper.call(what, entry)).result()

    def _check_open(self) -> None:
        if self._closed:
            raise GridClosedError("the grid is closed")

    def _wait_for(self, what: Coroutine[Any, Any, Any]) -> Any:
        try:
            self._check_open()
        except GridClosedError:
            what.close()
            raise
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def _in_loop(self, function: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return function()

        return self._wait_for(run())


async def _end_the_rest() -> None:
    """End what was asked of a grid in the moment in which it was closed."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
