"""Calibration: measure the real speed of machines through a grid.

Two lines are fitted for each machine: the time of a job against its length, and its rate against
the availability that is imposed on the machine. Both should be straight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..grid import Grid, Journal
from ..grid.executors import Executor
from ..grid.validation import executor_of, renamed_place
from ..model import GridTimeoutError, InputError, System
from ..statistics import Line, line
from .adjuster import Adjuster, Calibration, Call, carry_along, spin
from .machine_list import Listed

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Lengths of the jobs, as shares of the longest."""
AVAILABILITIES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Availabilities that are imposed; the first gives the longest jobs."""
FIRST = 500
"""Iterations of the first job, from which the lengths of the others follow."""
LONG_ENOUGH = 0.02
"""The least seconds of a job that allow an estimate of the speed."""
LONG = 3600.0
"""Seconds for which an availability is imposed, unless the next one is imposed before."""
PATIENCE = 60.0
"""Seconds to wait for a job, beyond ten times its expected duration."""

Progress = Callable[[str, float], None]


def calibrate(
    machines: int | Sequence[str] | Executor | None = None,
    *,
    on: Executor | str | None = None,
    repeats: int = 5,
    longest: float = 0.1,
    together: bool = False,
    progress: Progress = lambda machine, done: None,
) -> Calibrations:
    """Measure how fast machines run the loop of spin jobs.

    Parameters
    ----------
    machines
        How many machines to measure, or their names. By default two local processes, or all
        workers of a cluster.
    on
        Where they are: on this computer, at the address of a cluster, or an executor.
    repeats
        How often each job runs.
    longest
        Approximate seconds of the longest jobs.
    together
        Measure all machines at once, as in an experiment. By default they are measured one after
        another, because machines that share a computer slow each other down.
    progress
        Called with the machine at work and the share of all work that is done.
    """
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; expected at least 1")
    if not 0 < longest <= 600:
        raise InputError(f"longest is {longest:g} seconds; expected more than 0, at most 600")
    if machines is not None and not isinstance(machines, int | Sequence):
        on, machines = renamed_place(None, machines, "", "calibrate"), None
    executor = executor_of(on, machines)
    names = list(executor.machines)
    if not names:
        raise InputError("there are no machines to calibrate; start some first")
    if len(set(names)) < len(names):
        raise InputError("two machines have the same name; expected one each")
    carry_along()
    groups = [list(range(len(names)))] if together else [[j] for j in range(len(names))]
    found: list[Measured] = []
    with TemporaryDirectory(prefix="gridwright-") as folder:
        path = Path(folder) / "calibration.sqlite"
        # A class for each machine, which only that machine can run: any policy sends it there.
        options: dict[str, Any] = {"rates": np.eye(len(names)), "corrections": False}
        with (
            Grid("fcfs", on=executor, classes=names, journal=path, **options) as grid,
            closing(Journal(path)) as journal,
        ):
            for k, group in enumerate(groups):
                bench = _Bench(grid, journal, names, group, PATIENCE + 10 * longest)
                said = names[group[0]] if len(group) == 1 else "all"

                def tell(done: float, k: int = k, said: str = said) -> None:
                    progress(said, (k + done) / len(groups))

                found += _measure(bench, repeats, longest, tell)
    return Calibrations(tuple(found), repeats)


@dataclass(frozen=True)
class _Bench:
    """The machines that are measured at the same time."""

    grid: Grid
    journal: Journal
    names: list[str]
    group: list[int]
    patience: float
    """Seconds for which a job is waited for."""

    def run(self, calls: dict[int, Call]) -> dict[int, float]:
        """Run a call on each machine; return the seconds that the journal says."""
        futures = {
            j: self.grid.options(task_class=self.names[j]).submit(function, *args, **kwargs)
            for j, (function, args, kwargs) in calls.items()
        }
        for j, future in futures.items():
            try:
                future.result(self.patience)
            except TimeoutError:
                raise GridTimeoutError(
                    f"machine {self.names[j]} has not answered for {self.patience:g} seconds; "
                    "is it up and idle?"
                ) from None
        kept = {each.job.number: each.job for each in self.journal.jobs()}
        jobs = {j: kept[future.number] for j, future in futures.items()}
        return {j: job.ended - job.started for j, job in jobs.items()}


def _measure(
    bench: _Bench, repeats: int, longest: float, tell: Callable[[float], None]
) -> list[Measured]:
    """Measure some machines at the same time."""
    tell(0.0)
    per_second = _guess(bench)
    lengths: dict[int, list[int]] = {}  # iterations, from a fifth of the longest job to the longest
    for j in bench.group:
        unit = max(1, round(per_second[j] * longest * SHARES[0]))
        lengths[j] = [round(unit * share / SHARES[0]) for share in SHARES]
    calls: list[dict[int, Call]]
    calls = [{j: (spin, (lengths[j][k],), {}) for j in bench.group} for k in range(len(SHARES))]
    times = _series(bench, calls, repeats, lambda done: tell(0.5 * done))
    by_length = {j: _points(lengths[j], times[j]) for j in bench.group}

    imposed = 1 / (longest * AVAILABILITIES[0])
    known = {j: calibration_of(by_length[j]) for j in bench.group}
    machines = len(bench.names)  # a class for each, as in the grid
    system = System(arrivals=[1.0] * machines, rates=np.eye(machines) * imposed)
    anything = next(iter(known.values()))  # for machines that are not measured
    adjuster = Adjuster(system, 1.0, "spin", [known.get(j, anything) for j in range(machines)])
    job = {j: adjuster.call(j, j, work=1.0) for j in bench.group}
    calls = [job] * len(AVAILABILITIES)
    times = _series(bench, calls, repeats, lambda done: tell(0.5 + 0.5 * done), AVAILABILITIES)
    return [
        Measured(bench.names[j], by_length[j], _points(AVAILABILITIES, times[j]), imposed)
        for j in bench.group
    ]


def _series(
    bench: _Bench,
    calls: list[dict[int, Call]],
    repeats: int,
    tell: Callable[[float], None],
    shares: Sequence[float] = (),
) -> dict[int, list[list[float]]]:
    """Run several calls several times, each on machines of the availability ``shares``, if given.

    Return the seconds of each, by machine.
    """
    times: dict[int, list[list[float]]] = {j: [[] for _ in calls] for j in bench.group}
    for again in range(repeats):  # in rounds: a disturbance then affects one of each
        for k, call in enumerate(calls):
            for j in call if shares else ():
                bench.grid.impose(bench.names[j], shares[k], LONG)
            for j, seconds in bench.run(call).items():
                times[j][k].append(seconds)
            tell((again + (k + 1) / len(calls)) / repeats)
    return times


def _guess(bench: _Bench) -> dict[int, float]:
    """Estimate how many iterations a machine runs per second."""
    warm: Call = (spin, (1,), {})  # the first job of a process waits for imports
    bench.run(dict.fromkeys(bench.group, warm))
    found: dict[int, float] = {}
    rounds = FIRST
    while len(found) < len(bench.group):
        call: Call = (spin, (rounds,), {})
        left = [j for j in bench.group if j not in found]
        for j, seconds in bench.run(dict.fromkeys(left, call)).items():
            if seconds >= LONG_ENOUGH:
                found[j] = rounds / seconds
        rounds *= 2
    return found


def _points(places: Sequence[float], seconds: list[list[float]]) -> tuple[Point, ...]:
    return tuple(Point(at, tuple(each)) for at, each in zip(places, seconds, strict=True))


@dataclass(frozen=True)
class Point:
    """Equal jobs, and the seconds that each took."""

    at: float
    """Iterations, or an availability."""
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the seconds.

        The minimum would fit a line better, but rates are means, and include the time that a
        computer spends on other things.
        """
        return sum(self.seconds) / len(self.seconds)


