"""The driver of all loops: one replication, slice by slice, whatever the kind of policy.

A loop runs until the end of a slice or until it needs something, and returns the reason. The driver
makes room, fills draws, keeps pages of the event log, notes the number in system, forgets what was
counted before the end of the warm-up, and reads off what was measured. Each kind of policy has a
``Mechanism``, which prepares the state, calls the loop, and adds what only its kind needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import thread_time
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compiler.link import bind, link
from ..compiler.philox import Philox
from ..model import Distribution, Floats, InputError, System
from ..policies import Policy
from ..policies.view import records
from ..statistics import BINS
from .event_log import EVENT, SHIFT
from .interrupts import DRAWS, HELD, PLAN, POOL, SLICE, TRACE
from .sampling import Cycle, refill, samplers

SAMPLES = 128
"""How often the number in system is noted, at most."""
TASKS_PER_SLICE = 200_000
"""A slice is at most about this many tasks, so that a run can be stopped and shows progress."""
MOST_PARTS = 1 << 40
PCG64, PHILOX = RNGS = ("pcg64", "philox")
"""Generators: NumPy's own, and one that gives the same numbers on every processor."""
LONGEST = 1e15
"""The longest horizon in time units: times are exact to some tenths of one then."""
PAGE = 65536
"""Events on a page of the event log."""

Loop = Callable[..., int]


class Conditions(NamedTuple):
    """How a replication is run."""

    horizon: float
    seed: np.random.SeedSequence
    warmup: float = 0.0
    trace: bool = False
    tails: bool = False
    interpreted: bool = False
    rng: str = PCG64
    on_slice: Callable[[float], None] = lambda done: None  # called with the share done


class Streams(NamedTuple):
    """The random streams of a replication, so that policies meet the same arrivals and failures."""

    tasks: Generator
    faults: Generator
    repeats: Generator
    policy: Generator
    beliefs: Generator

    @classmethod
    def spawn(cls, seed: np.random.SeedSequence, rng: str = PCG64) -> Streams:
        """Make the streams of one replication, always the same ones for a seed.

        A ``Philox`` has those methods of a ``Generator`` that are used. Beliefs are drawn in Python
        before a run, always with NumPy's generator.
        """
        own = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
        made: list[Any] = own.spawn(len(cls._fields))
        for number, each in enumerate(made):
            if rng == PHILOX and number < len(made) - 1:
                made[number] = Philox.of(seed, number)
            else:
                made[number] = np.random.Generator(np.random.PCG64(each))
        return cls(*made)


class Replication(NamedTuple):
    """What one replication measured, over the time after the warm-up."""

    mean_number: float
    response: Floats  # [class], mean over tasks that arrived after the warm-up and finished
    waiting: Floats  # [class], mean time from arrival until sent to the machine that finished it
    queueing: Floats  # [class], mean time in the queue of that machine
    responded: NDArray[np.int64]  # [class], how many tasks these means are over
    throughput: Floats  # [class]
    utilisation: Floats  # [machine]
    tasks: int
    times: Floats  # [sample]
    number: Floats  # [sample], tasks in the system then
    seconds: float
    trace: Any = None  # EVENT records
    responses: NDArray[np.int64] = np.zeros((0, BINS), np.int64)  # [class, bin], if wanted
    class_number: Floats = np.zeros(0)  # [class], mean number in system; push, pull and peers
    lost: int = 0
    refusals: int = 0
    held: int = 0
    asked: int = 0
    replans: int = 0
    interrupted: int = 0  # how often a task gave way to another
    tally: Floats = np.zeros(0)
    permitted: Floats = np.zeros(0)  # [class], machines that the plan permits
    memory: Floats = np.zeros((0, 0))
    more: Mapping[str, Any] = MappingProxyType({})  # what only some kinds of systems have


