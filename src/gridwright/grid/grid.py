"""A grid: send it your own functions, and a policy decides where they run."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..model import InputError
from ..policies import Policy
from ..policies import find as find_policy
from .executors import Executor
from .executors.local import LocalExecutor
from .job import Stage
from .journal import Entry, Journal, home
from .mapper import JobFailedError, Mapper, Submission

__all__ = ["Grid", "JobFuture"]


def _cloudpickle() -> Any:
    try:
        import cloudpickle
    except ImportError:
        raise InputError("a grid needs cloudpickle: pip install 'gridwright[grid]'") from None
    return cloudpickle


LARGEST = 1 << 28
"""Bytes of a pickled call or result, at most."""


class JobFuture(Future[Any]):
    """The result of a job to come; its ``number`` is that of the journal."""

    def __init__(self, grid: Grid, number: int) -> None:
        super().__init__()
        self.grid, self.number = grid, number

    def cancel(self) -> bool:
        """Take the job back, whether it waits or runs; False if it has ended."""
        taken = not self.done() and self.grid.cancel(self.number)
        return taken and super().cancel()


class Grid:
    """Machines that run your functions where a policy puts them.

    Parameters
    ----------
    policy
        A push or pull policy, by name, file or itself.
    machines
        How many machines, or their names, for the embedded executor: a process each.
    executor
        Another executor in its place.
    classes
        Names of the task classes; further ones are added as they come.
    rates
        Execution rates [class, machine] to begin with; all alike unless given. Measured ones take
        their place.
    journal
        The file that remembers everything; one that is there already is gone on with: jobs that
        have not ended are run again.
    timeout
        A job that takes this many times what is expected is given up and sent elsewhere; 0: never.
    on_timeout
        ``resubmit``, ``wait`` or ``fail``.

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
        machines: int | Sequence[str] = 2,
        *,
        executor: Executor | None = None,
        classes: Sequence[str] = (),
        rates: Any = None,
        journal: str | Path | None = None,
        timeout: float = 0.0,
        on_timeout: str = "resubmit",
        learns: bool = True,
    ) -> None:
        if isinstance(machines, int) and machines < 1:
            raise InputError(f"machines is {machines}; expected at least 1")
        chosen = find_policy(policy)
        executor = executor or LocalExecutor(machines)
        names = list(classes) or ["1"]
        prior = np.ones((len(names), len(executor.machines))) if rates is None else rates
        prior = np.array(prior, dtype=float)
        if prior.shape != (len(names), len(executor.machines)):
            raise InputError(
                f"rates has shape {prior.shape}; expected a row for each of {len(names)} classes "
                f"with a number for each of {len(executor.machines)} machines"
            )
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
        self.journal = Journal(Path(journal or home() / "grids" / f"{stamp}.sqlite"))
        options: dict[str, Any] = {"timeout": timeout, "on_timeout": on_timeout, "learns": learns}
        try:
            self.mapper = Mapper(chosen, executor, self.journal, names, prior, **options)
        except InputError:
            self.journal.close()
            raise
        self._next = 0
        self.unfinished = self._adopt()
        """Futures of the jobs that an earlier grid left unfinished, by number."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="gridwright", daemon=True)
        self._thread.start()
        self._closed = False
        try:
            asyncio.run_coroutine_threadsafe(self.mapper.open(), self._loop).result()
        except BaseException:
            self.close()
            raise

    def submit(
        self, function: Callable[..., Any], /, *args: Any, task_class: str = "", **kwargs: Any
    ) -> JobFuture:
        """Send a call to the grid; its result is that of the future."""
        cloudpickle = _cloudpickle()
        if self._closed:
            raise InputError("the grid is closed")
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
        future = JobFuture(self, number)
        self._loop.call_soon_threadsafe(self._take, number, task_class, work, future)
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
        book = self.mapper.book
        entry = Entry(self.mapper.now(), "cancelled", number)
        return self._tell(
            lambda now: book.cancel(now, number) if number in book.jobs else None, entry
        )

    def pause(self, machine: str) -> bool:
        """Let a machine take no further jobs; what it is running goes on."""
        number = self._machine(machine)
        entry = Entry(self.mapper.now(), "paused", machine=machine)
        return self._tell(lambda now: self.mapper.book.close(now, number), entry)

    def resume(self, machine: str) -> bool:
        """Let a machine take jobs again."""
        number = self._machine(machine)
        entry = Entry(self.mapper.now(), "resumed", machine=machine)
        return self._tell(lambda now: self.mapper.book.open(now, number), entry)

    def status(self) -> dict[str, Any]:
        """Return how things stand: queues, machines, rates as they are believed."""
        book, names = self.mapper.book, self.mapper.executor.machines

        def look() -> dict[str, Any]:
            running = [None if job is None else job.number for job in book.running]
            return {
                "policy": str(book.policy),
                "classes": {
                    name: {"waiting": len(book.waiting[i]), "arrived": int(book.classes[i].arrived)}
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
                "broken": self.mapper.broken,
            }

        return self._in_loop(look)

    def close(self) -> None:
        """Stop the machines. Jobs that have not ended stay in the journal."""
        if self._closed:
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(self.mapper.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.journal.close()
        for future in self.mapper.futures.values():
            if not future.done():
                future.set_exception(InputError("the grid was closed before the job had ended"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # details

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
            future = futures[job.number] = JobFuture(self, job.number)
            known = self.mapper.classes
            number = (
                known.index(kept.task_class)
                if kept.task_class in known
                else self.mapper.add_class(kept.task_class)
            )
            raw = self._raw(future)
            self.mapper.adopt(job, number, Submission(job.number, number, kept.work, raw))
        return futures

    def _take(self, number: int, name: str, work: bytes, future: JobFuture) -> None:
        """Give a job to the mapper. In the loop's own thread."""
        known = self.mapper.classes
        name = name or known[0]
        task_class = known.index(name) if name in known else self.mapper.add_class(name)
        self.mapper.hear(Submission(number, task_class, work, self._raw(future)))

    @staticmethod
    def _raw(future: JobFuture) -> Future[bytes]:
        """Make a future of a pickled result that settles one of the result itself."""
        raw: Future[bytes] = Future()

        def settle(done: Future[bytes]) -> None:
            if future.done():
                return
            error = done.exception()
            try:
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(pickle.loads(done.result()))
            except Exception as wrong:
                future.set_exception(JobFailedError(f"the result cannot be unpickled: {wrong}"))

        raw.add_done_callback(settle)
        return raw

    def _machine(self, name: str) -> int:
        names = self.mapper.executor.machines
        if name not in names:
            raise InputError(f"no machine {name!r}; there are {', '.join(names)}")
        return names.index(name)

    def _tell(self, what: Callable[[float], Any], entry: Entry) -> bool:
        return self._in_loop(lambda: self.mapper.call(what, entry)).result()

    def _in_loop(self, function: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()
