"""``sweep_over_time``: policies through the day of a system whose arrival rates change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import Delays, Floats, InputError, Profile, System
from ..policies import Policy
from ..simulation import Replication
from ..simulation.event_log import ARRIVE, FINISH
from ..statistics import Estimate, estimate
from ..tabular import Tabular
from .rehearsal import prepare
from .result import Result
from .results_by_kind import choose_policies, result_of
from .simulate import (
    PolicyGiven,
    SystemGiven,
    check_numbers,
    options_of,
    resolve,
    run_in_threads,
    seeds_of,
)

FEWEST = 12
"""Intervals that a cycle is cut into, at least, unless times are given."""
MOST_TASKS = 20_000_000
"""Tasks of a replication, at most: the times of all of them are in memory at once."""


class Measured(NamedTuple):
    """What one replication measured in each interval of the cycle."""

    number: Floats  # [interval, class], mean number in system
    response: Floats  # [interval, class], mean over tasks that arrived in the interval; nan: none
    responded: NDArray[np.int64]  # [interval, class], how many tasks these means are over


@dataclass(frozen=True, eq=False)
class SweepOverTime(Tabular):
    """Results of several policies in each interval of a cycle of changing arrival rates."""

    system: System
    edges: tuple[float, ...]
    """The times in the cycle at which intervals begin; the last is the end of the cycle."""
    results: tuple[Result, ...]
    """The results of the policies over the whole runs."""
    measured: tuple[tuple[Measured, ...], ...]
    """What each replication measured, for each policy."""

    @property
    def arrival_rates(self) -> Floats:
        """The mean arrival rate of all classes in each interval."""
        assert self.system.profile is not None
        profile, classes = self.system.profile, len(self.system.classes)
        rates = self.system.arrivals @ profile.rows(classes)
        ends = np.concatenate([[0.0], np.cumsum(profile.durations)])
        come = np.concatenate([[0.0], np.cumsum(rates * profile.durations)])
        return np.diff(np.interp(self.edges, ends, come)) / np.diff(self.edges)

    def mean_number(self, policy: int, interval: int, task_class: int | None = None) -> Estimate:
        """Return the mean number in system in an interval, of all classes or of one."""
        chosen = slice(None) if task_class is None else task_class
        return estimate(
            [float(run.number[interval, chosen].sum()) for run in self.measured[policy]]
        )

    def mean_response(self, policy: int, interval: int, task_class: int | None = None) -> Estimate:
        """Return the mean response of tasks that arrived in an interval, of all classes or one."""
        chosen = slice(None) if task_class is None else slice(task_class, task_class + 1)
        means = []
        for run in self.measured[policy]:
            counts = run.responded[interval, chosen]
            total = float(np.nansum(run.response[interval, chosen] * counts))
            means.append(total / counts.sum() if counts.any() else float("nan"))
        return estimate(means)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each interval and policy."""
        return [
            {
                "time": begin,
                "until": end,
                "arrivals": float(rate),
                "policy": str(result.policy),
                "stable": result.stable,
                "mean_number": self.mean_number(k, n),
                "mean_response": self.mean_response(k, n),
            }
            for n, ((begin, end), rate) in enumerate(
                zip(pairwise(self.edges), self.arrival_rates, strict=True)
            )
            for k, result in enumerate(self.results)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the sweep as ``--json`` prints it."""
        first = self.results[0]
        return {
            "system": self.system.name,
            "vary": "time",
            "horizon": first.horizon,
            "warmup": first.warmup,
            "replications": len(first.replications),
            "seed": first.seed,
            "cycle": self.edges[-1],
            "results": [each.as_json() for each in self.results],
            "intervals": [
                {
                    "time": begin,
                    "until": end,
                    "arrivals": float(rate),
                    "policies": [self._interval(k, n) for k in range(len(self.results))],
                }
                for n, ((begin, end), rate) in enumerate(
                    zip(pairwise(self.edges), self.arrival_rates, strict=True)
                )
            ],
        }

    def _interval(self, policy: int, interval: int) -> dict[str, Any]:
        """Return the figures of a policy in an interval, by class too."""

        def figures(task_class: int | None) -> dict[str, Any]:
            where = policy, interval, task_class
            return {
                "mean_number": self.mean_number(*where).as_json(),
                "mean_response": self.mean_response(*where).as_json(),
            }

        classes = [{"name": name, **figures(i)} for i, name in enumerate(self.system.classes)]
        return {"policy": str(self.results[policy].policy), **figures(None), "classes": classes}


def sweep_over_time(
    system: SystemGiven,
    policies: Sequence[PolicyGiven],
    times: Sequence[float] = (),
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    *,
    warmup: float = 0.0,
    delays: Delays | None = None,
    threads: int | None = None,
    progress: Callable[[Policy, float], None] = lambda policy, done: None,
) -> SweepOverTime:
    """Simulate policies on a system with a profile; measure them in each interval of its cycle.

    Only whole cycles after the warm-up count. The response is that of the tasks that arrive in an
    interval and finish before the horizon. All policies have the same arrivals.

    Parameters
    ----------
    times
        When intervals begin, from 0 on and before the end of the cycle; by default each period of
        the profile is cut into equal parts, so that there are at least 12 intervals.
    system, policies, horizon, replications, seed, warmup, delays, threads
        As for ``sweep``.
    progress
        Called from time to time with the policy and the share of its replications that is done.

    Examples
    --------
    >>> day = {"durations": [8, 16], "factors": [2, 0.5]}
    >>> one = System(arrivals=[1], rates=[[2.5]], profile=day)
    >>> found = sweep_over_time(one, ["mct"], [0, 8], horizon=2400, replications=5)
    >>> busy, quiet = (row["mean_number"].mean for row in found.rows())
    >>> busy > 2 * quiet
    True
    """
    system, horizon = resolve(system, horizon)
    chosen = choose_policies(policies, 1, "there is no policy to simulate; name at least one")
    check_numbers(horizon, replications, seed, warmup, threads=threads)
    if delays is not None:
        system = system.replace(delays=delays)
    edges = _edges(system, times)
    cycle = edges[-1]
    first, last = cycle * ceil(warmup / cycle), cycle * (horizon // cycle)
    if last <= first:
        raise InputError(
            f"no cycle of {cycle:g} time units is between the warm-up and the horizon, "
            f"{warmup:g} to {horizon:g}; use a longer horizon"
        )
    tasks = horizon * float(system.arrival_rates.sum())
    if tasks > MOST_TASKS:
        raise InputError(
            f"a run of {horizon:g} time units has about {tasks:.3g} tasks; expected at most "
            f"{MOST_TASKS:.3g}: use a shorter horizon and more replications"
        )
    seeds, results, measured = seeds_of(seed, 0, replications), [], []
    for policy in chosen:
        options = options_of(system, policy, horizon, warmup, trace=True)
        found: dict[int, tuple[Replication, Measured]] = {}

        def on_done(number: int, run: Replication, found: Any = found) -> None:
            own = _measure(run.trace, edges, (first, last), horizon, len(system.classes))
            found[number] = run._replace(trace=None), own

        tell = partial(progress, policy)
        tell(0.0)  # compiling may take some seconds
        what = system, prepare(system, policy, options["rng"]), seeds, options
        run_in_threads(*what, on_done, tell, threads)
        runs, own = zip(*(found[k] for k in range(replications)), strict=True)
        results.append(result_of(system, policy, horizon, warmup, seed, runs))
        measured.append(own)
    return SweepOverTime(system, edges, tuple(results), tuple(measured))


def _edges(system: System, times: Sequence[float]) -> tuple[float, ...]:
    """Return when intervals of the cycle begin, and the end of the cycle."""
    profile = system.profile
    name = system.name or "the system"
    if profile is None:
        raise InputError(f"{name} has no [profile]: its arrival rates do not change with time")
    if profile.random:
        raise InputError(f"the [profile] of {name} is random: it has no time of the day")
    if not len(times):
        return _periods(profile)
    end = float(sum(profile.durations))
    given = [float(each) for each in times if each != end]
    if not given or given[0] != 0 or any(b <= a for a, b in pairwise([*given, end])):
        raise InputError(
            f"times are {', '.join(f'{each:g}' for each in times)}; expected rising times from 0 "
            f"on, less than {end:g}, the length of the cycle"
        )
    return (*given, end)


def _periods(profile: Profile) -> tuple[float, ...]:
    """Cut each period of a profile into equal parts, so that there are enough."""
    parts = ceil(FEWEST / len(profile.durations))
    ends = [0.0, *np.cumsum(profile.durations).tolist()]
    cut = [np.linspace(a, b, parts, endpoint=False).tolist() for a, b in pairwise(ends)]
    return (*(time for period in cut for time in period), ends[-1])


def _measure(
    trace: Any, edges: Sequence[float], counted: tuple[float, float], horizon: float, classes: int
) -> Measured:
    """Read off an event log what tasks were in the system in each interval of the cycle."""
    came = trace[trace["kind"] == ARRIVE]
    arrived, kind, number = came["time"], came["task_class"], came["task"]
    went = trace[trace["kind"] == FINISH]
    left = np.full(int(number.max(initial=0)) + 1, np.inf)
    left[went["task"]] = went["time"]
    left = left[number]
    starts, cycle = np.array(edges[:-1]), edges[-1]
    lengths, cycles = np.diff(edges), (counted[1] - counted[0]) / cycle

    def spent(time: Floats, interval: int) -> Floats:
        """Return how much of the time until then was in an interval."""
        whole, rest = np.divmod(time, cycle)
        inside = np.clip(rest - starts[interval], 0.0, lengths[interval])
        return np.asarray(whole * lengths[interval] + inside)

    begin, end = np.clip(arrived, *counted), np.clip(left, *counted)
    areas = [
        np.bincount(kind, spent(end, n) - spent(begin, n), minlength=classes)
        for n in range(len(starts))
    ]
    known = (arrived >= counted[0]) & (arrived < counted[1]) & (left <= horizon)
    when = np.searchsorted(starts, arrived[known] % cycle, side="right") - 1
    cell, shape = when * classes + kind[known], (len(starts), classes)
    responded = np.bincount(cell, minlength=len(starts) * classes).reshape(shape)
    total = np.bincount(cell, (left - arrived)[known], minlength=responded.size).reshape(shape)
    response = np.divide(total, responded, out=np.full(shape, np.nan), where=responded > 0)
    return Measured(np.array(areas) / (lengths[:, None] * cycles), response, responded)