class Mechanism:
    """One replication of a system under a policy of some kind, as the driver sees it.

    A subclass prepares the state and calls the loop. It overrides what is different for its kind.
    """

    link_field: ClassVar[str] = "next"
    """The field of a ticket that names the next free one."""
    serving_field: ClassVar[str] = "ticket"
    """The field of a server that names the task in service, −1 for none."""
    tasks: ClassVar[str] = "tasks"
    """What a ticket stands for, in messages."""
    most: ClassVar[int]
    """The most tickets that there is room for."""
    events_per_step: Callable[[Any], int]
    """How many events one step of the loop may log, given the arrays of ``core``."""
    go: Loop
    rest: tuple[Any, ...]
    """The linked loop, and its arguments after state, policy's arguments and time."""
    distributions: Sequence[tuple[str, Distribution | Cycle]] = ()
    """The distributions that the shapes of the state stand for."""
    counts_at_once = False
    """Whether the loop counts a task when it is assigned, so that nothing must be forgotten."""
    effort, fewest = 1.0, 32
    """For ``slice_ends``."""

    @staticmethod
    def check(system: System, policy: Policy) -> None:
        """Refuse a system of the right mode that policies of this kind still cannot run."""

    def __init__(self, system: System, policy: Policy, conditions: Conditions) -> None:
        self.system, self.policy, self.conditions = system, policy, conditions
        self.streams = Streams.spawn(conditions.seed, conditions.rng)
        self.arguments = policy.arguments(system.shape)
        self.state: Any = None

    def linked(self, loop: Loop, shapes: Any = None, *, inlined: bool = True, **hooks: Any) -> Loop:
        """Put the policy, samplers and further hooks into a loop, compiled or in plain Python."""
        if shapes is not None:
            hooks |= samplers(shapes)
        hooks["decide"] = self.policy.decide
        if self.conditions.interpreted:
            return bind(loop, **hooks)
        return link(loop, allocating=self.policy.allocating, inlined=inlined, **hooks)

    def loop(self, until: float) -> int:
        """Run the loop until a time; return the reason why it stopped."""
        return int(self.go(self.state, self.arguments, until, *self.rest))

    @property
    def serving(self) -> NDArray[np.bool_]:
        """Whether each machine is serving a task now, so that its busy time is not yet counted."""
        return np.asarray(self.core.server)[self.serving_field] >= 0

    def occupied(self, now: float) -> Floats:
        """How long each machine has been busy with the task in service."""
        return np.asarray(now - np.asarray(self.core.server)["begun"])

    def measured(self) -> dict[str, Any]:
        """Return the fields of ``Replication`` that only this kind measures."""
        raise NotImplementedError

    def plan(self) -> None:
        """Make the plan that the loop asks for."""
        raise NotImplementedError

    def fallback(self) -> Mechanism:
        """Return the mechanism that can do what this one's loop cannot."""
        raise NotImplementedError

    @property
    def core(self) -> Any:
        """The arrays that all loops have: count, server, stream, ticket and trace."""
        return self.state

    def replace(self, **arrays: Any) -> None:
        """Put other arrays into the state."""
        self.state = self.state._replace(**arrays)

    def more_room(self, size: int) -> None:
        """Make room for so many tickets in what lies beside them."""

    def refill(self) -> None:
        """Draw what the loop has used up."""
        refill(self.distributions, self.core.shapes, self.core.table, self.streams)

    def slices(self) -> Iterator[tuple[float, bool, float]]:
        """Cut the run into slices: the end, whether to take a sample, and the share done."""
        horizon, warmup = self.conditions.horizon, self.conditions.warmup
        for until, is_sample in slice_ends(self.system, horizon, warmup, self.effort, self.fewest):
            yield until, is_sample, until / horizon

    def upcoming(self) -> float:
        """Return when the next task arrives or the next machine fails, if no task ends before."""
        raise NotImplementedError

    def sample(self, now: float) -> None:
        """Note what only this kind measures at the times of samples."""

    def log_unfinished(self) -> None:
        """Log the events of tasks in the system that are logged when a task leaves."""

    def forget(self) -> None:
        """Start the statistics again at the end of the warm-up."""
        count, server = self.core.count, self.core.server
        count["area"] = 0.0
        self.core.stream["finished"] = 0
        server["busy"] = np.where(self.serving, -self.occupied(count["now"]), 0.0)

    @property
    def end(self) -> float:
        """The time until which figures count."""
        return self.conditions.horizon

    @property
    def responded(self) -> NDArray[np.int64]:
        """Tasks of each class whose response counts."""
        return np.array(self.core.stream["responded"])

    def samples(self, times: list[float], number: list[float]) -> tuple[Floats, Floats]:
        """Return the times of the samples, and the number in system then."""
        return np.array(times), np.array(number)


