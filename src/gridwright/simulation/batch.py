"""A replication of a system of batches: its loop driven slice by slice, and read off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import thread_time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compiler.link import bind, link
from ..model import BatchRun, GridPmf, InputError, MarkovChain, Robustness, System, robustness
from ..policies import Policy
from ..policies.view import BatchView, records
from .batch_loop import loop, trace_needs
from .batch_state import ARRIVAL, State, grow, make_state, make_view
from .batch_tables import Pmfs, allowances, believed_pmfs, table_of, true_pmfs
from .central_setup import Streams
from .central_state import EVENT
from .driver import Conditions, Replication, slice_ends
from .interrupts import DRAWS, POOL, SLICE, TRACE

__all__ = [
    "Arrivals",
    "check",
    "run",
]

PAGE = 65536
SAMPLES = 128
TASKS_PER_SLICE = 2_000
"""A slice is at most about this many tasks: they take longer here than elsewhere."""
DISCARD = {"never": 0, "batch": 1, "both": 2}

Floats = NDArray[np.float64]


def check(system: System, policy: Policy) -> None:
    """Refuse a system that batch policies cannot run."""
    name = system.name or "the system"
    if system.failures is not None:
        raise InputError(
            f"{name} has machines that fail; {policy.name} is a batch policy, which knows none"
        )
    if any(isinstance(share, MarkovChain) for share in system.availability):
        raise InputError(
            f"{name} has availabilities that change; {policy.name} is a batch policy, which knows "
            "constant ones"
        )


def run(system: System, policy: Policy, conditions: Conditions) -> Replication:
    """Simulate one replication of a system of batches.

    With a number of tasks it ends when all are done that ever will be, whatever the horizon. A
    traced one keeps, at the times of its samples, the robustness of what the machines hold.
    """
    horizon, warmup, trace = conditions.horizon, conditions.warmup, conditions.trace
    streams = Streams.spawn(conditions.seed)
    pmfs = true_pmfs(system, streams.faults)
    truth = table_of(pmfs)
    believed = table_of(believed_pmfs(system, pmfs, streams.beliefs))
    settings = system.batch or BatchRun()
    allowed = allowances(system, truth.mean)
    state = make_state(system, truth, believed, allowed)
    view = make_view(believed, allowed, settings.queue_limit)
    if trace:
        state = state._replace(trace=records(PAGE, EVENT))
    limit = 0 if policy.options["immediate"] else settings.queue_limit
    rule = system.deadlines.discard if system.deadlines is not None else "never"
    discard = 0 if policy.options["immediate"] else DISCARD[rule]
    if conditions.interpreted:
        go = bind(loop, decide=policy.decide)
    else:
        go = link(loop, allocating=policy.allocating, decide=policy.decide)
    work = _Work(state, view, Arrivals(system, streams.tasks), trace)
    rest = (policy.arguments(system.shape), warmup, limit, discard, streams.policy)
    times, number, moments = [0.0], [0.0], []
    for until, is_sample, done in _slices(system, horizon, warmup, work):
        work.go(go, until, *rest)
        if until == warmup and until > 0:
            work.forget()
        if until > 0 and is_sample:
            times.append(until)
            number.append(float(work.state.count[0].inside))
            if trace and system.deadlines is not None:
                moments.append((until, *judge(work.state, pmfs, until)))
        conditions.on_slice(done)
    ended = settings.tasks is not None
    end = max(float(work.state.count[0].last), warmup + 1e-12) if ended else horizon
    found = _read_off(work, end, warmup, _sampled(times, number, end, ended))
    if moments:
        found = found._replace(more=MappingProxyType({**found.more, "moments": np.array(moments)}))
    return found


class _Work:
    """The state of a replication, and what its loop cannot do by itself."""

    def __init__(self, state: State, view: BatchView, arrivals: Arrivals, tracing: bool) -> None:
        self.state, self.view, self.arrivals, self.tracing = state, view, arrivals, tracing
        self.pages: list[Any] = []
        self.seconds = 0.0

    def go(self, go: Callable[..., int], until: float, *rest: Any) -> None:
        """Run the loop until a time."""
        reason = -1
        arguments, *settings = rest
        while reason != SLICE:
            before = thread_time()
            reason = go(self.state, self.view, arguments, until, *settings)
            self.seconds += thread_time() - before if until > 0 else 0.0
            if reason == POOL:
                self.state, self.view = grow(self.state, self.view)
            elif reason == DRAWS:
                found, complete = self.arrivals.more()
                self.state = self.state._replace(arrival=found)
                count = self.state.count[0]
                count.coming, count.known, count.complete = 0, len(found), complete
            elif reason == TRACE:
                self.turn_page()

    def turn_page(self) -> None:
        """Put the events noted so far aside."""
        self.pages.append(self.state.trace[: self.state.count[0].traced].copy())
        self.state.count[0].traced = 0
        needed = 2 * trace_needs(self.state)
        if needed > len(self.state.trace):
            self.state = self.state._replace(trace=records(needed, EVENT))

    def forget(self) -> None:
        """Start the statistics anew at the end of the warm-up."""
        count, server = self.state.count[0], self.state.server
        count.area = 0.0
        self.state.stream["finished"] = 0
        serving = server["head"] >= 0
        server["busy"] = np.where(serving, server["begun"] - count.now, 0.0)

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more."""
        count = self.state.count[0]
        served = bool((self.state.server["finish"] == np.inf).all())
        return bool(count.complete) and count.coming == count.known and served


