"""Make a workload of a trace: when jobs arrive, their task classes, and their work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import Floats, InputError, did_you_mean
from ..testbed import JobList
from .duration import check_scale, in_words, moment
from .job_trace import LABELS, JobTrace
from .trace_file import LARGEST, Account

PROCESSORS = ("times", "ignore", "single")
"""The work of a job that ran on several processors: run time × processors; or its run time, as if
machines were large enough; or the job is left out."""
PARTS = (2, 3, 4)
"""Statuses of rows that are parts of a job; another row has its totals."""


@dataclass(frozen=True)
class Workload:
    """Jobs to replay, in the order of arrival."""

    times: Floats
    """Seconds since the start of the window."""
    task_classes: NDArray[np.int64]
    works: Floats
    """Seconds of each job on a machine of speed 1."""
    partitions: NDArray[np.object_]
    """The partition in which each job ran."""
    classes: tuple[str, ...]
    length: float
    """Length of the window in seconds."""
    account: Account
    serial: float = np.nan
    """The share of jobs on one processor, among those whose processors are known."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def means(self) -> Floats:
        """The mean work of each class, in seconds."""
        return np.bincount(self.task_classes, self.works) / np.bincount(self.task_classes)

    @property
    def arrivals(self) -> Floats:
        """Arrival rate of each class, in jobs a second."""
        return np.bincount(self.task_classes) / self.length

    @property
    def demand(self) -> float:
        """Number of machines of speed 1 that the jobs keep busy."""
        return float(self.works.sum() / self.length)

    def jobs(self) -> JobList:
        """Return the jobs as a job list; the mean work of every class is 1."""
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
        How to form task classes: see `classify`.
    processors
        ``times``: a job's work is its run time × its processors; ``ignore``: its run time;
        ``single``: jobs on several processors are left out.
    start, end
        Seconds since the first submission, even if that job cannot be replayed.
    scale
        Factor for the times between arrivals; below 1 the load is higher.

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
        raise InputError(f"the window starts {in_words(-start)} before the first submission")
    if not start < end:
        raise InputError(f"the window is {start:g} to {end:g} s; expected an end after the start")
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
        why = ", ".join(f"{each.count:,} × {why}" for why, each in account.skipped.items())
        raise InputError(f"no job of the trace can be replayed{span}; {why}")
    order = np.argsort(submit[kept], kind="stable")
    if (np.diff(submit[kept]) < 0).any():
        account.notes.append("jobs are not in the order of submission; they were sorted")
    kept = kept[order]
    chosen = JobTrace({name: column[kept] for name, column in trace.columns.items()}, trace.header)
    names, codes = classify(chosen, classes)
    works = chosen.numbers("run_time") * (width[kept] if processors == "times" else 1.0)
    times = since[kept] - start
    length = end - start if np.isfinite(end) else float(times[-1]) + 1.0
    places, wide = _places(chosen), chosen.numbers("processors")
    serial = float((wide[wide > 0] <= 1).mean()) if (wide > 0).any() else np.nan
    return Workload(times * scale, codes, works, places, names, length * scale, account, serial)


def window(trace: JobTrace, begin: str, end: str | None = None) -> dict[str, float]:
    """Return ``start`` and ``end`` of a window, in seconds since the first submission.

    ``begin`` and ``end`` are durations after the first submission, or dates.

    >>> window(JobTrace({"submit": [100, 160]}), "1m", "1h")
    {'start': 60.0, 'end': 3600.0}
    """
    zero = trace.first_submission
    if zero <= 1e8:  # greater times are dates themselves
        with suppress(ValueError):
            zero += float(trace.about.get("UnixStartTime", ""))
    found = {"start": moment(begin, zero) - zero}
    if end is not None:
        found["end"] = moment(end, zero) - zero
    return found


def _places(trace: JobTrace) -> NDArray[Any]:
    """Return the partition of every job, by name if the comments give one."""
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
        account.notes.append(f"{guessed:,} jobs without a number of processors count as using 1")
    width[unknown] = 1.0
    return np.flatnonzero(left), width


RUN_TIME = "run_time"
WAYS = (*LABELS, RUN_TIME)
"""What classes can be formed by."""
USUAL = 6
"""Largest number of classes by default."""
MOST = 1000
OTHERS = "others"
ROUNDS = 200

Codes = NDArray[np.int64]