def drive(mechanism: Mechanism) -> Replication:
    """Run a replication to its end and read off what it measured."""
    conditions = mechanism.conditions
    if conditions.trace:
        mechanism.replace(
            trace=records(PAGE + 2 * mechanism.events_per_step(mechanism.core), EVENT)
        )
    if conditions.tails:
        mechanism.replace(responses=np.zeros((len(mechanism.core.stream), BINS), np.int64))
    pages: list[Any] = []
    times, number, seconds = [0.0], [0.0], 0.0
    for until, is_sample, done in mechanism.slices():
        reason = -1
        while reason != SLICE:
            before = thread_time()
            reason = mechanism.loop(until)
            seconds += thread_time() - before if until > 0 else 0.0
            if reason == HELD:
                return drive(mechanism.fallback())
            provide(mechanism, reason, pages)
        if until == conditions.warmup and until > 0 and not mechanism.counts_at_once:
            mechanism.forget()
        if until > 0 and is_sample:
            times.append(until)
            number.append(float(mechanism.core.count[0].inside))
            mechanism.sample(until)
        conditions.on_slice(done)
    if conditions.trace:
        _turn_page(mechanism, pages)
        mechanism.log_unfinished()
        _turn_page(mechanism, pages)
    log = _foreseen_cut(np.concatenate(pages), conditions.horizon) if conditions.trace else None
    return read_off(mechanism, mechanism.samples(times, number), seconds, log)


def provide(mechanism: Mechanism, reason: int, pages: list[Any]) -> None:
    """Give a loop what it has stopped for."""
    if reason == POOL:
        grow(mechanism)
    elif reason == DRAWS:
        mechanism.refill()
    elif reason == TRACE:
        _turn_page(mechanism, pages)
    elif reason == PLAN:
        mechanism.plan()


def grow(mechanism: Mechanism) -> None:
    """Double the room for tasks."""
    core = mechanism.core
    count, old = core.count[0], len(core.ticket)
    check_room(mechanism, old, count.now)
    ticket = doubled(core.ticket)
    ticket[mechanism.link_field][old:] = np.arange(old + 1, 2 * old + 1)
    ticket[mechanism.link_field][-1] = count.free
    count.free = old
    mechanism.replace(ticket=ticket)
    mechanism.more_room(2 * old)


def check_room(mechanism: Mechanism, room: int, now: float) -> None:
    """Refuse to double the largest room for tasks."""
    if room >= mechanism.most:
        raise InputError(
            f"more than {mechanism.most:,} {mechanism.tasks} are in the system at time "
            f"{now:g}: it is unstable; a shorter horizon shows that too"
        )


def _foreseen_cut(log: Any, horizon: float) -> Any:
    """Return an event log without the changes of availability after the end of the run."""
    return log[(log["kind"] != SHIFT) | (log["time"] <= horizon)].view(np.recarray)


def _turn_page(mechanism: Mechanism, pages: list[Any]) -> None:
    """Keep a page of the event log, and make sure that the next one has room for a step."""
    core = mechanism.core
    pages.append(core.trace[: core.count[0].traced].copy())
    core.count[0].traced = 0
    needed = 2 * mechanism.events_per_step(mechanism.core)
    if needed > len(core.trace):
        mechanism.replace(trace=records(needed, EVENT))


def read_off(
    mechanism: Mechanism, samples: tuple[Floats, Floats], seconds: float, log: Any
) -> Replication:
    """Return what was measured, at the end of a run."""
    found = {name: _plain(value) for name, value in _figures(mechanism).items()}
    return Replication(times=samples[0], number=samples[1], seconds=seconds, trace=log, **found)


