"""Run many replications of push and pull systems on a device, all at once.

The states of all runs are made here as for a CPU, and lie one behind the other in one array for
each field. The device continues every run until the end of its slice. A run that needs something
comes back: it gets more room, fresh draws or a plan, and continues. What is measured is read off as
for a single run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from ..compiler.philox import Philox
from ..model import InputError, System
from ..policies import Policy
from ..statistics import BINS
from .central import Central
from .central_state import TICKET, State
from .driver import (
    PHILOX,
    TASKS_PER_SLICE,
    Conditions,
    Mechanism,
    Replication,
    Streams,
    free_pool,
    grow,
    read_off,
)
from .interrupts import DRAWS, HELD, PLAN, POOL, SLICE
from .kernel import GO, run_events, run_push
from .planning import plan_in_python
from .sampling import samplers

TASKS_PER_LAUNCH = 4000
"""A launch simulates at most about this many tasks of a run, so that it can be stopped in time."""
ROOM = 128
"""Tickets of a run at first; there are many runs, and most systems hold few tasks."""
SHARE = 0.7
"""The part of the free memory that states may take at first; some runs will need more room."""
LOOP_STREAMS = 4
TICKETS, COUNT = State._fields.index("ticket"), State._fields.index("count")


class Device(Protocol):
    """What runs the functions of ``kernel``, and where their arrays are."""

    def free(self) -> int:
        """Return the bytes of memory that are free."""

    def put(self, array: Any) -> Any:
        """Copy an array to the device."""

    def get(self, there: Any, array: Any) -> None:
        """Copy an array back."""

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        """Compile a function of ``kernel``."""

    def launch(self, linked: Any, count: int, *arguments: Any) -> None:
        """Run a linked function for so many runs, and wait for it."""


class Job(NamedTuple):
    """Replications of one system under one policy."""

    system: System
    policy: Policy
    seeds: Sequence[SeedSequence]
    horizon: float
    warmup: float = 0.0
    tails: bool = False


def launch(
    device: Device,
    jobs: Sequence[Job],
    on_done: Callable[[int, int, Replication], None],
    on_progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Simulate all jobs on a device; report every replication, and the share done.

    Random numbers are those of ``rng="philox"``: a CPU gives the same results. ``on_done`` gets the
    number of the job, that of the replication, and what was measured.
    """
    waiting = [run for number, job in enumerate(jobs) for run in _runs(number, job)]
    all_work, finished = sum(run.work for run in waiting), 0.0
    while waiting:
        again: list[Run] = []
        for part in _parts(device, waiting):
            fleet = Fleet(device, part)
            work = sum(run.work for run in part)
            for share in fleet.run():
                on_progress((finished + share * work) / all_work)
            for run, replication in fleet.results():
                on_done(run.job, run.number, replication)
            again += [run.with_event_list() for run in fleet.held]
            finished += work - sum(run.work for run in fleet.held)
        waiting = again


class OnDevice(Central):
    """A push or pull system whose loop a device runs."""

    effort = TASKS_PER_SLICE / TASKS_PER_LAUNCH
    kernel: Callable[..., None]
    room: tuple[Any, ...] = ()
    """The arrays of the planner, with an event list."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.replace(ticket=free_pool(ROOM, TICKET))
        if self.conditions.tails:
            self.replace(responses=np.zeros((len(self.state.stream), BINS), np.int64))

    def _without_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        self.kernel, self.hooks_there = run_push, self._samplers()
        return _elsewhere, ()

    def _with_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        make_plan, planning = self.planner()
        if make_plan is plan_in_python and self.plans_anew and self.policy.planner is not None:
            raise InputError(
                f"{self.policy}: its planner is plain Python, which does not run on a GPU"
            )
        self.kernel, self.room = run_events, (planning,)
        self.hooks_there = {**self._samplers(), **self.hooks, "make_plan": make_plan}
        return _elsewhere, ()

    def _samplers(self) -> dict[str, Any]:
        return {**samplers(self.state.shapes), "decide": self.policy.decide}

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays of the run, as the kernel takes them."""
        return (self.state, *self.room)

    @property
    def is_drawn(self) -> bool:
        """Whether the state at time 0 is drawn, so that each replication has its own."""
        return self.system.assumed is not None or bool((self.state.server["chain"] >= 0).any())

    @property
    def key(self) -> Any:
        """What runs that are launched together have in common."""
        values = [
            (each.shape, each.tobytes()) if isinstance(each, np.ndarray) else (type(each), each)
            for each in self.arguments
        ]
        return self.kernel, tuple(sorted(self.hooks_there.items())), tuple(values)


def _elsewhere(*_: Any) -> int:
    raise AssertionError("a device runs this loop")


