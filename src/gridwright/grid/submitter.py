"""Submit jobs with options: one call, many calls, or a command."""

from __future__ import annotations

import io
import math
import pickle
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self

from ..model import InputError
from . import command
from .chain import class_of_stage
from .future import JobFuture
from .job import Options
from .validation import check_name, pickled, with_futures

CHUNK = 1000
"""How many jobs are handed to the grid together."""
PRIORITIES = 1 << 31
"""Priorities are smaller than this, in either direction."""


@dataclass(frozen=True)
class Chosen:
    """The options of jobs as a user gives them."""

    task_class: str = ""
    retries: int | None = None
    timeout: float | None = None
    priority: int = 0
    key: str = ""
    machine: str = ""
    deadline: float | None = None
    client: str = ""
    request: str = ""
    chain: int | None = None
    stage: int = 0

    def __post_init__(self) -> None:
        for name in ("task_class", "key", "machine"):
            if getattr(self, name) != "":
                check_name(getattr(self, name), name)
        if self.retries is not None and (type(self.retries) is not int or self.retries < 0):
            raise InputError(f"retries is {self.retries!r}; expected a whole number, 0 or more")
        if type(self.priority) is not int or not -PRIORITIES < self.priority < PRIORITIES:
            raise InputError(f"priority is {self.priority!r}; expected a whole number")
        for name in ("timeout", "deadline"):
            limit = getattr(self, name)
            if limit is not None and (type(limit) not in (int, float) or not 0 < limit < math.inf):
                raise InputError(f"{name} is {limit!r}; expected seconds, more than 0")

    def of_job(self) -> Options:
        """Return what the grid keeps with each job."""
        about = (self.machine, self.client, self.request)
        limits, chain = (self.priority, self.retries, self.timeout), (self.chain, self.stage)
        return Options(*limits, *about, "", self.deadline, *chain)


class Call(NamedTuple):
    """A call that is ready to be submitted."""

    work: bytes
    needs: tuple[int, ...] = ()
    """The jobs whose results are among its arguments."""
    key: str = ""


