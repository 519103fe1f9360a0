"""The workload of an experiment: its jobs and failures, drawn, read and written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Discriminator, Tag

from ..model import Distribution, Failures, Floats, InputError, System, did_you_mean
from ..model.record import NonNegative, Positive
from ..model.spreadsheet import read_rows, write_rows
from .changes import Change, arrival_rates

JOB_COLUMNS = ["time", "class", "work"]
HOME = "machine"
"""The further column of jobs that arrive at machines."""


class JobList:
    """The jobs of an experiment in the order of their arrival.

    The work of a job is 1 on average: on a machine with rate μ and availability a it takes
    work ÷ (μ a) time units. A job that is lost and run again has the same work. Jobs that arrive at
    machines, because no scheduler decides for them, have the number of that machine in ``homes``.

    >>> jobs = JobList.drawn(System(arrivals=[5, 8], rates=[[8, 3], [4, 10]]), 100, seed=1)
    >>> len(jobs), bool(jobs.times.max() < 100), float(jobs.works.mean().round(1))
    (1260, True, 1.0)
    """

    def __init__(self, times: Any, task_classes: Any, works: Any, homes: Any = None) -> None:
        self.times: Floats = np.asarray(times, dtype=float)
        self.task_classes = np.asarray(task_classes, dtype=int)
        self.works: Floats = np.asarray(works, dtype=float)
        self.homes = None if homes is None else np.asarray(homes, dtype=int)

    def __len__(self) -> int:
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobList) and self.as_json() == other.as_json()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def drawn(
        cls, system: System, duration: float, seed: int, changes: Sequence[Change] = ()
    ) -> Self:
        """Draw the jobs of a system, with a random stream for each class.

        ``changes`` are those of the arrival rates at machines, if jobs arrive there.
        """
        times, classes, works, homes = [], [], [], []
        is_central = system.arrivals.ndim == 1
        shapes = zip(*map(system.per_class, (system.interarrival, system.execution)), strict=True)
        for i, (gap, work) in enumerate(shapes):
            rng = np.random.default_rng([seed, i])
            rates = _rates(system, i, changes, duration, rng)
            for at, now in _arrivals(rates, gap, rng):
                if at >= duration:
                    break
                times.append(at)
                classes.append(i)
                works.append(float(work.sample(rng)) / work.mean)
                if not is_central:
                    homes.append(int(np.searchsorted(np.cumsum(now), rng.random() * now.sum())))
        order = np.argsort(times, kind="stable")
        columns = (times, classes, works) if is_central else (times, classes, works, homes)
        return cls(*(np.array(column)[order] for column in columns))

    @classmethod
    def read(cls, path: str | PathLike[str], system: System) -> Self:
        """Read a job list for a system.

        It is a CSV file: time, class, work, and the machine where jobs arrive at machines.
        """
        columns = [*JOB_COLUMNS, HOME] if system.arrivals.ndim > 1 else JOB_COLUMNS
        rows = read_rows(path, columns, lambda row, where: _job(row, system, where))
        if not rows:
            raise InputError(f"{path}: there is no job in it")
        rows.sort(key=lambda row: row[0])
        return cls(*zip(*rows, strict=True))

    def write(self, path: str | PathLike[str], system: System) -> None:
        """Write the list as a CSV file."""
        jobs = zip(self.times, self.task_classes, self.works, strict=True)
        rows = [[repr(float(at)), system.classes[i], repr(float(work))] for at, i, work in jobs]
        if self.homes is None:
            write_rows(path, [JOB_COLUMNS, *rows])
        else:
            homes = [system.machines[home] for home in self.homes]
            whole = [[*row, home] for row, home in zip(rows, homes, strict=True)]
            write_rows(path, [[*JOB_COLUMNS, HOME], *whole])

    def at(self, times: Floats) -> JobList:
        """Return the same jobs at other times."""
        homes = None if self.homes is None else self.homes[: len(times)]
        return JobList(times, self.task_classes[: len(times)], self.works[: len(times)], homes)

    def as_json(self) -> dict[str, Any]:
        """Return the list for a journal."""
        columns = (self.times, self.task_classes, self.works)
        words = {key: each.tolist() for key, each in zip(JOB_COLUMNS, columns, strict=True)}
        return words if self.homes is None else {**words, HOME: self.homes.tolist()}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> Self:
        """Return the list that a journal has."""
        times, classes, works = (words[key] for key in JOB_COLUMNS)
        return cls(times, classes, works, words.get(HOME))


def _rates(
    system: System,
    task_class: int,
    changes: Sequence[Change],
    duration: float,
    rng: np.random.Generator,
) -> list[tuple[float, Any]]:
    """Return the arrival rates of a class from the start and from each time they change."""
    if (profile := system.profile) is None:
        return [(start, each[task_class]) for start, each in arrival_rates(system, changes)]
    rate, factors = system.arrivals[task_class], profile.rows(len(system.classes))[task_class]
    found, at = [], 0.0
    for length, factor in itertools.cycle(zip(profile.durations, factors, strict=True)):
        if at >= duration:
            break
        found.append((at, rate * factor))
        at += length * (rng.exponential() if profile.random else 1.0)
    return found


def _arrivals(
    rates: list[tuple[float, Any]], gap: Distribution, rng: np.random.Generator
) -> Iterator[tuple[float, Any]]:
    """Yield the times of the jobs of a class, with the rates at the machines then, without end.

    When the rate changes, the same jobs come on a clock that goes faster or slower.
    """
    at, k = 0.0, 0
    while True:
        left, total = float(gap.sample(rng)) / gap.mean, float(np.sum(rates[k][1]))
        while k + 1 < len(rates) and left > (rates[k + 1][0] - at) * total:
            left -= (rates[k + 1][0] - at) * total
            k += 1
            at, total = rates[k][0], float(np.sum(rates[k][1]))
        at += left / total if total > 0.0 else np.inf
        yield at, rates[k][1]


def _job(row: list[str], system: System, where: str) -> tuple[Any, ...]:
    time, name, work, *home = row
    if home and home[0] not in system.machines:
        names = ", ".join(system.machines)
        raise InputError(f"{where}: no machine {home[0]!r}; there are {names}")
    if name not in system.classes:
        raise InputError(f"{where}: no class {name!r}; there are {', '.join(system.classes)}")
    try:
        at, size = float(time), float(work)
    except ValueError:
        raise InputError(f"{where}: expected numbers for time and work") from None
    if not (0 <= at < np.inf and 0 < size < np.inf):
        raise InputError(f"{where}: expected a time of at least 0 and work above 0")
    return at, system.classes.index(name), size, *map(system.machines.index, home)


FAULT_COLUMNS = ["machine", "start", "end"]

Row = tuple[str, NonNegative, Positive]
"""The name of a machine, a start and an end."""
FaultsGiven = Annotated[
    Annotated[str, Tag("\0one")] | Annotated[tuple[Row, ...], Tag("\0several")],
    Discriminator(lambda value: "\0several" if isinstance(value, list | tuple) else "\0one"),
]
"""The failures of an experiment: a word, a path, or the trace itself."""


class Fault(NamedTuple):
    """A time during which a machine is away."""

    machine: int
    start: float
    end: float


def draw_faults(system: System, duration: float, seed: int) -> tuple[Fault, ...]:
    """Draw the faults in the order of their start, with a random stream for each machine.

    >>> system = System(arrivals=[1], rates=[[2]], failures={"mean_uptime": 9, "mean_repair": 1})
    >>> len(draw_faults(system, 30, seed=1))
    2
    """
    failures = system.failures
    if failures is None:
        return ()
    means = zip(*map(system.per_machine, (failures.mean_uptime, failures.mean_repair)), strict=True)
    found = [
        fault
        for j, (up, repair) in enumerate(means)
        for fault in _faults_of(system, j, up, repair, duration, seed)
    ]
    return tuple(sorted(found, key=lambda fault: fault.start))


def redraw_faults(
    faults: Sequence[Fault],
    system: System,
    machine: str,
    mean_uptime: float,
    mean_repair: float,
    duration: float,
    seed: int,
) -> tuple[Fault, ...]:
    """Draw the faults of one machine again, with mean times of its own; keep all others.

    >>> system = System(arrivals=[1], rates=[[2, 3]])
    >>> found = redraw_faults((), system, "2", 50, 2, duration=1000, seed=1)
    >>> {fault.machine for fault in found}, 10 < len(found) < 40
    ({1}, True)
    """
    if machine not in system.machines:
        hint = did_you_mean(machine, system.machines)
        raise InputError(f"no machine {machine!r}{hint or f'; {_machines(system)}'}")
    for what, mean in (("mean_uptime", mean_uptime), ("mean_repair", mean_repair)):
        if not mean > 0 or (what == "mean_repair" and np.isinf(mean)):
            raise InputError(f"{what} of machine {machine} is {mean:g}; expected a time above 0")
    j = system.machines.index(machine)
    own = _faults_of(system, j, mean_uptime, mean_repair, duration, seed)
    kept = [fault for fault in faults if fault.machine != j]
    return tuple(sorted([*kept, *own], key=lambda fault: fault.start))


def _faults_of(
    system: System, machine: int, up: float, repair: float, duration: float, seed: int
) -> list[Fault]:
    """Draw the faults of a machine from its own random stream."""
    failures = system.failures or Failures(mean_uptime=up, mean_repair=repair)
    shapes = (system.per_machine(shape)[machine] for shape in (failures.uptime, failures.repair))
    up_shape, repair_shape = shapes
    rng = np.random.default_rng([seed, 1_000_000 + machine])
    found, at = [], 0.0
    while np.isfinite(up):
        at += float(up_shape.sample(rng)) / up_shape.mean * up
        if at >= duration:
            break
        end = at + float(repair_shape.sample(rng)) / repair_shape.mean * repair
        found.append(Fault(machine, at, end))
        at = end
    return found


def read_faults(path: str | PathLike[str], system: System) -> tuple[Fault, ...]:
    """Read a failure trace (CSV: machine, start, end) for the machines of a system."""
    found = read_rows(path, FAULT_COLUMNS, lambda row, where: _fault(row, system, where))
    return _in_order(found, system, str(path))


def check_faults(
    rows: Iterable[tuple[str, float, float]], system: System, name: str = "failures"
) -> tuple[Fault, ...]:
    """Check a failure trace; return its faults in the order of their start.

    >>> check_faults([("1", 2.0, 3.5)], System(arrivals=[1], rates=[[2]]))
    (Fault(machine=0, start=2.0, end=3.5),)
    """
    found = [
        _fault([str(word) for word in row], system, f"{name}, entry {number}")
        for number, row in enumerate(rows, start=1)
    ]
    return _in_order(found, system, name)


def rows_of(faults: Iterable[Fault], system: System) -> list[tuple[str, float, float]]:
    """Return faults with the names of their machines, as in an experiment file."""
    return [(system.machines[each.machine], each.start, each.end) for each in faults]


class Spells(NamedTuple):
    """The mean times that a machine is up and down in a trace."""

    faults: int
    up: float
    """Time units from a repair, or from the beginning, to the next fault."""
    down: float


def spells(faults: Sequence[Fault], machine: int) -> Spells:
    """Return the mean times that a machine is up and down in a trace; nan where it never fails.

    >>> spells([Fault(0, 10.0, 12.0), Fault(0, 20.0, 21.0)], 0)
    Spells(faults=2, up=9.0, down=1.5)
    """
    own = sorted(fault for fault in faults if fault.machine == machine)
    if not own:
        return Spells(0, float("nan"), float("nan"))
    down = sum(fault.end - fault.start for fault in own)
    return Spells(len(own), (own[-1].end - down) / len(own), down / len(own))


def _in_order(found: list[Fault], system: System, path: str) -> tuple[Fault, ...]:
    found.sort(key=lambda fault: fault.start)
    last = dict.fromkeys(range(len(system.machines)), 0.0)
    for fault in found:
        if fault.start < last[fault.machine]:
            name = system.machines[fault.machine]
            raise InputError(f"{path}: two faults of machine {name} overlap at {fault.start:g}")
        last[fault.machine] = fault.end
    return tuple(found)


def write_faults(path: str | PathLike[str], faults: tuple[Fault, ...], system: System) -> None:
    """Write a failure trace as a CSV file."""
    rows = [[name, repr(start), repr(end)] for name, start, end in rows_of(faults, system)]
    write_rows(path, [FAULT_COLUMNS, *rows])


def _machines(system: System) -> str:
    return f"there are {', '.join(system.machines)}"


def _fault(row: list[str], system: System, where: str) -> Fault:
    if row[0] not in system.machines:
        raise InputError(f"{where}: no machine {row[0]!r}; {_machines(system)}")
    try:
        start, end = float(row[1]), float(row[2])
    except ValueError:
        raise InputError(f"{where}: expected numbers for start and end") from None
    if not 0 <= start < end:
        raise InputError(f"{where}: expected an end after the start")
    return Fault(system.machines.index(row[0]), start, end)