class Run(NamedTuple):
    """One replication on a device."""

    job: int
    number: int
    mechanism: OnDevice
    """As at time 0; replications of a job share it unless it is drawn."""
    seed: SeedSequence

    @property
    def work(self) -> float:
        """About how many tasks it simulates."""
        return self.mechanism.conditions.horizon * float(self.mechanism.system.arrival_rates.sum())

    def words(self) -> list[NDArray[np.int64]]:
        """Return its random streams; some of their numbers may be drawn already."""
        if self.mechanism.is_drawn:
            streams: Any = self.mechanism.streams[:LOOP_STREAMS]
            return [each.words for each in streams]
        return [Philox.of(self.seed, stream).words for stream in range(LOOP_STREAMS)]

    def with_event_list(self) -> Run:
        """Return the run with the loop that can hold tasks back."""
        old = self.mechanism
        conditions = old.conditions._replace(seed=self.seed)
        made = OnDevice(old.system, old.policy, conditions, event_list=True)
        return self._replace(mechanism=made)


def _runs(number: int, job: Job) -> Iterator[Run]:
    mechanism: OnDevice | None = None
    for k, seed in enumerate(job.seeds):
        if mechanism is None or mechanism.is_drawn:
            conditions = Conditions(job.horizon, seed, job.warmup, tails=job.tails, rng=PHILOX)
            mechanism = OnDevice(job.system, job.policy, conditions)
        yield Run(number, k, mechanism, seed)