class Submitter(Executor):
    """Submits jobs with some options: a grid, or a grid with other options."""

    _chosen = Chosen()

    @property
    def _sends_modules(self) -> bool:
        """Whether its machines cannot import modules that lie beside the script."""
        return False

    @abstractmethod
    def _send(self, name: str, calls: Sequence[Call], chosen: Chosen) -> Sent:
        """Hand calls to the grid; ``name`` is the name of their function."""

    @abstractmethod
    def _owns(self, future: JobFuture) -> bool:
        """Tell whether a future is of this grid."""

    def options(
        self,
        *,
        task_class: str | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        priority: int | None = None,
        key: str | None = None,
        machine: str | None = None,
        deadline: float | None = None,
    ) -> Submitter:
        """Return this grid with options for the jobs that are submitted through it.

        Parameters
        ----------
        task_class
            The class of the jobs; by default the name of their function.
        retries
            How often a job is tried again after its process died or it timed out.
        timeout
            Seconds that an attempt may take.
        priority
            Jobs of a higher priority start first, whatever their class; the default is 0.
        key
            A name for the job in the journal. A job whose key has finished is not run again: its
            future has the result. With ``map`` and ``submit_all`` it is the name of the series,
            and the key of each job has a digest of its arguments too.
        machine
            The only machine that may run the jobs, on any of its slots, or the only slot.
        deadline
            Seconds after its submission by which a job should have ended, for batch and chain
            policies. Under a batch policy, a job that has not started by then raises
            `DeadlineError`.

        Examples
        --------
        >>> from gridwright import Grid
        >>> with Grid("fcfs", machines=2) as grid:
        ...     urgent = grid.options(priority=1, timeout=60)
        ...     urgent.submit(pow, 2, 10).result()
        1024
        """
        given: dict[str, Any] = {
            "task_class": task_class,
            "retries": retries,
            "timeout": timeout,
            "priority": priority,
            "key": key,
            "machine": machine,
            "deadline": deadline,
        }
        known = {name: value for name, value in given.items() if value is not None}
        return WithOptions(self._whole(), replace(self._chosen, **known))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> JobFuture:
        """Submit a call; return the future of its result.

        The future of another job as an argument stands for its result: the call waits for that
        job, and fails with it. A durable grid returns when the job is in the journal.
        """
        chosen = self._chosen
        if "task_class" in kwargs:
            warnings.warn(
                "submit(…, task_class=…) is deprecated, and the next release passes task_class to "
                "the function; use grid.options(task_class=…).submit(…)",
                DeprecationWarning,
                stacklevel=2,
            )
            chosen = replace(chosen, task_class=kwargs.pop("task_class"))
        call = Call(*self._pickled(fn, args, kwargs), chosen.key)
        sent = self._send(name_of(fn), [call], chosen)
        sent.wait()
        return sent.futures[0]

    def submit_chain(
        self, functions: Sequence[Callable[..., Any]], /, *args: Any, **kwargs: Any
    ) -> JobFuture:
        """Submit functions that run one after the other; return the future of the last result.

        The first one is called with the arguments, each other one with the result before it. If a
        stage fails, those after it do not run: the future raises its exception, with a note that
        names the stage. A durable grid returns when all stages are in the journal.

        Under a chain policy, the option ``task_class`` names the template, and ``deadline``
        replaces its latency. The keys of the first stages are that of the chain with a number.
        """
        chosen, steps = self._chosen, list(functions)
        if not steps:
            raise InputError("submit_chain: there is no function")
        template = self._whole()._template(chosen.task_class, len(steps))
        for function in steps:
            self._pickled(function, (), {})  # may refuse, before anything is submitted
        every: list[Sent] = []
        for stage, function in enumerate(steps, start=1):
            is_last = stage == len(steps)
            key = f"{chosen.key}.{stage}" if chosen.key and not is_last else chosen.key
            deadline = chosen.deadline if is_last else None
            own = replace(chosen, deadline=deadline, stage=stage, chain=-1)
            if every:
                own = replace(own, chain=every[0].futures[0].number)
            if template is not None:
                name = class_of_stage(template[0], stage)
                latency = template[1] if is_last else None
                own = replace(own, task_class=name, deadline=deadline or latency)
            call = Call(*self._pickled(function, args, kwargs), key)
            every.append(self._send(name_of(function), [call], own))
            args, kwargs = (every[-1].futures[0],), {}
        for sent in every:
            sent.wait()
        return every[-1].futures[0]

    def submit_all(self, fn: Callable[..., Any], *iterables: Iterable[Any]) -> list[JobFuture]:
        """Submit a call for each set of arguments, as Python's ``map`` forms them.

        Return their futures. A durable grid returns when all jobs are in the journal.
        """
        return self._submit_each(name_of(fn), ((fn, args) for args in zip(*iterables)))  # noqa: B905

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[Any]:
        """Submit a call for each set of arguments; return an iterator of the results in order.

        ``timeout`` is how many seconds the results may take from now; later the iterator raises
        ``TimeoutError``. ``chunksize`` calls make one job. Jobs whose results nobody takes any
        more are cancelled.
        """
        if type(chunksize) is not int or chunksize < 1:
            raise InputError(f"chunksize is {chunksize!r}; expected a whole number, at least 1")
        end = math.inf if timeout is None else monotonic() + timeout
        calls = zip(*iterables)  # noqa: B905
        if chunksize == 1:
            return _results(self._submit_each(name_of(fn), ((fn, args) for args in calls)), end)
        chunks = iter(lambda: tuple(islice(calls, chunksize)), ())
        each = partial(command.call_each, fn)
        futures = self._submit_each(name_of(fn), ((each, (chunk,)) for chunk in chunks))
        return chain.from_iterable(_results(futures, end))

    def run(
        self,
        line: str,
        /,
        *args: Any,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> JobFuture:
        """Submit a command of the shell; the result is a `CompletedProcess`.

        Each ``{}`` in the command is replaced by an argument, quoted. The result has the exit
        status and what the command wrote, at most 1 MiB of each stream. If the status is not 0,
        the future raises ``subprocess.CalledProcessError``. Cancelling ends the command and
        every process that it has started.

        Parameters
        ----------
        line
            The command, for example ``"convert {} {}"``.
        args
            The values of each ``{}``.
        cwd
            The folder in which it runs, on its machine.
        env
            Environment variables to set besides those of the machine.
        """
        return self.run_line(command.filled(line, args), cwd=cwd, env=env)

    def run_line(
        self, text: str, *, cwd: str | Path | None = None, env: Mapping[str, str] | None = None
    ) -> JobFuture:
        """Submit a command of the shell as it is; see `run`."""
        named = self if self._chosen.task_class else self.options(task_class=command.name_of(text))
        folder = None if cwd is None else str(cwd)
        return named.submit(command.run_shell, text, folder, dict(env or {}))

    def _submit_each(
        self, name: str, calls: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]]
    ) -> list[JobFuture]:
        """Submit calls, many at a time."""
        chosen, seen, rest = self._chosen, Counter[str](), iter(calls)
        every: list[Sent] = []
        while some := list(islice(rest, CHUNK)):
            ready = []
            for function, args in some:
                key = ""
                if chosen.key:
                    key = f"{chosen.key}/{name}/{_digest(args)}"
                    seen[key] += 1
                    key += f"#{seen[key]}" if seen[key] > 1 else ""
                ready.append(Call(*self._pickled(function, args, {}), key))
            every.append(self._send(name, ready, chosen))
        for sent in every:
            sent.wait()
        return [future for sent in every for future in sent.futures]

    def _pickled(self, function: Any, args: Any, kwargs: Any) -> tuple[bytes, tuple[int, ...]]:
        """Pickle a call; also return the numbers of the jobs that it needs."""
        sends = self._whole()._sends_modules
        return pickled(function, args, kwargs, self._owns, with_modules=sends)

    def _whole(self) -> Submitter:
        """Return the grid itself."""
        return self

    def _template(self, name: str, stages: int) -> tuple[str, float] | None:
        """Return the name and latency of a chain's template; None if the policy knows none."""
        raise NotImplementedError


