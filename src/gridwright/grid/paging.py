"""A page of a long journal, found by the database: it may have a hundred thousand jobs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import InputError
from .journal import Entry, Journal

__all__ = ["JOB_COLUMNS", "JobPage", "Queues", "event_page", "job_page", "queues"]

JOB_COLUMNS = (
    *("number", "attempt", "class", "machine", "submitted", "sent", "started", "ended"),
    *("stage", "lost", "timed_out", "error"),
)
LARGEST_PAGE = 1000


class JobPage(NamedTuple):
    """Some jobs of many."""

    total: int
    """Jobs that the filters leave."""
    jobs: list[dict[str, Any]]


class Queues(NamedTuple):
    """How many jobs of each class waited, and how many had not ended, at some times."""

    times: NDArray[np.float64]
    waiting: dict[str, NDArray[np.int64]]
    in_system: dict[str, NDArray[np.int64]]


def job_page(
    journal: Journal,
    *,
    offset: int = 0,
    limit: int = 50,
    sort: str = "number",
    descending: bool = False,
    **filters: str,
) -> JobPage:
    """Return a page of jobs in some order; filters are values of ``class, machine, stage``."""
    if sort not in JOB_COLUMNS:
        raise InputError(f"sort is {sort!r}; expected one of {', '.join(JOB_COLUMNS)}")
    for key in filters:
        if key not in ("class", "machine", "stage"):
            raise InputError(f"no filter {key!r}; expected class, machine or stage")
    offset, limit = max(offset, 0), min(max(limit, 0), LARGEST_PAGE)
    given = {key: value for key, value in filters.items() if value}
    where = "WHERE " + " AND ".join(f"{key} = ?" for key in given) if given else ""
    values = list(given.values())
    total = journal.select(f"count(*) FROM job {where}", values)[0][0]
    order = f"ORDER BY {sort} {'DESC' if descending else 'ASC'}, number"
    rows = journal.select(
        f"{', '.join(JOB_COLUMNS)} FROM job {where} {order} LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )
    return JobPage(total, [dict(zip(JOB_COLUMNS, row, strict=True)) for row in rows])


def event_page(journal: Journal, *, limit: int = 50, offset: int = 0) -> list[Entry]:
    """Return what happened, the latest first, but for what every job goes through."""
    usual = ("submitted", "sent", "started", "finished")
    marks = ", ".join("?" * len(usual))
    rows = journal.select(
        f"* FROM event WHERE kind NOT IN ({marks}) ORDER BY rowid DESC LIMIT ? OFFSET ?",
        [*usual, min(max(limit, 0), LARGEST_PAGE), max(offset, 0)],
    )
    return [Entry(*row) for row in rows]


def queues(journal: Journal, points: int = 120) -> Queues:
    """Count the jobs that wait, and those in the system, at evenly spaced times until now.

    Of a job that was sent more than once the last time counts.
    """
    rows = journal.select("class, submitted, sent, settled FROM job")
    end = journal.last()
    times = np.linspace(0, end, max(points, 2))
    names = list(journal.told("classes").get("classes", ()))
    names += [name for name in dict.fromkeys(row[0] for row in rows) if name not in names]
    waiting, inside = {}, {}
    for name in names:
        own = np.array([row[1:] for row in rows if row[0] == name], dtype=float).reshape(-1, 3)
        submitted, sent, settled = (_until(column, times) for column in own.T)
        waiting[name], inside[name] = submitted - sent, submitted - settled
    return Queues(times, waiting, inside)


def _until(moments: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the moments up to each time; what has not happened is nan."""
    known = np.sort(moments[~np.isnan(moments)])
    return np.searchsorted(known, times, side="right").astype(np.int64)
