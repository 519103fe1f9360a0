"""Queries of a journal: pages of jobs and events, queue lengths, statistics, results by key.

The database selects and adds up, because a journal may have a hundred thousand jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import InputError
from ..model.error import positive_numbers
from ..statistics import tails_of
from .event import BY_OPERATORS, NO_FIELDS, UNUSUAL, Entry
from .job import Stage
from .journal import Journal

JOB_COLUMNS = (
    *("number", "attempt", "class", "machine", "submitted", "sent", "started", "ended"),
    *("stage", "lost", "timed_out", "deaths", "error"),
)
LARGEST_PAGE = 1000


class JobPage(NamedTuple):
    """A page of the jobs."""

    total: int
    """How many jobs match the filters."""
    jobs: list[dict[str, Any]]


class Queues(NamedTuple):
    """Numbers of jobs of each class that waited, and that had not ended, at some times."""

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
    # Select only numbers, and from the nearer end, so that the database sorts little.
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
    """Return the latest events first, without those that every job has.

    Measurements of CPU availability can be left out.
    """
    rest = "" if readings else "AND kind <> 'availability'"
    return journal.entries(
        f"WHERE {UNUSUAL} AND kind > '' {rest} ORDER BY +rowid DESC LIMIT ? OFFSET ?",
        [min(max(limit, 0), LARGEST_PAGE), max(offset, 0)],
    )


ABOUT = {
    "": "true",
    "jobs": "job IS NOT NULL",
    "machines": "machine IS NOT NULL AND job IS NULL",
    "operators": (
        f"kind IN {(*BY_OPERATORS, 'failure')} "
        "AND (kind <> 'failure' OR fields LIKE '%\"period\"%')"
    ),
}
"""The SQL conditions for events about something."""


def latest_events(journal: Journal, about: str = "", limit: int = 500) -> list[Entry]:
    """Return the latest events about jobs, machines or operators, or all; the latest time first.

    Events that every job has and measurements of CPU availability are left out. The latest actions
    of operators are always there, even if many other events came after them.
    """
    if about not in ABOUT:
        raise InputError(f"about is {about!r}; expected one of {', '.join(filter(None, ABOUT))}")
    usual = f"{UNUSUAL} AND kind > '' AND kind <> 'availability'"
    chosen = " UNION ".join(
        f"SELECT * FROM (SELECT rowid FROM event WHERE {usual} AND {ABOUT[each]} "
        "ORDER BY +rowid DESC LIMIT ?1)"
        for each in ([about] if about else ["", "operators"])
    )
    words = f"WHERE rowid IN ({chosen}) ORDER BY time DESC, rowid DESC"
    return journal.entries(words, [min(max(limit, 0), LARGEST_PAGE)])


def queues(journal: Journal, points: int = 120) -> Queues:
    """Count the waiting jobs, and those in the system, at evenly spaced times until now.

    For a job that was sent more than once, the last time counts.
    """
    end, last = journal.last(), max(points, 2) - 1
    times = np.linspace(0, end, last + 1)
    step = end / last if end > 0 else 1.0
    names = list(journal.told("classes").get("classes", ()))
    counts: dict[str, dict[str, NDArray[np.int64]]] = {}
    # One query for all moments: a grid that writes meanwhile would make the counts disagree.
    parts = []
    for key, moment in (
        ("submitted", "submitted"),
        ("sent", "coalesce(sent, settled)"),  # a cancelled job has stopped waiting
        ("settled", "settled"),
    ):
        # The index of the first of the times that is not before the moment.
        place = f"min(CAST({moment} / ?1 - 1e-9 AS INTEGER) + ({moment} > 0), ?2)"
        rows = f"FROM job WHERE {moment} IS NOT NULL GROUP BY 2, 3"
        parts.append(f"'{key}', class, {place}, count(*) {rows}")
    for moment, name, k, number in journal.select(" UNION ALL SELECT ".join(parts), (step, last)):
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


Floats = NDArray[np.float64]


class Figures(NamedTuple):
    """Figures of one class or of all jobs. Times are means over finished jobs, in time units."""

    arrived: int
    finished: int
    failed: int
    cancelled: int
    unfinished: int
    lost: int
    """How often a machine went down while it ran one of them."""
    timed_out: int
    deaths: int
    """How often a process died while it ran one of them."""
    resubmitted: int
    """How often one of them was sent again."""
    waiting: float
    """From submission to being sent."""
    communication: float
    """From being sent to the start."""
    execution: float
    notification: float
    """From the end to when the result is in the journal."""
    response: float
    """From submission to the end."""
    arrival_rate: float
    """Jobs per time unit that have arrived."""
    tails: Mapping[str, float] = NO_FIELDS
    """Percentiles of the response of finished jobs, and shares within times, by name."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name, the tails among them."""
        found = self._asdict()
        tails = found.pop("tails")
        return found | tails


