"""The generator: a list of jobs to come, drawn once, and run again as often as one likes."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..model import Distribution, InputError, System
from .rows import read_rows, write_rows

__all__ = ["JobList"]

Floats = NDArray[np.float64]
COLUMNS = ["time", "class", "work"]


class JobList:
    """Jobs in the order of their arrival.

    The work of a job is 1 on average: on a machine with rate μ and availability a it takes
    work ÷ (μ a) time units. A job that is lost and run again has the same work.

    >>> jobs = JobList.drawn(System(arrivals=[5, 8], rates=[[8, 3], [4, 10]]), 100, seed=1)
    >>> len(jobs), bool(jobs.times.max() < 100), float(jobs.works.mean().round(1))
    (1260, True, 1.0)
    """

    def __init__(self, times: Any, task_classes: Any, works: Any) -> None:
        self.times: Floats = np.asarray(times, dtype=float)
        self.task_classes = np.asarray(task_classes, dtype=int)
        self.works: Floats = np.asarray(works, dtype=float)

    def __len__(self) -> int:
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobList) and self.as_json() == other.as_json()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def drawn(cls, system: System, duration: float, seed: int) -> Self:
        """Draw the jobs that arrive at a system: for every class a stream of its own."""
        times, classes, works = [], [], []
        for i, rate in enumerate(system.arrival_rates):
            rng = np.random.default_rng([seed, i])
            gap, work = _of(system.interarrival, i), _of(system.execution, i)
            at = 0.0
            while True:
                at += float(gap.sample(rng)) / gap.mean / rate
                if at >= duration:
                    break
                times.append(at)
                classes.append(i)
                works.append(float(work.sample(rng)) / work.mean)
        order = np.argsort(times, kind="stable")
        return cls(np.array(times)[order], np.array(classes)[order], np.array(works)[order])

    @classmethod
    def read(cls, path: str | PathLike[str], system: System) -> Self:
        """Read a job list (CSV: time, class, work) for the classes of a system."""
        rows = read_rows(path, COLUMNS, lambda row, where: _job(row, system, where))
        if not rows:
            raise InputError(f"{path}: no job in it")
        rows.sort(key=lambda row: row[0])
        return cls(*zip(*rows, strict=True))

    def write(self, path: str | PathLike[str], system: System) -> None:
        """Write the list, to be read or edited."""
        jobs = zip(self.times, self.task_classes, self.works, strict=True)
        rows = [[repr(float(at)), system.classes[i], repr(float(work))] for at, i, work in jobs]
        write_rows(path, [COLUMNS, *rows])

    def at(self, times: Floats) -> JobList:
        """Return the same jobs at other times."""
        return JobList(times, self.task_classes[: len(times)], self.works[: len(times)])

    def as_json(self) -> dict[str, Any]:
        """Return the list for a journal."""
        return {
            "time": self.times.tolist(),
            "class": self.task_classes.tolist(),
            "work": self.works.tolist(),
        }

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> Self:
        """Take a list from a journal."""
        return cls(words["time"], words["class"], words["work"])


def _of(shapes: Any, i: int) -> Distribution:
    return shapes[i] if isinstance(shapes, tuple) else shapes


def _job(row: list[str], system: System, where: str) -> tuple[float, int, float]:
    time, name, work = row
    if name not in system.classes:
        raise InputError(f"{where}: no class {name!r}; there are {', '.join(system.classes)}")
    try:
        at, size = float(time), float(work)
    except ValueError:
        raise InputError(f"{where}: expected numbers for time and work") from None
    if not (0 <= at < np.inf and 0 < size < np.inf):
        raise InputError(f"{where}: expected a time of at least 0 and work above 0")
    return at, system.classes.index(name), size
