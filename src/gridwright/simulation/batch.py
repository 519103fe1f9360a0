"""The mechanism of batch policies: tasks wait centrally until mapping events send them."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from ..model import BatchRun, GridPmf, InputError, MarkovChain, Robustness, System, robustness
from ..model.batch_tables import Pmfs, allowances, believed_pmfs, table_of, true_pmfs
from ..model.system import Floats
from ..policies import Policy
from ..policies.view import CHOSEN, WAITING, Records, records
from .batch_loop import events_per_step, loop
from .batch_state import ARRIVAL, State, make_state, make_view
from .driver import SAMPLES, Conditions, Mechanism, doubled

TASKS_PER_SLICE = 2_000
"""A slice is at most about this many tasks: they take longer here than elsewhere."""
DISCARD = {"never": 0, "batch": 1, "both": 2}
BLOCK = 256
"""Tasks of a class that are drawn at a time."""


class Batch(Mechanism):
    """A system of batches.

    With a number of tasks a run ends when the last of them has left, whatever the horizon. A traced
    run keeps, at the times of its samples, the robustness of what the machines hold.
    """

    serving_field: ClassVar[str] = "head"
    most: ClassVar[int] = 1 << 22
    events_per_step = staticmethod(events_per_step)

    @staticmethod
    def check(system: System, policy: Policy) -> None:
        """Refuse a system that batch policies cannot run."""
        name = system.name or "the system"
        if system.failures is not None:
            raise InputError(
                f"{name} has machines that fail; {policy.name} is a batch policy, for machines "
                "that never fail"
            )
        if any(isinstance(share, MarkovChain) for share in system.availability):
            raise InputError(
                f"{name} has availabilities that change; {policy.name} is a batch policy, for "
                "availabilities that are constant"
            )

    def __init__(self, system: System, policy: Policy, conditions: Conditions) -> None:
        super().__init__(system, policy, conditions)
        streams, settings = self.streams, system.batch or BatchRun()
        self.pmfs = true_pmfs(system, streams.faults)
        truth = table_of(self.pmfs)
        believed = table_of(believed_pmfs(system, self.pmfs, streams.beliefs))
        allowed = allowances(system, truth.mean)
        self.state = make_state(system, truth, believed, allowed)
        self.view = make_view(believed, allowed, settings.queue_limit)
        self.arrivals = Arrivals(system, streams.tasks)
        self.last_task = settings.tasks
        self.moments: list[tuple[float, ...]] = []
        limit = 0 if policy.options["immediate"] else settings.queue_limit
        rule = system.deadlines.discard if system.deadlines is not None else "never"
        discard = 0 if policy.options["immediate"] else DISCARD[rule]
        self.go = self.linked(loop, inlined=False)
        self.rest = (conditions.warmup, limit, discard, streams.policy)

    def loop(self, until: float) -> int:
        return int(self.go(self.state, self.view, self.arguments, until, *self.rest))

    def more_room(self, size: int) -> None:
        self.replace(place=doubled(self.state.place), waiting=records(size, WAITING))
        chance = np.zeros((size, len(self.state.server)))
        self.view = self.view._replace(chosen=records(size, CHOSEN), chance=chance)

    def refill(self) -> None:
        found, complete = self.arrivals.more()
        self.replace(arrival=found)
        count = self.state.count[0]
        count.coming, count.known, count.complete = 0, len(found), complete

    def upcoming(self) -> float:
        count = self.state.count[0]
        if count.coming == count.known and not count.complete:
            self.refill()
        if count.coming == count.known:
            return np.inf
        return float(self.state.arrival[count.coming].time)

    def slices(self) -> Iterator[tuple[float, bool, float]]:
        """Cut the run into slices: up to the horizon, or until the last task is done."""
        warmup, rate = self.conditions.warmup, float(self.system.arrival_rates.sum())
        if self.last_task is None:
            last = before = 0.0
            for until, is_sample, done in super().slices():
                parts = int((until - last) * rate / TASKS_PER_SLICE) + 1
                for k in range(1, parts):
                    yield last + (until - last) * k / parts, False, before
                yield until, is_sample, done
                last, before = until, done
            return
        yield 0.0, False, 0.0
        length = self.last_task / rate
        step = length / max(SAMPLES, self.last_task // TASKS_PER_SLICE)
        until = 0.0
        while not self._is_over:
            if until < warmup < until + step:
                yield warmup, False, 0.0
            until += step
            yield until, True, min(until / length, 0.99)

    @property
    def _is_over(self) -> bool:
        """Whether nothing will happen any more."""
        count = self.state.count[0]
        served = bool((self.state.server["finish"] == np.inf).all())
        return bool(count.complete) and count.coming == count.known and served

    def sample(self, now: float) -> None:
        """Record the robustness of the allocation, if the run is traced."""
        if self.conditions.trace and self.system.deadlines is not None:
            self.moments.append((now, *judge(self.state, self.pmfs, now)))

    @property
    def end(self) -> float:
        if self.last_task is None:
            return super().end
        count, warmup = self.state.count[0], self.conditions.warmup
        last = float(count.last or count.now)  # if no task was finished, all of the run counts
        if last <= warmup:
            raise InputError(
                f"a run was over at time {last:g}, and its first {warmup:g} time units do not "
                "count: nothing was measured"
            )
        return last

    def samples(self, times: list[float], number: list[float]) -> tuple[Floats, Floats]:
        """Return the samples; of runs that end by themselves equally many, spread over the run."""
        if self.last_task is None:
            return super().samples(times, number)
        at = np.linspace(0, self.end, SAMPLES + 1)
        return at, np.interp(at, times, number)

    def measured(self) -> dict[str, Any]:
        count, stream = self.state.count[0], self.state.stream
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
        if self.moments:
            more["moments"] = np.array(self.moments)
        return {
            "tally": self.view.tally.copy(),
            "permitted": np.count_nonzero(self.state.length, axis=1).astype(float),
            "memory": self.view.memory.copy(),
            "more": MappingProxyType(more),
        }


class Arrivals:
    """The arrivals of all classes in the order of time, the same under every policy.

    Each class has its own random numbers. Arrivals are drawn some at a time.
    """

    def __init__(self, system: System, rng: Generator) -> None:
        self.rngs = rng.spawn(len(system.classes))
        self.shapes = system.per_class(system.interarrival)
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
        """Draw more arrivals of the classes that are drawn least far ahead."""
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
        self.rest = together[order].view(Records)


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