def _slices(
    system: System, horizon: float, warmup: float, work: _Work
) -> Iterator[tuple[float, bool, float]]:
    """Cut the run into slices: up to the horizon, or until the last task is done."""
    tasks = None if system.batch is None else system.batch.tasks
    rate = float(system.arrival_rates.sum())
    if tasks is None:
        last = 0.0
        for until, is_sample in slice_ends(system, horizon, warmup):
            parts = int((until - last) * rate / TASKS_PER_SLICE) + 1
            for k in range(1, parts):
                yield last + (until - last) * k / parts, False, last / horizon
            yield until, is_sample, until / horizon
            last = until
        return
    yield 0.0, False, 0.0
    length = tasks / rate
    step = length / max(SAMPLES, tasks // TASKS_PER_SLICE)
    until = 0.0
    while not work.is_over:
        if until < warmup < until + step:
            yield warmup, False, 0.0
        until += step
        yield until, True, min(until / length, 0.99)


def _sampled(
    times: list[float], number: list[float], end: float, ended: bool
) -> tuple[Floats, Floats]:
    """Return the samples; of runs that end by themselves equally many, spread over the run."""
    if not ended:
        return np.array(times), np.array(number)
    at = np.linspace(0, end, SAMPLES + 1)
    return at, np.interp(at, times, number)


def _read_off(
    work: _Work, end: float, warmup: float, samples: tuple[Floats, Floats]
) -> Replication:
    state = work.state
    count, stream, server = state.count[0], state.stream, state.server
    length = end - warmup
    busy = server["busy"].copy()
    serving = server["head"] >= 0
    busy[serving] += end - server["begun"][serving]
    area = float(count.area) - float(count.inside) * max(float(count.now) - end, 0.0)
    responded = stream["responded"].copy()
    if work.tracing:
        work.turn_page()

    def mean(total: Floats) -> Floats:
        return np.divide(total, responded, out=np.full(len(total), np.nan), where=responded > 0)

    counts = {name: stream[name].copy() for name in ("on_time", "late", "discarded", "arrived")}
    totals = {name: float(each.sum()) for name, each in counts.items()}
    arrived = totals.pop("arrived")
    more = {
        **totals,
        "unfinished": arrived - sum(totals.values()),
        "on_time_fraction": totals["on_time"] / arrived if arrived else np.nan,
        "wasted_work": float(count.wasted),
        "makespan": float(count.last),
        "mapping_events": float(count.mapped),
        **{f"class_{name}": each.astype(float) for name, each in counts.items()},
    }
    return Replication(
        mean_number=area / length,
        response=mean(stream["response"]),
        waiting=mean(stream["waited"]),
        queueing=mean(stream["queueing"]),
        responded=responded,
        throughput=stream["finished"] / length,
        utilisation=busy / length,
        tasks=int(count.tasks),
        refusals=int(count.refusals),
        tally=work.view.tally.copy(),
        permitted=np.count_nonzero(state.length, axis=1).astype(float),
        memory=work.view.memory.copy(),
        times=samples[0],
        number=samples[1],
        seconds=work.seconds,
        trace=np.concatenate(work.pages).view(np.recarray) if work.tracing else None,
        more=MappingProxyType(more),
    )


BLOCK = 256
"""Tasks of a class that are drawn at a time."""


class Arrivals:
    """Tasks of all classes in the order of time; each class has random numbers of its own."""

    def __init__(self, system: System, rng: Generator) -> None:
        self.rngs = rng.spawn(len(system.classes))
        shape = system.interarrival
        self.shapes = shape if isinstance(shape, tuple) else (shape,) * len(self.rngs)
        self.rates = system.arrival_rates
        self.most = None if system.batch is None else system.batch.tasks
        self.at_once = system.batch is not None and system.batch.at_once
        self.given = 0
        self.rest = records(0, ARRIVAL)
        self.last = np.zeros(len(self.rngs))

    def more(self) -> tuple[Any, bool]:
        """Return further arrivals, and whether they are the last of all."""
        while True:
            self._draw()
            sure = int(np.searchsorted(self.rest["time"], self.last.min(), side="right"))
            if self.at_once and len(self.rest[:sure]) < self.most:  # type: ignore[operator]
                continue
            if sure:
                break
        found, self.rest = self.rest[:sure], self.rest[sure:]
        if self.most is not None:
            found = found[: self.most - self.given]
        self.given += len(found)
        if self.at_once:
            found["time"] = 0.0
        return found.copy(), self.given == self.most

    def _draw(self) -> None:
        """Draw some more of the class of which the fewest are known."""
        parts = [self.rest]
        behind = self.last <= self.last.min()
        for i in np.flatnonzero(behind):
            rng, shape = self.rngs[i], self.shapes[i]
            block = records(BLOCK, ARRIVAL)
            gaps = np.asarray(shape.sample(rng, BLOCK), dtype=float) / shape.mean / self.rates[i]
            block["time"] = self.last[i] + np.cumsum(gaps)
            block["quantile"] = rng.random(BLOCK)
            block["task_class"] = i
            self.last[i] = block["time"][-1]
            parts.append(block)
        together = np.concatenate(parts)
        order = np.argsort(together["time"], kind="stable")
        self.rest = together[order].view(np.recarray)


def judge(state: State, pmfs: Pmfs, now: float) -> Robustness:
    """Return the robustness of the allocation as it stands at a time between two events."""
    machines = []
    for j, server in enumerate(state.server):
        tasks: list[tuple[GridPmf, float]] = []
        place = int(server.head)
        while place >= 0:
            ticket = state.ticket[place]
            pmf = pmfs[int(ticket.task_class)][j]
            assert pmf is not None
            if not tasks:
                pmf = pmf.shift(float(server.begun))
                pmf = pmf.after(now) if pmf.by(now) < 1 else GridPmf(pmf.width, [1.0], now)
            tasks.append((pmf, float(ticket.deadline)))
            place = int(ticket.next)
        machines.append(tasks)
    return robustness(*machines)