def _parts(device: Device, runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Divide runs into those that are launched together: one program, sorted, and with room."""
    groups: dict[Any, list[Run]] = {}
    keys = {id(run.mechanism): run.mechanism for run in runs}
    found = {number: each.key for number, each in keys.items()}
    for run in runs:
        groups.setdefault(found[id(run.mechanism)], []).append(run)
    for group in groups.values():
        group.sort(key=lambda run: run.mechanism.system.shape)
        part: list[Run] = []
        left = SHARE * device.free()
        for run in group:
            size = sum(each.nbytes for each in leaves(run.mechanism.arrays))
            if part and size > left:
                yield part
                part, left = [], SHARE * device.free()
            part.append(run)
            left -= size
        yield part


class Fleet:
    """Runs that are launched together."""

    def __init__(self, device: Device, runs: Sequence[Run]) -> None:
        self.device, self.runs = device, runs
        first = runs[0].mechanism
        self.linked = device.link(first.kernel, first.hooks_there)
        self.counts_at_once = first.counts_at_once
        self.arguments = tuple(
            device.put(each) if isinstance(each, np.ndarray) else each for each in first.arguments
        )
        self.arrays = Arrays(device, [run.mechanism.arrays for run in runs])
        self.words = np.array([run.words() for run in runs])
        limits = [run.mechanism.conditions for run in runs]
        self.warmup = np.array([each.warmup for each in limits])
        lengths = (self.warmup, np.array([each.horizon for each in limits]))
        self.lengths = [device.put(each) for each in lengths[: 2 if self.counts_at_once else 1]]
        self.words_there = device.put(self.words)
        self.reasons = np.full(len(runs), SLICE)
        self.is_held = np.zeros(len(runs), bool)
        numbers = {id(run.mechanism): run.mechanism for run in runs}
        places = {number: k for k, number in enumerate(numbers)}
        self.schedules = [list(each.slices()) for each in numbers.values()]
        self.schedule = np.array([places[id(run.mechanism)] for run in runs])
        self.inside: dict[int, NDArray[np.int64]] = {}
        self.seconds = 0.0

    @property
    def held(self) -> list[Run]:
        """The runs whose policies hold tasks back: they need the loop with an event list."""
        return [self.runs[k] for k in np.flatnonzero(self.is_held).tolist()]

    def run(self) -> Iterator[float]:
        """Run all to their ends; after every slice, yield the share done."""
        for step in range(max(map(len, self.schedules))):
            ends = [each[min(step, len(each) - 1)] for each in self.schedules]
            until = np.array([end for end, _, _ in ends])[self.schedule]
            is_on = np.array([step < len(each) for each in self.schedules])[self.schedule]
            is_on &= ~self.is_held
            self.reasons[:] = np.where(is_on, GO, SLICE)
            there = self.device.put(until)
            while (self.reasons == GO).any():
                seconds = self._launch(there)
                self.seconds += seconds if step > 0 else 0.0  # the first one compiles
                self._serve(np.flatnonzero(self.reasons != SLICE))
            if any(is_sample for _, is_sample, _ in ends):
                self.arrays.fetch(COUNT)
                self.inside[step] = self.arrays.host[COUNT]["inside"][:-1].copy()
            if not self.counts_at_once:
                self._forget(np.flatnonzero(is_on & (until == self.warmup) & (until > 0)))
            yield float(np.mean([done for _, _, done in ends]))

    def results(self) -> Iterator[tuple[Run, Replication]]:
        """Read off what every run measured."""
        self.arrays.fetch()
        for k in np.flatnonzero(~self.is_held).tolist():
            schedule = self.schedules[self.schedule[k]]
            noted = [step for step, (_, is_sample, _) in enumerate(schedule) if is_sample]
            times = [0.0, *(schedule[step][0] for step in noted)]
            number = [0.0, *(float(self.inside[step][k]) for step in noted)]
            mechanism = self._mechanism(k)
            samples = mechanism.samples(times, number)
            yield self.runs[k], read_off(mechanism, samples, self.seconds / len(self.runs), None)

    def _launch(self, until: Any) -> float:
        """Continue the runs that are to go on; return the seconds that it took."""
        reasons = self.device.put(self.reasons)
        began = perf_counter()
        self.device.launch(
            self.linked,
            len(self.runs),
            *self.arrays.there,
            self.arrays.where_there,
            self.arguments,
            until,
            *self.lengths,
            self.words_there,
            reasons,
        )
        seconds = perf_counter() - began
        self.device.get(reasons, self.reasons)
        return seconds

    def _serve(self, needy: NDArray[np.int64]) -> None:
        """Give the runs that came back what they need."""
        if not len(needy):
            return
        self.arrays.fetch()
        self.device.get(self.words_there, self.words)
        grown = {}
        for k in needy.tolist():
            reason, mechanism = self.reasons[k], self._mechanism(k)
            self.reasons[k] = GO
            if reason == HELD:
                self.is_held[k], self.reasons[k] = True, SLICE
            elif reason == POOL:
                grow(mechanism)
                grown[k] = mechanism.core.ticket
            elif reason == DRAWS:
                mechanism.refill()
            elif reason == PLAN:
                mechanism.plan()
        self.arrays.replace(TICKETS, grown)
        self.arrays.put()
        self.words_there = self.device.put(self.words)

    def _forget(self, ending: NDArray[np.int64]) -> None:
        """Start the statistics again of runs whose warm-up ends."""
        if len(ending):
            self.arrays.fetch()
            for k in ending.tolist():
                self._mechanism(k).forget()
            self.arrays.put()

    def _mechanism(self, k: int) -> Mechanism:
        """Return a run as it is now, on the arrays that were fetched."""
        run = self.runs[k]
        found = copy(run.mechanism)
        found.state = self.arrays.of(k)[0]
        streams: list[Any] = [*map(Philox, self.words[k]), run.mechanism.streams.beliefs]
        found.streams = Streams(*streams)
        return found


class Arrays:
    """The arrays of many runs, one behind the other in one array for each field."""

    def __init__(self, device: Device, runs: Sequence[tuple[Any, ...]]) -> None:
        self.device, self.like = device, runs[0]
        columns = list(zip(*(leaves(each) for each in runs), strict=True))
        self.host = [_joined(column) for column in columns]
        self.where = np.stack([_where(column) for column in columns], axis=1)
        self.flat = [each[0].ndim == 1 for each in columns]
        self.put()

    def put(self) -> None:
        """Copy everything to the device."""
        self.parts = [self.device.put(each) for each in self.host]
        self.there = _rebuilt(self.like, iter(self.parts))
        self.where_there = self.device.put(self.where)

    def fetch(self, *fields: int) -> None:
        """Copy some fields back, or all."""
        for field in fields or range(len(self.host)):
            self.device.get(self.parts[field], self.host[field])

    def of(self, k: int) -> Any:
        """Return the arrays of a run, as views."""
        return _rebuilt(self.like, (self._part(field, k) for field in range(len(self.host))))

    def replace(self, field: int, arrays: dict[int, Any]) -> None:
        """Put other arrays into a field of some runs."""
        if arrays:
            runs = range(len(self.where))
            column = [arrays[k] if k in arrays else self._part(field, k) for k in runs]
            self.host[field], self.where[:, field] = _joined(column), _where(column)

    def _part(self, field: int, k: int) -> Any:
        first, rows, columns = self.where[k, field]
        part = self.host[field][first : first + rows * columns]
        if part.dtype.names:
            return part.view(np.recarray)
        return part if self.flat[field] else part.reshape(rows, columns)


def leaves(arrays: Any) -> Iterator[Any]:
    """Return the arrays in tuples of arrays and tuples, in their order."""
    for each in arrays:
        if isinstance(each, tuple):
            yield from leaves(each)
        else:
            yield each


def _rebuilt(like: Any, arrays: Iterator[Any]) -> Any:
    """Put other arrays into such tuples."""
    parts = [_rebuilt(each, arrays) if isinstance(each, tuple) else next(arrays) for each in like]
    return tuple(parts) if type(like) is tuple else type(like)(*parts)


def _joined(column: Sequence[Any]) -> Any:
    """Join arrays; one element follows, so that no array is empty."""
    plain = [np.ascontiguousarray(each).view(np.ndarray).reshape(-1) for each in column]
    return np.concatenate([*plain, np.zeros(1, plain[0].dtype)])


def _where(column: Sequence[Any]) -> NDArray[np.int64]:
    """Return where each of some arrays begins when they are joined, its rows and its columns."""
    shapes = np.array([each.shape if each.ndim == 2 else (len(each), 1) for each in column])
    sizes = shapes.prod(axis=1)
    return np.column_stack([np.cumsum(sizes) - sizes, shapes])