class Statistics(NamedTuple):
    """Statistics of the jobs until some time."""

    until: float
    """Time units since the beginning."""
    overall: Figures
    classes: dict[str, Figures]
    machines: tuple[str, ...]
    executed: NDArray[np.int64]
    """Jobs [class, machine] that finished there."""
    rates: Floats
    """Finished jobs per time unit of execution [class, machine]; nan where there are none."""
    overhead: Floats
    """p [class, machine]: the mean share of the time for a job that is execution."""
    messages: Mapping[str, int] = NO_FIELDS
    """Messages of each kind between machines that decide for themselves."""
    outcome: Mapping[str, float] = NO_FIELDS
    """What only batches or chains count, such as tasks on time."""

    def as_json(self) -> dict[str, Any]:
        """Return everything as ``--json`` prints it."""
        return {
            "until": self.until,
            "overall": self.overall.as_json(),
            "classes": {name: each.as_json() for name, each in self.classes.items()},
            "machines": list(self.machines),
            "executed": self.executed.tolist(),
            "execution_rates": self.rates.tolist(),
            "overhead_ratios": self.overhead.tolist(),
        }


def statistics(
    journal: Journal, until: float | None = None, within: Sequence[float] = ()
) -> Statistics:
    """Compute the statistics of a journal.

    ``within`` are times, in time units: the share of the finished jobs that responded within each
    is among the tails.
    """
    limits = positive_numbers("within", within, "time units")
    with journal.snapshot():
        about = journal.told("classes", "machines", "ended", "messages", "outcome")
        if until is None:
            until = about.get("ended") or journal.last()
        groups = [_Group(*row) for row in journal.select(f"{GROUPED} GROUP BY 1, 2, 3")]
        order = journal.select("class, min(number) FROM job GROUP BY 1 ORDER BY 2")
        ended = journal.select(RESPONSES)
    names = list(about.get("classes", ()))
    names += [name for name, _ in order if name not in names]
    machines = list(about.get("machines", ()))
    machines += [
        m for m in dict.fromkeys(g.machine for g in groups if g.machine) if m not in machines
    ]
    executed = np.zeros((len(names), len(machines)), np.int64)
    timed, worked, share = (np.zeros(executed.shape) for _ in range(3))
    for group in groups:
        if group.stage == Stage.finished and group.machine:
            where = names.index(group.task_class), machines.index(group.machine)
            executed[where] = group.number
            timed[where], worked[where] = group.timed, group.execution
            share[where] = group.share
    rates = np.divide(timed, worked, out=np.full(timed.shape, np.nan), where=worked > 0)
    overhead = np.divide(share, timed, out=np.full(timed.shape, np.nan), where=timed > 0)
    responses: dict[str, list[float]] = {name: [] for name in names}
    for name, response in ended:
        responses.setdefault(name, []).append(response)
    every = [response for some in responses.values() for response in some]
    return Statistics(
        float(until),
        _figures(groups, until, tails_of(every, limits)),
        {
            name: _figures(
                [g for g in groups if g.task_class == name],
                until,
                tails_of(responses[name], limits),
            )
            for name in names
        },
        tuple(machines),
        executed,
        rates,
        overhead,
        about.get("messages", {}),
        about.get("outcome", {}),
    )


