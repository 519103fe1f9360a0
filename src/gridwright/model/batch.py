"""The tables of a system for batch policies: execution pmfs, deadlines, the run."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from .distribution import AnyDistribution
from .error import InputError
from .record import Count, OneOrList, Positive, Record
from .spreadsheet import read_rows


class ExecutionPmf(Record):
    """Where the probability mass functions of the execution times come from.

    By default, they are the ``execution`` distributions with mean 1 / rate, in bins of ``width``.
    ``samples``: a histogram of so many draws, new for every replication; with ``scale``, gamma
    draws whose scale is drawn between two bounds. ``times``: a distribution for every class and
    column, in time units. ``measured``: times by the names of class and column; ``file`` reads
    them from a CSV file of class, machine and time.

    >>> ExecutionPmf(width=5, samples=500, scale=[1, 20]).samples
    500
    """

    width: Positive | None = None
    samples: Count | None = None
    scale: tuple[Positive, Positive] | None = None
    times: tuple[tuple[AnyDistribution, ...], ...] = ()
    measured: dict[str, dict[str, tuple[Positive, ...]]] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, values: Any, info: ValidationInfo) -> Any:
        """Read measured times now: they are part of the system."""
        if not isinstance(values, dict) or "file" not in values:
            return values
        if "measured" in values or not isinstance(values["file"], str):
            raise ValueError("give the name of one file, or measured times")
        rest = {key: value for key, value in values.items() if key != "file"}
        folder = (info.context or {}).get("folder") or Path()
        return {**rest, "measured": read_times(folder / values["file"])}

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [key for key in ("samples", "times", "measured") if getattr(self, key)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given; expected one of them")
        if self.scale is not None:
            if self.samples is None:
                raise ValueError("scale needs samples, the number of draws")
            if self.scale[0] > self.scale[1]:
                raise ValueError(f"scale goes down from {self.scale[0]:g} to {self.scale[1]:g}")
        for row in self.measured.values():
            if not all(row.values()):
                raise ValueError("measured has a list without times")
        return self


class Deadlines(Record):
    """The deadlines of tasks, as a time after their arrival.

    It is factor × the mean of the mean execution times on the ``best`` machines for the class; or
    an ``allowance`` in time units, one for all or one per class. Tasks that are late are kept
    (never), discarded in the batch, or discarded there and in the queues of machines (both).

    >>> Deadlines(factor=2, discard="both").best
    4
    """

    factor: Positive | None = None
    best: Count = 4
    allowance: OneOrList[Positive] | None = None
    discard: Literal["never", "batch", "both"] = "never"

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if (self.factor is None) == (self.allowance is None):
            raise ValueError("give either factor or allowance")
        return self


class BatchRun(Record):
    """How tasks arrive, and how many a machine holds.

    ``queue_limit``: the most tasks at a machine, including the running one. ``tasks``: how many
    arrive; the run lasts until all are done. Without it, the run ends at the horizon.
    ``at_once``: all tasks arrive at time 0.

    >>> BatchRun(tasks=512, at_once=True).queue_limit
    4
    """

    queue_limit: Count = 4
    tasks: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] | None = None
    at_once: bool = False

    @model_validator(mode="after")
    def _how_many(self) -> Self:
        if self.at_once and self.tasks is None:
            raise ValueError("at_once needs tasks, the number of them")
        return self


class BatchTables(Record):
    """The parts of a system that only batch policies understand."""

    pmf: ExecutionPmf | None = None
    deadlines: Deadlines | None = None
    batch: BatchRun | None = None


COLUMNS = ["class", "machine", "time"]


def read_times(path: Path) -> dict[str, dict[str, list[float]]]:
    """Read measured times by the names of class and machine (or group of machines)."""
    found: dict[str, dict[str, list[float]]] = {}
    for task_class, machine, time in read_rows(path, COLUMNS, _measurement, path.name):
        found.setdefault(task_class, {}).setdefault(machine, []).append(time)
    if not found:
        raise InputError(f"{path.name} has no times")
    return found


def _measurement(row: list[str], where: str) -> tuple[str, str, float]:
    with suppress(ValueError):
        if 0 < (time := float(row[2])) < float("inf"):
            return row[0], row[1], time
    raise InputError(f"{where}: the time is {row[2]!r}; expected a number > 0")
