"""Task classes of a trace's jobs: by who or what they are, or by how long they ran."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import InputError, did_you_mean
from .duration import in_words
from .job_trace import LABELS, JobTrace

__all__ = ["WAYS", "classify", "cluster"]

RUN_TIME = "run_time"
WAYS = (*LABELS, RUN_TIME)
"""What classes may be made by."""
USUAL = 6
"""Classes, unless so many are asked for."""
MOST = 1000
OTHERS = "others"
ROUNDS = 200

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def classify(trace: JobTrace, by: str = "") -> tuple[tuple[str, ...], Codes]:
    """Put every job in a class; return the classes' names and each job's class.

    ``by`` is ``user``, ``group``, ``executable``, ``queue``, ``partition`` or ``run_time``, and may
    end in the most classes that are wanted: ``user:4``. By a label, the labels with the most jobs
    are a class each, and all others one together. By run time, classes are clusters of its
    logarithm. Without ``by``: by group, else user, else executable, whichever tells jobs apart.

    >>> trace = JobTrace({"run_time": [1, 2, 900, 1000, 1, 1], "user": [*"aabbac"]})
    >>> classify(trace, "user:2")
    (('user a', 'others'), array([0, 0, 1, 1, 0, 1]))
    >>> classify(trace, "run_time:2")
    (('1 s to 2 s', '15 min to 16.7 min'), array([0, 0, 1, 1, 0, 0]))
    """
    way, _, count = by.partition(":")
    way = way.strip().replace(" ", "_") or _usual(trace)
    if way not in WAYS:
        hint = did_you_mean(way, WAYS) or f"; expected {', '.join(WAYS)}"
        raise InputError(f"no classes by {way!r}{hint}")
    most = _most(count)
    if way == RUN_TIME:
        return _by_run_time(trace.numbers(RUN_TIME), most)
    if not trace.knows(way):
        known = [each for each in WAYS if each == RUN_TIME or trace.knows(each)]
        raise InputError(f"the trace does not say the {way} of its jobs; it does: {listed(known)}")
    return _by_label(trace, way, most)


def listed(words: list[str]) -> str:
    """Write words as a list."""
    return ", ".join(words)


def _usual(trace: JobTrace) -> str:
    for way in ("group", "user", "executable"):
        if len(trace.coded(way)[0]) > 1:
            return way
    return RUN_TIME


def _most(text: str) -> int:
    if not text:
        return USUAL
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MOST):
        raise InputError(f"{text!r} classes; expected a number from 1 to {MOST}")
    return int(text)


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
    """Write a name without what no name may have."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)[:60]
    return text.encode("utf-8", "replace").decode()


def apart(names: list[str]) -> tuple[str, ...]:
    """Make names that differ.

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
    """Put numbers into at most so many clusters (k-means on a line), the smallest first.

    It starts from quantiles, so the same numbers are always put alike.

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