class _Group(NamedTuple):
    """Jobs of one class in one stage on one machine; times are sums."""

    task_class: str
    machine: str | None
    stage: str
    number: int
    timed: int
    """How many of them have a known start."""
    lost: int
    timed_out: int
    deaths: int
    resubmitted: int
    waiting: float
    communication: float
    execution: float
    notification: float
    response: float
    share: float


TURN = "(settled - max(coalesce(free, submitted), submitted))"
GROUPED = (
    "class, machine, stage, count(*), count(ended - started), "
    "sum(lost), sum(timed_out), sum(deaths), "
    "sum(max(attempt - 1, 0)), total(sent - submitted), "
    "total(started - sent), total(ended - started), total(settled - ended), "
    "total(ended - submitted), "
    f"total(CASE WHEN {TURN} > 0 THEN (ended - started) / {TURN} ELSE 1 END) FROM job"
)


RESPONSES = "class, ended - submitted FROM job WHERE stage = 'finished' AND ended IS NOT NULL"


def _figures(groups: list[_Group], until: float, tails: Mapping[str, float]) -> Figures:
    number = {stage: sum(g.number for g in groups if g.stage == stage) for stage in Stage}
    done = [group for group in groups if group.stage == Stage.finished]

    def mean(name: str, jobs: int) -> float:
        total = sum(getattr(group, name) for group in done)
        return total / jobs if jobs else float("nan")

    ended, timed = number[Stage.finished], sum(group.timed for group in done)
    arrived = sum(number.values())
    sums = ("lost", "timed_out", "deaths", "resubmitted")
    means: dict[str, Any] = {
        **{name: mean(name, ended) for name in ("waiting", "notification", "response")},
        **{name: mean(name, timed) for name in ("communication", "execution")},
    }
    return Figures(
        arrived=arrived,
        **{stage: number[Stage(stage)] for stage in ("finished", "failed", "cancelled")},
        unfinished=sum(number[each] for each in Stage if not each.is_final),
        **{name: sum(getattr(group, name) for group in groups) for name in sums},
        **means,
        arrival_rate=arrived / until if until > 0 else float("nan"),
        tails=tails,
    )


class Found(NamedTuple):
    """A job in the journal, as somebody who wants its result sees it."""

    number: int
    key: str
    stage: Stage
    machine: str
    result: bytes
    error: str


FOUND = "number, key, stage, machine, result, error"
MOST_KEYS = 500
"""How many keys one query looks for."""


def find_job(journal: Journal, job: str | int) -> Found | None:
    """Return the newest job with a key, or the job with a number, if there is one."""
    which = "key" if isinstance(job, str) else "number"
    words = f"{FOUND} FROM job WHERE {which}=? ORDER BY number DESC LIMIT 1"
    return next((_found(row) for row in journal.select(words, (job,))), None)


def known_jobs(journal: Journal, keys: Sequence[str], request: str = "") -> list[Found]:
    """Return the jobs with some keys that need not run: finished, or ended since a request."""
    found: list[Found] = []
    for k in range(0, len(keys), MOST_KEYS):
        some = keys[k : k + MOST_KEYS]
        numbered = ", ".join(f"?{n}" for n in range(2, len(some) + 2))
        which = f"""key IN ({numbered}) AND (stage = 'finished' OR (?1 <> '' AND
            stage IN ('failed', 'cancelled') AND json_extract(options, '$.request') = ?1))"""
        rows = journal.select(f"{FOUND} FROM job WHERE {which}", (request, *some))
        found += map(_found, rows)
    return found


def _found(row: Sequence[Any]) -> Found:
    number, key, stage, machine, result, error = row
    return Found(number, key or "", Stage(stage), machine or "", result or b"", error or "")
