"""A page of a long journal, found by the database: it may have a hundred thousand jobs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import InputError
from .journal import UNUSUAL, Entry, Journal

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
    # From the nearer end, and only the numbers: the database then sorts little.
    turned = offset > total // 2
    first = max(total - offset - limit, 0) if turned else offset
    size = min(limit, max(total - offset, 0))
    up, down = ("DESC", "ASC") if descending != turned else ("ASC", "DESC")
    chosen = f"ORDER BY {sort} {up}, number {'DESC' if turned else 'ASC'} LIMIT ? OFFSET ?"
    order = f"ORDER BY {sort} {down if turned else up}, number"
    rows = journal.select(
        f"{', '.join(JOB_COLUMNS)} FROM job WHERE number IN "
        f"(SELECT number FROM job {where} {chosen}) {order}",
        [*values, size, first],
    )
    return JobPage(total, [dict(zip(JOB_COLUMNS, row, strict=True)) for row in rows])


def event_page(
    journal: Journal, *, limit: int = 50, offset: int = 0, readings: bool = True
) -> list[Entry]:
    """Return what happened, the latest first, but for what every job goes through.

    Readings of CPU availability are many; they may be left out.
    """
    rest = "" if readings else "AND kind <> 'availability'"
    rows = journal.select(
        f"* FROM event WHERE {UNUSUAL} AND kind > '' {rest} ORDER BY +rowid DESC LIMIT ? OFFSET ?",
        [min(max(limit, 0), LARGEST_PAGE), max(offset, 0)],
    )
    return [Entry(*row) for row in rows]


def queues(journal: Journal, points: int = 120) -> Queues:
    """Count the jobs that wait, and those in the system, at evenly spaced times until now.

    Of a job that was sent more than once the last time counts.
    """
    end, last = journal.last(), max(points, 2) - 1
    times = np.linspace(0, end, last + 1)
    step = end / last if end > 0 else 1.0
    names = list(journal.told("classes").get("classes", ()))
    counts: dict[str, dict[str, NDArray[np.int64]]] = {}
    for moment in ("submitted", "sent", "settled"):
        # The first of the times that is not before it; the database counts, as they are many.
        place = f"min(CAST({moment} / ?1 - 1e-9 AS INTEGER) + ({moment} > 0), ?2)"
        words = f"class, {place}, count(*) FROM job WHERE {moment} IS NOT NULL GROUP BY 1, 2"
        for name, k, number in journal.select(words, (step, last)):
            own = counts.setdefault(name, {})
            own.setdefault(moment, np.zeros(last + 1, np.int64))[k] = number
    names += [name for name in counts if name not in names]
    zero = np.zeros(last + 1, np.int64)
    waiting, inside = {}, {}
    for name in names:
        own = {key: np.cumsum(each) for key, each in counts.get(name, {}).items()}
        submitted = own.get("submitted", zero)
        waiting[name] = submitted - own.get("sent", zero)
        inside[name] = submitted - own.get("settled", zero)
    return Queues(times, waiting, inside)