@dataclass(frozen=True)
class Measured:
    """The measurements of a machine."""

    machine: str
    lengths: tuple[Point, ...]
    """Jobs of several lengths, in iterations."""
    availabilities: tuple[Point, ...]
    """Jobs of one length on the machine at each availability."""
    imposed: float
    """Their rate in jobs per second with the whole CPU."""

    @property
    def time_line(self) -> Line:
        """Seconds against iterations."""
        return line([p.at for p in self.lengths], [p.mean for p in self.lengths])

    @property
    def rate_line(self) -> Line:
        """Jobs a second against the imposed availability."""
        points = self.availabilities
        return line([p.at for p in points], [1 / p.mean for p in points])

    @property
    def calibration(self) -> Calibration:
        """The longest job and its seconds on the fitted line."""
        return calibration_of(self.lengths)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        calibration = self.calibration
        return {
            "machine": self.machine,
            "iterations": calibration.iterations,
            "seconds": calibration.seconds,
            "per_second": calibration.per_second,
            "time": {
                **self.time_line._asdict(),
                "points": [{"iterations": p.at, "seconds": list(p.seconds)} for p in self.lengths],
            },
            "rate": {
                **self.rate_line._asdict(),
                "imposed": self.imposed,
                "points": [
                    {"availability": p.at, "seconds": list(p.seconds), "rate": 1 / p.mean}
                    for p in self.availabilities
                ],
            },
        }


@dataclass(frozen=True)
class Calibrations:
    """The measurements of all machines."""

    machines: tuple[Measured, ...]
    repeats: int

    def calibrations(self) -> tuple[Calibration, ...]:
        """Return the calibrations for an adjuster, in the order of the machines."""
        return tuple(each.calibration for each in self.machines)

    def listed(self) -> tuple[Listed, ...]:
        """Return the machines for a machine list."""
        return tuple(Listed(m.machine, None, m.calibration) for m in self.machines)

    def rows(self) -> list[list[Any]]:
        """Return a row for every job: machine, what was varied, its value, repeat, seconds."""
        return [
            [each.machine, what, point.at, repeat, seconds]
            for each in self.machines
            for what, points in (
                ("iterations", each.lengths),
                ("availability", each.availabilities),
            )
            for point in points
            for repeat, seconds in enumerate(point.seconds, start=1)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"repeats": self.repeats, "machines": [each.as_json() for each in self.machines]}


def calibration_of(lengths: Sequence[Point]) -> Calibration:
    """Return the longest job and its seconds on the line through all points."""
    fitted = line([p.at for p in lengths], [p.mean for p in lengths])
    last = lengths[-1]
    seconds = fitted.at(last.at)
    # with much noise the line may be negative there; then use the job itself
    return Calibration(iterations=last.at, seconds=seconds if seconds > 0 else last.mean)
