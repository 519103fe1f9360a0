"""A push or pull system whose loop a device runs: its arrays, and the hooks of its kernel.

Replications of it that start from the same state are a batch; batches of one program are launched
together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from ..compiler.philox import words_of
from ..model import InputError, System
from ..policies import Policy
from ..statistics import BINS
from .central import Central
from .central_setup import situation_of
from .central_state import TICKET, State
from .device_arrays import Device, leaves
from .driver import PHILOX, TASKS_PER_SLICE, Conditions, free_pool
from .kernel import run_events, run_push
from .plan_table import looked_up, with_answers
from .planning import SOLVING, is_planned_in_python
from .sampling import BUFFERED, arrival_hook, samplers

TASKS_PER_SLICE_THERE = 4000
"""A slice is at most about this many tasks of a run."""
ROOM = 256
"""Tickets of a run at first, or two for each machine; there are many runs."""
MANY_RUNS = 2048
MOST_BYTES = 1 << 16
"""Runs that start alike lie side by side if there are so many, of at most so many bytes: then
threads that run in step read neighbouring words."""
SHARE = 0.7
"""The part of the free memory that states may take at first; some runs will need more room."""
HERE = 4 << 30
"""The most bytes of states that differ at time 0, and of results that are read off at a time."""
LOOP_STREAMS = 4
CONSTANT = ("nominal", "truth", "group", "chain")
CONSTANT_WITHOUT_EVENTS = ("rate", "expected", "plan", "tree", "ends", "pattern", "present")
CONSTANT_WITHOUT_BUFFERS = ("shapes", "table")
"""Arrays that no loop writes to: always, without an event list, and without draws from Python."""


class OnDevice(Central):
    """A push or pull system whose loop a device runs."""

    effort = TASKS_PER_SLICE / TASKS_PER_SLICE_THERE
    kernel: Callable[..., None]
    room: tuple[Any, ...] = ()
    """The arrays of the planner, with an event list."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if self.system.believes_anew:
            raise InputError(
                "[assumed] arrivals that are 'present' or measured are for simulations on the CPU"
            )
        room = 1 << (max(ROOM, 2 * self.system.shape[1]) - 1).bit_length()
        self.replace(ticket=free_pool(room, TICKET))
        if self.conditions.tails:
            self.replace(responses=np.zeros((len(self.state.stream), BINS), np.int64))

    def _without_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        self.kernel, self.hooks_there = run_push, self._samplers()
        return _elsewhere, ()

    def _with_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        make_plan, planning = self.planner()
        if self.plans_anew and is_planned_in_python(self.policy):
            raise InputError(
                f"{self.policy}: its planner is plain Python, which does not run on a GPU"
            )
        self.kernel, self.room = run_events, (planning,)
        self.hooks_there = {**self._samplers(), **self.hooks, "make_plan": make_plan}
        return _elsewhere, ()

    def plan_ahead(self, runs: int) -> None:
        """Solve all situations that planners will meet, if so many runs make it worth it."""
        server = self.state.server
        is_known = not (self.is_drawn or server["period"].any() or server["doubt"].any())
        if not is_known or self.hooks_there.get("make_plan") not in SOLVING:
            return
        failures = self.conditions.horizon / (server["mean_uptime"] + server["mean_repair"])
        plans = 2 * runs * float(failures.sum())
        found = with_answers(situation_of(self.state), self.room[0], plans, os.cpu_count() or 1)
        if found is not None:
            self.room = (found,)
            self.hooks_there |= {"solved": looked_up}

    def _samplers(self) -> dict[str, Any]:
        shapes = self.state.shapes
        return {**samplers(shapes), **arrival_hook(shapes), "decide": self.policy.decide}

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays of the run, as the kernel takes them."""
        return (self.state, *self.room)

    @property
    def shared(self) -> frozenset[int]:
        """The fields of the state that no run changes: runs that start alike share them."""
        names = list(CONSTANT)
        if self.counts_at_once:
            names += CONSTANT_WITHOUT_EVENTS
        if not (self.state.shapes["kind"] == BUFFERED).any():
            names += CONSTANT_WITHOUT_BUFFERS
        planned = [f for f, each in enumerate(leaves(self.arrays)) if self._is_constant(each)]
        return frozenset([*map(State._fields.index, names), *planned])

    def _is_constant(self, array: Any) -> bool:
        """Tell whether an array of the planner stays as it is: groups, solutions made before."""
        return any(
            array is each
            for planning in self.room
            for each in (
                planning.answers,
                planning.place,
                planning.room.member,
                planning.room.begin,
                planning.room.place,
                planning.room.block,
            )
        )

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


class Job(NamedTuple):
    """Replications of one system under one policy."""

    system: System
    policy: Policy
    seeds: Sequence[SeedSequence]
    horizon: float
    warmup: float = 0.0
    tails: bool = False
    start: SeedSequence | None = None
    """What the state is drawn from that all start with: the warm-up makes up for it. If there is
    none, each draws its own."""


class Batch(NamedTuple):
    """Replications of a job that start from the same state."""

    job: int
    numbers: Sequence[int]
    seeds: Sequence[SeedSequence]
    mechanism: OnDevice
    """As at time 0."""
    is_drawn: bool
    """Whether some of their random numbers are drawn already."""

    def __str__(self) -> str:
        name = self.mechanism.system.name
        return f"{self.mechanism.policy} on {name}" if name else str(self.mechanism.policy)

    @property
    def work(self) -> float:
        """About how many tasks they simulate."""
        rate = float(self.mechanism.system.arrival_rates.sum())
        return len(self.seeds) * self.mechanism.conditions.horizon * rate

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of what they share, and of what each of them has."""
        bytes_of = [each.nbytes for each in leaves(self.mechanism.arrays)]
        common = sum(bytes_of[field] for field in self.mechanism.shared)
        return common, sum(bytes_of) - common

    @property
    def is_abreast(self) -> bool:
        """Whether they lie side by side; draws made in Python are written to one run at a time."""
        own = self.sizes()[1] - self.mechanism.state.ticket.nbytes
        is_buffered = (self.mechanism.state.shapes["kind"] == BUFFERED).any()
        return len(self.seeds) >= MANY_RUNS and own <= MOST_BYTES and not is_buffered

    def words(self) -> NDArray[np.int64]:
        """Return their random streams; some of their numbers may be drawn already."""
        if self.is_drawn:
            streams: Any = self.mechanism.streams[:LOOP_STREAMS]
            return np.array([[each.words for each in streams]])
        return words_of(self.seeds, LOOP_STREAMS)

    def some(self, chosen: Iterable[int]) -> Batch:
        """Return some of them."""
        places = list(chosen)
        numbers = [self.numbers[k] for k in places]
        return self._replace(numbers=numbers, seeds=[self.seeds[k] for k in places])

    def with_event_list(self) -> Batch:
        """Return them with the loop that can hold tasks back."""
        old = self.mechanism
        conditions = old.conditions._replace(seed=self.seeds[0])
        made = OnDevice(old.system, old.policy, conditions, event_list=True)
        return self._replace(mechanism=made)

    def with_room(self, size: int) -> Batch:
        """Return them with room for so many tasks."""
        made = copy(self.mechanism)
        made.replace(ticket=free_pool(size, TICKET))
        return self._replace(mechanism=made)


