"""Describe traces: arrivals and lengths of jobs, task classes, failures; make systems of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import allocate
from ..model import Failures, Heterogeneity, InputError, Profile, System, heterogeneity
from .failure_trace import FailureTrace
from .fit import Fitted, fit
from .job_trace import JobTrace
from .machines import Machines, machines_for, system_of
from .throughput import Throughputs
from .trace_file import Account
from .workload import Workload, workload

HOUR = 3600.0
DAY = 24
"""Hours of a profile."""


class ClassCharacter(NamedTuple):
    """Describe the jobs of one class."""

    name: str
    jobs: int
    share: float
    """Share of all work."""
    rate: float
    """Jobs a second."""
    interarrival: Fitted
    work: Fitted


@dataclass(frozen=True)
class Character:
    """Describe a trace of jobs."""

    read: Account
    """Rows of the file."""
    used: Account
    """Jobs of the trace."""
    length: float
    demand: float
    """Number of machines of speed 1 that the jobs keep busy."""
    serial: float
    """Share of jobs that ran on one processor."""
    interarrival: Fitted
    work: Fitted
    peak: float
    """Jobs in the busiest hour ÷ those in a mean hour."""
    dispersion: float
    """Variance ÷ mean of the number of jobs in an hour: 1 for Poisson arrivals."""
    classes: tuple[ClassCharacter, ...]
    system: System
    heterogeneity: Heterogeneity

    @property
    def load(self) -> float:
        """The load of the system under the best allocation."""
        return allocate(self.system).load

    def as_json(self) -> dict[str, Any]:
        """Return the description as ``--json`` prints it."""
        day = self.system.profile
        return {
            "rows": self.read.as_json(),
            "jobs": self.used.as_json(),
            "length": self.length,
            "demand": self.demand,
            "serial": self.serial,
            "interarrival": self.interarrival.as_json(),
            "work": self.work.as_json(),
            "peak_hour": self.peak,
            "dispersion_of_hours": self.dispersion,
            "classes": [
                {
                    **each._asdict(),
                    "interarrival": each.interarrival.as_json(),
                    "work": each.work.as_json(),
                }
                for each in self.classes
            ],
            "machines": list(self.system.machines),
            "rates": self.system.rates.tolist(),
            "load": self.load,
            **({} if day is None else {"profile": day.factors.tolist()}),
            "heterogeneity": {**self.heterogeneity._asdict(), "name": self.heterogeneity.name},
        }


def characterise(
    trace: JobTrace,
    classes: str = "",
    *,
    machines: str = "",
    processors: str = "times",
    start: float = 0.0,
    end: float = np.inf,
    load: float | None = None,
    failures: Failures | None = None,
    profile: bool = False,
    name: str = "",
) -> Character:
    """Describe a trace of jobs, and make a system of it.

    With a ``profile``, the arrival rates of the system change with the hours of the day, as the
    mean day of the trace does; the day begins at the start. The other options are those of
    `workload`, `machines_for` and `system_of`.

    >>> trace = JobTrace({"submit": [0, 60, 120, 180, 400], "run_time": [9, 5, 7, 8, 6]})
    >>> found = characterise(trace, "run_time:1", machines="2x1")
    >>> round(found.interarrival.mean), round(found.work.mean), found.system
    (100, 7, System('': 1 class, 2 machines, arrivals [0.0124688]))
    """
    work = workload(trace, classes, processors=processors, start=start, end=end)
    per_class = tuple(_class(work, i) for i in range(len(work.classes)))
    gaps, day, arrivals = [each.interarrival for each in per_class], None, work.arrivals
    if profile:
        hourly = _day(work)
        arrivals = hourly.mean(axis=1)
        factors = (hourly / arrivals[:, None]).round(9)
        day = Profile(durations=[HOUR] * DAY, factors=factors.tolist())
        gaps = [
            fit(np.diff(_passed(work.times[work.task_classes == i], each)))
            for i, each in enumerate(factors)
        ]
    system = system_of(
        work,
        machines_for(work, machines),
        name=name,
        load=load,
        failures=failures,
        execution=tuple(each.work.distribution for each in per_class),
        interarrival=tuple(each.distribution for each in gaps),
        arrivals=arrivals,
        profile=day,
    )
    peak, dispersion = _hours(work)
    return Character(
        read=trace.account,
        used=work.account,
        length=work.length,
        demand=work.demand,
        serial=work.serial,
        interarrival=fit(np.diff(work.times)),
        work=fit(work.works),
        peak=peak,
        dispersion=dispersion,
        classes=per_class,
        system=system,
        heterogeneity=heterogeneity(system),
    )


def _class(work: Workload, i: int) -> ClassCharacter:
    own = work.task_classes == i
    works = work.works[own]
    share, rate = float(works.sum() / work.works.sum()), float(own.sum() / work.length)
    between = fit(np.diff(work.times[own]))
    return ClassCharacter(work.classes[i], int(own.sum()), share, rate, between, fit(works))


def _day(work: Workload) -> NDArray[np.float64]:
    """Return the arrival rate of each class in each hour of the mean day.

    The window may have some hours once more than others.
    """
    if work.length < DAY * HOUR:
        raise InputError(
            f"the window has {work.length / HOUR:.3g} hours; expected at least {DAY} for a profile"
        )
    hours = (work.times // HOUR).astype(int) % DAY
    counts = np.zeros((len(work.classes), DAY))
    np.add.at(counts, (work.task_classes, hours), 1.0)
    begins = np.arange(DAY) * HOUR
    days, rest = divmod(work.length, DAY * HOUR)
    return np.asarray(counts / (days * HOUR + np.clip(rest - begins, 0.0, HOUR)))


def _passed(times: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the times on a clock that goes as fast as the factor of each hour."""
    days, left = np.divmod(times, DAY * HOUR)
    passed = np.append(0.0, np.cumsum(factors)) * HOUR
    return days * passed[-1] + np.interp(left, np.arange(DAY + 1) * HOUR, passed)