def read_off_many(
    mechanism: Mechanism, samples: tuple[Floats, Floats], seconds: float
) -> Iterator[Replication]:
    """Return what runs measured whose states lie in arrays with the runs as their first axis.

    The times of the samples are the same for all of them, and their numbers are [run, sample].
    """
    times, numbers = samples
    found = {name: value for name, value in _figures(mechanism).items() if name != "more"}
    rows = [value.tolist() if value.ndim == 1 else value for value in found.values()]
    for number, *row in zip(numbers, *rows, strict=True):
        yield Replication(
            times=times, number=number, seconds=seconds, **dict(zip(found, row, strict=True))
        )


def _figures(mechanism: Mechanism) -> dict[str, Any]:
    """Return what was measured, of one run or of many: they are the first axis then."""
    core, end = mechanism.core, mechanism.end
    stream, server = np.asarray(core.stream), np.asarray(core.server)  # quicker than records
    count = np.asarray(core.count)[..., 0]
    length = end - mechanism.conditions.warmup
    busy, serving = server["busy"].copy(), mechanism.serving
    busy[serving] += mechanism.occupied(end)[serving]
    area = count["area"] - count["inside"] * np.maximum(count["now"] - end, 0.0)
    responded = mechanism.responded

    def mean(total: Floats) -> Floats:
        return np.divide(total, responded, out=np.full(total.shape, np.nan), where=responded > 0)

    return {
        "mean_number": area / length,
        "response": mean(stream["response"]),
        "waiting": mean(stream["waited"]),
        "queueing": mean(stream["queued"]),
        "responded": responded,
        "throughput": stream["finished"] / length,
        "utilisation": busy / length,
        "tasks": count["tasks"],
        "refusals": count["refusals"],
        "responses": core.responses.copy(),
        **mechanism.measured(),
    }


def _plain(value: Any) -> Any:
    """Return a number of Python for one of NumPy."""
    return (
        value.tolist() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value
    )


def free_pool(size: int, ticket: np.dtype[Any], link_field: str = "next") -> Any:
    """Return tickets that are all free, each naming the next one."""
    pool = records(size, ticket)
    pool[link_field] = np.append(np.arange(1, size), -1)
    return pool


def doubled(array: Any) -> Any:
    """Return an array twice as long, with zeros in its second half."""
    wide = np.zeros((2 * len(array), *array.shape[1:]), array.dtype).view(type(array))
    wide[: len(array)] = array
    return wide


def slice_ends(
    system: System, horizon: float, warmup: float, effort: float = 1.0, fewest: int = 32
) -> Iterator[tuple[float, bool]]:
    """Cut the run into slices, and say at which ends the number in system is noted.

    The effort is how many times as long as usual a task takes to simulate. The number is noted at
    least the fewest times.

    An empty slice comes first: it compiles the loop, so that the time of the others is the time
    of running. One slice ends with the warm-up.
    """
    expected = horizon * float(system.arrival_rates.sum())
    samples = int(min(max(expected / 100, fewest), SAMPLES))
    parts = max(1, int(min(effort * expected / samples / TASKS_PER_SLICE, MOST_PARTS)))
    yield 0.0, False
    last = 0.0
    for k in range(1, samples * parts + 1):
        # rounding must not leave the last one short of the horizon
        end = horizon if k == samples * parts else horizon * k / (samples * parts)
        if last < warmup < end:
            yield warmup, False
        yield end, k % parts == 0
        last = end


def check_run(horizon: float, warmup: float) -> None:
    """Refuse a horizon or a warm-up that cannot be simulated."""
    if not 0 < horizon < np.inf:
        raise InputError(f"horizon is {horizon:g}; expected a number > 0")
    if horizon > LONGEST:
        raise InputError(f"horizon is {horizon:g}; expected at most {LONGEST:g}")
    if not 0 <= warmup < horizon:
        raise InputError(f"warmup is {warmup:g}; expected at least 0 and less than the horizon")