def classify(trace: JobTrace, by: str = "") -> tuple[tuple[str, ...], Codes]:
    """Put every job in a class; return the names of the classes and the class of each job.

    ``by`` is ``user``, ``group``, ``executable``, ``queue``, ``partition`` or ``run_time``, and may
    be followed by the largest number of classes: ``user:4``. The labels with most jobs become
    classes, and all other labels one class. By run time, classes are clusters of its logarithm. The
    default is the first of group, user and executable that tells jobs apart.

    >>> trace = JobTrace({"run_time": [1, 2, 900, 1000, 1, 1], "user": [*"aabbac"]})
    >>> classify(trace, "user:2")
    (('user a', 'others'), array([0, 0, 1, 1, 0, 1]))
    >>> classify(trace, "run_time:2")
    (('1 s to 2 s', '15 min to 16.7 min'), array([0, 0, 1, 1, 0, 0]))
    """
    way, _, count = by.partition(":")
    usual = (each for each in ("group", "user", "executable") if len(trace.coded(each)[0]) > 1)
    way = way.strip().replace(" ", "_") or next(usual, RUN_TIME)
    if way not in WAYS:
        hint = did_you_mean(way, WAYS) or f"; expected {', '.join(WAYS)}"
        raise InputError(f"cannot form classes by {way!r}{hint}")
    most = whole_number(count or str(USUAL), MOST)
    if most is None:
        raise InputError(f"the number of classes is {count!r}; expected 1 to {MOST}")
    if way == RUN_TIME:
        return _by_run_time(trace.numbers(RUN_TIME), most)
    if not trace.knows(way):
        known = [each for each in WAYS if each == RUN_TIME or trace.knows(each)]
        raise InputError(
            f"the trace does not give the {way} of its jobs; it gives {', '.join(known)}"
        )
    return _by_label(trace, way, most)


def whole_number(text: str, most: int) -> int | None:
    """Return the number from 1 to ``most`` that a text stands for, or None."""
    usual = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if usual and 0 < int(text) <= most else None


def _by_label(trace: JobTrace, way: str, most: int) -> tuple[tuple[str, ...], Codes]:
    values, codes = trace.coded(way)
    counts = np.bincount(codes, minlength=len(values))
    order = np.lexsort((np.arange(len(values)), -counts))
    own = len(order) if len(order) <= most else most - 1
    number = np.full(len(values), own)
    number[order[:own]] = np.arange(own)
    spoken = trace.partition_names() if way == "partition" else {}
    names = [printable(spoken.get(values[k], f"{way} {values[k]}")) for k in order[:own]]
    names += [OTHERS] * (own < len(order))
    return apart(names), number[codes]


def printable(text: str) -> str:
    """Replace characters that names may not have, and cut long names."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)[:60]
    return text.encode("utf-8", "replace").decode()


def apart(names: list[str]) -> tuple[str, ...]:
    """Make names different by numbering repeated ones.

    >>> apart(["a", "b", "a"])
    ('a', 'b', 'a (2)')
    """
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in found:
            number += 1
            own = f"{name} ({number})"
        found[own] = None
    return tuple(found)


def _by_run_time(run_time: Floats, most: int) -> tuple[tuple[str, ...], Codes]:
    found = cluster(np.log(np.maximum(run_time, 1e-3)), most)
    names = []
    for k in range(int(found.max()) + 1 if len(found) else 0):
        own = run_time[found == k]
        low, high = in_words(max(own.min(), 0.0)), in_words(max(own.max(), 0.0))
        names.append(low if low == high else f"{low} to {high}")
    return apart(names), found


def cluster(values: Floats, most: int) -> Codes:
    """Put numbers into at most ``most`` clusters (k-means on a line), the smallest first.

    It starts from quantiles, so the result depends on the numbers only.

    >>> cluster(np.array([5.0, 0.1, 0.0, 5.2, 9.0]), 3)
    array([1, 0, 0, 1, 2])
    """
    if not len(values):
        return np.zeros(0, int)
    distinct, counts = np.unique(values, return_counts=True)
    sums = np.concatenate([[0.0], np.cumsum(distinct * counts)])
    sizes = np.concatenate([[0], np.cumsum(counts)])
    centres = np.unique(np.quantile(values, (np.arange(most) + 0.5) / most))
    cuts: Any = None
    for _ in range(ROUNDS):
        new = np.searchsorted(distinct, (centres[1:] + centres[:-1]) / 2)
        edges = np.unique(np.concatenate([[0], new, [len(distinct)]]))
        if cuts is not None and np.array_equal(edges, cuts):
            break
        cuts = edges
        centres = np.diff(sums[edges]) / np.diff(sizes[edges])
    return np.searchsorted(cuts[1:-1], np.searchsorted(distinct, values), side="right")