def _hours(work: Workload) -> tuple[float, float]:
    whole = int(work.length // HOUR)
    if whole < 2:
        return float("nan"), float("nan")
    counts = np.bincount((work.times // HOUR).astype(int), minlength=whole)[:whole]
    mean = counts.mean()
    return (float(counts.max() / mean), float(counts.var() / mean)) if mean else (np.nan, np.nan)


@dataclass(frozen=True)
class FailureCharacter:
    """Describe a failure trace."""

    read: Account
    nodes: int
    down: int
    """Number of times down; overlapping ones count once."""
    mean_uptime: float
    """Time up of all nodes ÷ number of failures; nan if none failed."""
    up: Fitted
    """The times up between two failures of a node."""
    repair: Fitted
    availability: float
    """Time up ÷ all time that the trace covers."""
    most: int
    """Number of times down of the node with most."""

    def failures(self) -> Failures:
        """Return failures for a system whose time unit is a second."""
        if not self.mean_uptime > 0:
            raise InputError("the failure trace has no failure of a node that was up before")
        return Failures(
            mean_uptime=self.mean_uptime,
            mean_repair=self.repair.mean,
            uptime=self.up.distribution,
            repair=self.repair.distribution,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the description as ``--json`` prints it."""
        return {
            "rows": self.read.as_json(),
            "nodes": self.nodes,
            "times_down": self.down,
            "mean_uptime": self.mean_uptime,
            "up": self.up.as_json(),
            "repair": self.repair.as_json(),
            "availability": self.availability,
            "most_times_down": self.most,
        }


def characterise_failures(trace: FailureTrace) -> FailureCharacter:
    """Describe a failure trace.

    >>> trace = FailureTrace(["a"] * 3, [0, 100, 200], [10, 110, 210], [False] * 3)
    >>> characterise_failures(trace).availability
    0.857...
    """
    node, _, _ = trace.down()
    between, repair = trace.spells()
    up, failed = trace.time_up()
    known = up + float(repair.sum())
    mean_uptime = up / failed if failed else float("nan")
    availability = up / known if known > 0 else float("nan")
    most = int(np.bincount(node).max(initial=0))
    sizes = len(trace.nodes), len(repair), mean_uptime
    return FailureCharacter(trace.account, *sizes, fit(between), fit(repair), availability, most)


def throughput_system(
    found: Throughputs, *, devices: int | None = None, load: float | None = None, name: str = ""
) -> System:
    """Return a system with measured rates, one machine of each kind, and equal shares of job types.

    Rates are divided by their mean over the machines; a job takes an hour at the mean rate. The
    load is 0.8 by default.
    """
    own = found.on(devices)
    size = len(own.types)
    works, places = np.full(size, HOUR), np.full(size, "", dtype=object)
    work = Workload(np.zeros(size), np.arange(size), works, places, own.types, HOUR, own.account)
    speeds = own.steps / own.steps.mean(axis=1, keepdims=True)
    machines = Machines(own.kinds, (1,) * len(own.kinds), speeds, relative=True)
    return system_of(work, machines, name=name, load=load)
