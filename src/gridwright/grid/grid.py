"""The live grid: submit functions, and a policy decides where they run."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Condition, Lock, Thread, get_ident
from typing import Any, Self

import numpy as np

from ..model import GridClosedError, InputError
from ..policies import Policy
from ..policies import find as find_policy
from . import validation
from .chain import ChainOptions, KnownChains
from .event import Entry
from .execution_times import BatchOptions
from .executors import Executor
from .future import Answers, JobFuture, Raw, ended_future
from .job import Options, Stage
from .journal import Journal
from .journal_queries import find_job, known_jobs
from .mapper import Mapper
from .operators import OperatedGrid, Operators
from .ownership import home
from .progress import show_progress
from .settings import Corrections, Settings, corrections_of, on_timeout_of
from .slots import Slots, any_slot, hosts_of
from .submitter import CHUNK, Call, Chosen, Sent, Submitter
from .turn import Receipt, Submission, end_the_rest, patiently

LOGGER = logging.getLogger(__name__)
UNNAMED = "1"
"""The class of jobs that name none, in a grid without classes."""
LOOK = 1.0
"""Seconds between the checks of a grid that shuts down for what it still waits for."""
LOOKS = 3
"""Checks in a row that must find nothing running before the grid warns."""
LAST = 1.0
"""Seconds to wait for callbacks when a grid is closed."""
BLOCK = 10_000
"""How many job numbers a grid that is not durable reserves at a time."""


class Grid(OperatedGrid, Submitter):
    """Run functions on several machines; a policy decides where.

    A grid is a ``concurrent.futures.Executor``.

    Parameters
    ----------
    policy
        A push, pull, batch or chain policy: its name, its file, or a `Policy`.
    machines
        How many machines to use, or their names. By default two local processes, or all workers of
        a cluster.
    slots
        Jobs at the same time on each machine, or a dict of machines and their numbers.
    on
        Where jobs run: by default in processes of this computer; at ``tcp://HOST:PORT`` or
        ``tls://HOST:PORT``, on the workers of that Dask scheduler; or an executor of your own.
    classes
        Names of the task classes; new names are added. The class of a job is, unless its options
        name one, the name of its function. If ``classes`` or ``rates`` are given and that name is
        not among them, it is the first of them.
    rates
        Initial execution rates [class, machine]; by default all are equal. Measured rates replace
        them. All slots of a machine have the same.
    journal
        The file that stores jobs and events. An existing journal is continued: jobs that have not
        ended run again.
    timeout
        Seconds that an attempt of a job may take, for all jobs or by class; 0: without limit.
    timeout_factor
        A job also times out when it takes this many times its expected duration; 0: never. Each
        time-out doubles this limit of the job.
    on_timeout
        What to do then; by default what the policy says, else ``fail``: stop the job, which fails;
        if it has not started, try it again. ``resubmit``: stop it and try it again. ``duplicate``:
        let it run, start a copy elsewhere, and take the first answer. ``wait``: let it run.
    retries
        How often a job is tried again after its process died or it timed out. After the last
        attempt its future raises `JobLostError`. A job whose machine an operator took away, or
        whose machine left the cluster, is always tried again.
    corrections
        Which beliefs follow measurements: ``True``, ``False``, or `Corrections`.
    resolution
        Seconds between measurements of CPU availability; 0: none.
    batch
        For batch policies: how long jobs take, and when they are discarded; see `BatchOptions`.
    chains
        For chain policies: the templates of chains; see `ChainOptions`.
    durable
        Whether ``submit`` and ``map`` wait until the jobs are in the journal, so that they survive
        a kill of every process. Otherwise they return sooner, and a kill may lose them.
    executor, address
        Deprecated names for ``on``.

    Examples
    --------
    >>> with Grid("fcfs", machines=2) as grid:
    ...     future = grid.submit(pow, 2, 10)
    ...     future.result(timeout=60)
    1024
    """

    _is_raw = False
    """Whether results stay pickled, because they are for other processes."""

    def __init__(
        self,
        policy: Policy | str = "pas_dg",
        machines: int | Sequence[str] | None = None,
        *,
        slots: Slots = 1,
        on: Executor | str | None = None,
        classes: Sequence[str] = (),
        rates: Any = None,
        journal: str | Path | None = None,
        timeout: float | Mapping[str, float] = 0.0,
        timeout_factor: float = 0.0,
        on_timeout: str | None = None,
        retries: int = 2,
        corrections: Corrections | bool = True,
        resolution: float = 0.0,
        batch: BatchOptions | Mapping[str, Any] | None = None,
        chains: ChainOptions | Mapping[str, Any] | None = None,
        durable: bool = True,
        executor: Executor | str | None = None,
        address: str = "",
    ) -> None:
        on = validation.renamed_place(on, executor, address, "Grid")
        chosen = find_policy(policy)
        names = validation.names_of(classes, "classes") or ([] if rates is None else [UNNAMED])
        executor = validation.executor_of(on, machines, slots)
        hosts = hosts_of(executor)
        prior = validation.rates_of(rates, names, hosts)
        learns = corrections_of(corrections)
        known = validation.knowledge_of(chosen, batch, chains, names, rates, hosts, learns)
        names = names if known is None else list(known.classes)
        settings = Settings(
            timeout=timeout_factor,
            seconds=0.0 if isinstance(timeout, Mapping) else timeout,
            class_seconds=dict(timeout) if isinstance(timeout, Mapping) else {},
            on_timeout=on_timeout_of(on_timeout, chosen, "fail"),
            corrections=learns,
            guessed=rates is None and known is None,
            resolution=resolution,
            retries=validation.checked_retries(retries),
            times=known,
        )
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
        self.journal = Journal(Path(journal or home() / "grids" / f"{stamp}.sqlite"))
        self._pid, self._durable = os.getpid(), durable
        self._answers = Answers()
        self._named = names
        """The classes that were given: jobs of other functions belong to the first."""
        self._keys: dict[str, JobFuture] = {}
        """The futures of jobs with keys that have not ended."""
        self._numbers, self._keying = Lock(), Lock()
        self._pending: dict[int, JobFuture] = {}
        """The futures of jobs that have not ended."""
        self._ended = Condition()
        self._closing, self._leaving, self._closed = Lock(), False, False
        self._door = Lock()
        """Held while work is handed to the event loop, and while the grid becomes closed."""
        try:
            self.journal.claim()
            zero = self._begin(executor, chosen)
            self.mapper = Mapper(
                chosen,
                executor,
                self.journal,
                names,
                prior if known is None else known.rates(),
                np.ones(len(names)),
                settings,
                clock=time.monotonic,
                zero=zero,
            )
            self.mapper.begun = self._begun
            self.unfinished = self._adopt()
            """The futures of jobs that an earlier grid left unfinished, by number."""
        except BaseException:
            self.journal.close()
            self._answers.close(0.0)
            raise
        self.operators = Operators(self.mapper)
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

    def result(self, job: str | int, timeout: float | None = None) -> Any:
        """Return the result of a job, by its key or number, also of an earlier grid's job.

        Wait for it at most ``timeout`` seconds if it has not ended; raise its error if it failed.
        """
        return self.future(job).result(timeout)

    def future(self, job: str | int) -> JobFuture:
        """Return the future of a job, by its key or number, also of an earlier grid's job."""
        while True:  # until it is pending, or its end is in the journal
            known = self._keys.get(job) if isinstance(job, str) else self._pending.get(job)
            if known is not None:
                return known
            found = self._in_loop(lambda: find_job(self.journal, job))
            if found is None:
                what = f"key {job!r}" if isinstance(job, str) else f"number {job}"
                raise InputError(f"{self.journal.path} has no job with {what}")
            if self.mapper.broken:
                raise self.mapper.refusal()
            if found.stage.is_final:
                return ended_future(found, self._answers, is_raw=self._is_raw)

    def progress(self, file: Any = None) -> None:
        """Show a bar until all jobs have ended: done, running and waiting jobs, rate, time left.

        It is written to the standard error, or to a file.
        """
        show_progress(self.status, lambda: not self._pending, file)

    def cancel(self, number: int) -> bool:
        """Cancel a job that waits or runs; return False if it has ended."""
        taken = self._take_back(number)
        if taken and (future := self._pending.get(number)) is not None:
            future.mark_cancelled()
        return taken

    def _take_back(self, number: int) -> bool:
        entry = Entry(self.mapper.now(), "cancelled", number)
        change = partial(self.mapper.call, lambda now: self.mapper.withdraw(now, number), entry)
        return bool(self._in_loop(change).result())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more jobs, and close the grid when all jobs have ended.

        Parameters
        ----------
        wait
            Wait for the jobs and the callbacks of their futures. Otherwise return at once: the
            grid closes by itself, and the interpreter does not exit before.
        cancel_futures
            Cancel the jobs that wait; running jobs continue.
        """
        if self._closed or self._pid != os.getpid():
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
        """Stop the machines now; jobs that have not ended stay in the journal.

        Their futures raise `GridClosedError`. Another grid with the same journal runs them.
        """
        if self._pid == os.getpid():
            with self._closing:
                if not self._closed:
                    self._close()

    def _close(self) -> None:
        with self._door:  # work that was handed over before is still done
            self._closed = True
        if self._serving is not None:
            self._serving.cancel()
        for last in (self.mapper.close(), end_the_rest()):  # not here: a loop may run here
            asyncio.run_coroutine_threadsafe(last, self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if not self.mapper.broken:
            with suppress(Exception):  # if it fails, some numbers are never used
                self.journal.describe(reserved=self._next)
        self.journal.close()
        for number, future in list(self._pending.items()):
            words = f"the grid was closed before job {number} had ended; a Grid with the journal "
            error = GridClosedError(f"{words}{self.journal.path} runs it")
            self._answers.settle(future, b"", error)
        self._answers.close(LAST)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for all jobs and close; after an exception, close at once."""
        if kind is None:
            self.shutdown()
        else:
            self.close()

    # details

    def _begin(self, executor: Executor, policy: Policy) -> float:
        """Describe the grid in the journal; return the time of its beginning, by our clock."""
        about = self.journal.about
        if about.get("kind", "grid") != "grid":
            raise InputError(f"{self.journal.path} is the journal of an experiment, not of a grid")
        origin = float(about.get("origin", time.time()))
        self._next = self._reserved = int(about.get("reserved", 0))
        self.journal.describe(
            kind="grid", origin=origin, unit=1.0, policy=str(policy), machines=executor.machines
        )
        # The time of day may have been set back; times in the journal must still increase.
        return time.monotonic() - max(time.time() - origin, self.journal.last())

    def _adopt(self) -> dict[int, JobFuture]:
        """Take over the unfinished jobs that an earlier grid left in the journal."""
        futures: dict[int, JobFuture] = {}
        latest = self.journal.select("max(number) FROM job")[0][0]
        self._next = max(self._next, 0 if latest is None else latest + 1)
        for kept in self.journal.jobs(ended=False):
            job = kept.job
            if job.stage == Stage.sent:
                job.lost += 1
            future = futures[job.number] = self._future(job.number, job.key or "")
            number = self.mapper.class_of(kept.task_class, job.options.host)
            raw = Raw(self._answers, future)
            self.mapper.adopt(job, number, Submission(job.number, number, kept.work, raw))
        return futures

    def _template(self, name: str, stages: int) -> tuple[str, float] | None:
        known = self.mapper.book.times
        return known.template(name, stages) if isinstance(known, KnownChains) else None

    def _owns(self, future: JobFuture) -> bool:
        return future.is_of(self._answers)

    def _send(self, name: str, calls: Sequence[Call], chosen: Chosen) -> Sent:
        """Hand calls to the loop, but those whose keys are known."""
        self._check_open()
        if self._leaving:
            raise GridClosedError("the grid is shut down: it takes no more jobs")
        validation.check_machine(chosen.machine, self.mapper.executor)
        validation.check_kind(chosen.deadline, chosen.stage, self.mapper.book.policy)
        if not any(call.key for call in calls):
            return self._hand_over(name, calls, chosen)
        with self._keying:  # one thread at a time looks for keys and adds them
            known = self._known({call.key for call in calls}, chosen.request)
            fresh = {call.key: call for call in calls if call.key not in known}
            sent = self._hand_over(name, list(fresh.values()), chosen)
            known |= dict(zip(fresh, sent.futures, strict=True))
        return Sent([known[call.key] for call in calls], sent.wait)

    def _known(self, keys: set[str], request: str) -> dict[str, JobFuture]:
        """Return the futures of jobs with these keys that need not be submitted."""
        known = {key: self._keys[key] for key in keys if key in self._keys}
        rest = sorted(keys - set(known))
        for found in self._in_loop(lambda: known_jobs(self.journal, rest, request)):
            known[found.key] = ended_future(found, self._answers, is_raw=self._is_raw)
        return known

    def _hand_over(self, name: str, calls: Sequence[Call], chosen: Chosen) -> Sent:
        """Hand calls to the loop."""
        if not calls:
            return Sent([], lambda: None)
        waits = self._durable and get_ident() != self._thread.ident
        receipt = Receipt(len(calls)) if waits else None
        numbers = [self._number() for _ in calls]
        task_class = chosen.task_class or name
        if not chosen.task_class and self._named and name not in self._named:
            task_class = self._named[0]
        with self._door:
            self._check_open()
            futures = [self._future(n, call.key) for n, call in zip(numbers, calls, strict=True)]
            about = any_slot(task_class, chosen.of_job(), self.mapper.executor)
            self._loop.call_soon_threadsafe(self._take, *about, calls, futures, receipt)
        return Sent(futures, (lambda: None) if receipt is None else receipt.wait)

    def _number(self) -> int:
        """Return the number of a new job.

        In a grid that is not durable, a job has its number before it is in the journal. Numbers
        are reserved there, so that the next grid does not use them again.
        """
        with self._numbers:
            if not self._durable and self._next >= self._reserved:
                reserved = self._next + BLOCK
                self._wait_for(patiently(lambda: self.journal.describe(reserved=reserved)))
                self._reserved = reserved
            number, self._next = self._next, self._next + 1
            return number

    def _take(
        self,
        name: str,
        options: Options,
        calls: Sequence[Call],
        futures: Sequence[JobFuture],
        receipt: Receipt | None,
    ) -> None:
        """Give jobs to the mapper, in the thread of the loop."""
        try:
            task_class = self.mapper.class_of(name, options.host)
        except InputError as error:  # the policy takes no more classes
            for future in futures:
                self._answers.settle(future, b"", InputError(*error.args))
            if receipt is not None:
                receipt.refuse(error)
            return
        for call, future in zip(calls, futures, strict=True):
            raw = (future.number, task_class, call.work, Raw(self._answers, future), receipt)
            self.mapper.hear(Submission(*raw, options, call.key or None, call.needs))

    def _future(self, number: int, key: str) -> JobFuture:
        """Make the future of a job, which is pending until it has ended."""
        future = self._pending[number] = JobFuture(number, self._take_back, self._answers, key)
        future.is_raw = self._is_raw
        if key:
            self._keys[key] = future
        Future.add_done_callback(future, self._has_ended)
        return future

    def _begun(self, number: int, machine: str) -> None:
        if (future := self._pending.get(number)) is not None:
            future.machine = machine

    def _has_ended(self, future: Future[Any]) -> None:
        assert isinstance(future, JobFuture)
        del self._pending[future.number]
        if future.key:
            del self._keys[future.key]
        if not self._pending:
            with self._ended:
                self._ended.notify_all()

    def _finish(self) -> None:
        """Wait until all jobs have ended, warn once if they cannot run, and close."""
        looked = 0
        with self._ended:
            while not self._ended.wait_for(lambda: self._closed or not self._pending, LOOK):
                try:
                    why = str(self._in_loop(self.operators.held_up))
                except GridClosedError:  # another thread has closed it
                    why = ""
                looked = looked + 1 if why else 0
                if looked == LOOKS:
                    LOGGER.warning("the grid waits, jobs left: %d; %s", len(self._pending), why)
        with suppress(RuntimeError):  # another thread has closed the grid
            self._answers.give(callbacks=None)
        self.close()

    def _cancel_waiting(self) -> None:
        """Cancel the jobs that no machine runs yet, some in every turn."""
        rest = iter(list(self._pending))
        while numbers := list(islice(rest, CHUNK)):
            asked = self._in_loop(partial(self.operators.withdraw, numbers))
            for number in asked.result():
                if (future := self._pending.get(number)) is not None:
                    self._answers.cancelled(future)

    def _check_open(self) -> None:
        if self._closed:
            raise GridClosedError("the grid is closed")
        if self._pid != os.getpid():
            raise GridClosedError("this process is a fork: the grid belongs to its parent")

    def _wait_for(self, what: Coroutine[Any, Any, Any]) -> Any:
        with self._door:
            try:
                self._check_open()
            except GridClosedError:
                what.close()
                raise
            asked = asyncio.run_coroutine_threadsafe(what, self._loop)
        try:
            return asked.result()
        except CancelledError:
            raise GridClosedError("the grid is closed") from None

    def _in_loop(self, function: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return function()

        return self._wait_for(run())
