"""A trace's jobs as a workload: when they arrive, of which class, and how much work they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import InputError
from ..testbed import JobList
from .account import LARGEST, Account
from .duration import check_scale, in_words
from .job_trace import JobTrace
from .task_class import apart, classify, printable

__all__ = ["PROCESSORS", "Workload", "workload"]

Floats = NDArray[np.float64]
PROCESSORS = ("times", "ignore", "single")
"""What is made of a job that ran on several processors: run time × processors is its work; or its
run time is, as a machine is as large as it needs; or it is left out."""
PARTS = (2, 3, 4)
"""Statuses of rows that are parts of a job which another row sums up."""


@dataclass(frozen=True)
class Workload:
    """Jobs to be replayed, in the order of their arrival."""

    times: Floats
    """Seconds since the beginning."""
    task_classes: NDArray[np.int64]
    works: Floats
    """Seconds that a machine of speed 1 takes."""
    partitions: NDArray[np.object_]
    """Where each ran, as the trace has it."""
    classes: tuple[str, ...]
    length: float
    """Seconds in which they arrive."""
    account: Account
    serial: float = np.nan
    """The share of them that ran on one processor, as far as the trace has it."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def means(self) -> Floats:
        """The mean work of each class, in seconds."""
        return np.bincount(self.task_classes, self.works) / np.bincount(self.task_classes)

    @property
    def arrivals(self) -> Floats:
        """Jobs a second of each class."""
        return np.bincount(self.task_classes) / self.length

    @property
    def demand(self) -> float:
        """How many machines of speed 1 it would keep busy."""
        return float(self.works.sum() / self.length)

    def jobs(self) -> JobList:
        """Return them as a job list, in which the mean work of every class is 1."""
        return JobList(self.times, self.task_classes, self.works / self.means[self.task_classes])


def workload(
    trace: JobTrace,
    classes: str = "",
    *,
    processors: str = "times",
    start: float = 0.0,
    end: float = np.inf,
    scale: float = 1.0,
) -> Workload:
    """Make a workload of the jobs that arrive from ``start`` to ``end``.

    Parameters
    ----------
    classes
        What task classes are made by: see `classify`.
    processors
        ``times``: a job's work is its run time × its processors; ``ignore``: its run time;
        ``single``: jobs on several processors are left out.
    start, end
        Seconds since the first submission, whether that job can be replayed or not: what is left
        out does not move the window.
    scale
        The times between arrivals are multiplied by this: below 1 it gets busier.

    Examples
    --------
    >>> trace = JobTrace({"submit": [0, 10, 20], "run_time": [5, -1, 7], "processors": [1, 1, 2]})
    >>> found = workload(trace, "run_time:1")
    >>> found.works.tolist()
    [5.0, 14.0]
    >>> print(found.account)
    3 rows: 2 kept, 1 left out
      1 × run time unknown
    """
    if processors not in PROCESSORS:
        raise InputError(f"processors is {processors!r}; expected {', '.join(PROCESSORS)}")
    check_scale("scale", scale)
    if start < 0:
        raise InputError(f"the window begins {in_words(-start)} before the first submission")
    if not start < end:
        raise InputError(f"a window from {start:g} to {end:g} s; expected an end after the start")
    account = Account()
    kept, width = _usable(trace, processors, account)
    submit = trace.numbers("submit")
    since = submit - trace.first_submission
    inside = (since[kept] >= start) & (since[kept] < end)
    account.skip("outside the window", 0, count=int((~inside).sum()))
    kept = kept[inside]
    account.kept = len(kept)
    if not len(kept):
        span = f"; it spans {in_words(float(since.max()))}" if len(trace) else ""
        raise InputError(f"no job of the trace can be replayed{span}; {_reasons(account)}")
    order = np.argsort(submit[kept], kind="stable")
    if (np.diff(submit[kept]) < 0).any():
        account.notes.append(
            "jobs are not in the order of their submission; they were sorted by it"
        )
    kept = kept[order]
    chosen = JobTrace({name: column[kept] for name, column in trace.columns.items()}, trace.header)
    names, codes = classify(chosen, classes)
    works = chosen.numbers("run_time") * (width[kept] if processors == "times" else 1.0)
    times = since[kept] - start
    length = end - start if np.isfinite(end) else float(times[-1]) + 1.0
    places, wide = _places(chosen), chosen.numbers("processors")
    serial = float((wide[wide > 0] <= 1).mean()) if (wide > 0).any() else np.nan
    return Workload(times * scale, codes, works, places, names, length * scale, account, serial)


def _places(trace: JobTrace) -> NDArray[Any]:
    """Return the partition of every job, by its name where the comments have it."""
    spoken = trace.partition_names()
    values, codes = trace.coded("partition")
    names = [printable(spoken.get(value, f"partition {value}")) for value in values]
    return np.array(apart(names), dtype=object)[codes]


def _usable(trace: JobTrace, processors: str, account: Account) -> tuple[NDArray[np.int64], Floats]:
    """Return the jobs that can be replayed, and the number of processors of every job."""
    run, status = trace.numbers("run_time"), trace.numbers("status")
    width = trace.numbers("processors").copy()
    asked = trace.numbers("requested_processors")
    width[width <= 0] = asked[width <= 0]
    unknown = width <= 0
    left = np.ones(len(trace), bool)
    reasons = {
        "part of a job that another row sums up": np.isin(status, PARTS),
        "run time unknown": run < 0,
        "took no time": run == 0,
        "submission time unknown": trace.numbers("submit") < 0,
        "out of range": np.maximum(np.maximum(run, width), trace.numbers("submit")) > LARGEST,
        "on several processors": (width > 1) if processors == "single" else np.zeros_like(left),
    }
    for why, wrong in reasons.items():
        found = np.flatnonzero(wrong & left)
        for k in found[:3]:
            account.skip(why, int(trace.lines[k]))
        account.skip(why, 0, count=len(found) - 3)
        left[found] = False
    if (guessed := int((unknown & left).sum())) and processors != "ignore":
        account.notes.append(f"{guessed:,} jobs of unknown size are taken to use 1 processor")
    width[unknown] = 1.0
    return np.flatnonzero(left), width


def _reasons(account: Account) -> str:
    return ", ".join(f"{each.count:,} × {why}" for why, each in account.skipped.items())