class Sent(NamedTuple):
    """Calls that were handed to the grid."""

    futures: list[JobFuture]
    wait: Callable[[], None]
    """Waits until they are in the journal."""


class WithOptions(Submitter):
    """A grid with options for the jobs that are submitted through it."""

    def __init__(self, grid: Submitter, chosen: Chosen) -> None:
        self._grid, self._chosen = grid, chosen

    def _whole(self) -> Submitter:
        return self._grid

    def _send(self, name: str, calls: Sequence[Call], chosen: Chosen) -> Sent:
        return self._grid._send(name, calls, chosen)

    def _owns(self, future: JobFuture) -> bool:
        return self._grid._owns(future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the grid down."""
        self._grid.shutdown(wait, cancel_futures=cancel_futures)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *wrong: Any) -> None:
        self._grid.__exit__(*wrong)


def name_of(function: Any) -> str:
    """Return the name of a function, which is the class of its jobs by default."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else str(name)


class _Digester(pickle.Pickler):
    """Pickles arguments in a way that is the same in every process."""

    fast = True  # otherwise it depends on which of them are the same object

    def persistent_id(self, each: Any) -> Any:
        if isinstance(each, JobFuture):
            return each.key or each.number
        if isinstance(each, set | frozenset):  # their order changes
            return sorted(map(_digest, each))
        return None


def _digest(args: Any) -> str:
    """Return a short text that is the same for equal arguments."""
    written = io.BytesIO()
    try:
        _Digester(written, protocol=4).dump(args)
        content = written.getvalue()
    except Exception:  # it refers to itself, or only cloudpickle can pickle it
        content, _ = with_futures(args, lambda future: True)
    return blake2b(content, digest_size=12).hexdigest()


def _results(futures: list[JobFuture], end: float) -> Iterator[Any]:
    """Return the results in order until a time; at the end cancel what is left."""
    left = futures[::-1]
    try:
        while left:
            yield left[-1].result(None if end == math.inf else end - monotonic())
            left.pop()
    finally:
        for future in left:
            future.cancel()