def batches_of(number: int, job: Job) -> Iterator[Batch]:
    """Divide the replications of a job into those that start from the same state."""

    def start(seed: SeedSequence) -> OnDevice:
        conditions = Conditions(job.horizon, seed, job.warmup, tails=job.tails, rng=PHILOX)
        return OnDevice(job.system, job.policy, conditions)

    first = start(job.start or job.seeds[0])
    first.plan_ahead(len(job.seeds))
    if not first.is_drawn or job.start:
        yield Batch(number, range(len(job.seeds)), job.seeds, first, False)
        return
    for k, seed in enumerate(job.seeds):
        yield Batch(number, [k], [seed], start(seed) if k else first, True)


def parts_of(device: Device, batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Divide batches into those that are launched together: one program, sorted, and with room."""
    groups: dict[Any, list[Batch]] = {}
    for batch in batches:
        groups.setdefault(batch.mechanism.key, []).append(batch)
    longest = lambda group: max(each.work / len(each.seeds) for each in group)  # noqa: E731
    for group in sorted(groups.values(), key=longest, reverse=True):
        group.sort(key=lambda batch: batch.mechanism.system.shape)
        part: list[Batch] = []
        there, here = SHARE * device.free(), float(HERE)
        for whole in group:
            batch = whole
            common, own = batch.sizes()
            while len(batch.seeds):
                fitting = max(int((there - common) // own), 0 if part else 1)
                if part and (not fitting or common + own > here):
                    yield part
                    part, there, here = [], SHARE * device.free(), float(HERE)
                    continue
                now = batch.some(range(min(fitting, len(batch.seeds))))
                batch = batch.some(range(len(now.seeds), len(batch.seeds)))
                part.append(now)
                there -= common + own * len(now.seeds)
                here -= common + own
        yield part


def _elsewhere(*_: Any) -> int:
    raise AssertionError("a device runs this loop")
