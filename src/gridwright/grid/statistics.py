"""How the jobs of a grid have fared, read off its journal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .job import Stage
from .journal import Journal

__all__ = ["Figures", "Statistics", "statistics"]

Floats = NDArray[np.float64]


class Figures(NamedTuple):
    """Jobs of one class, or all of them. Times are means over those that finished, in units."""

    arrived: int
    finished: int
    failed: int
    cancelled: int
    unfinished: int
    lost: int
    """How often a machine went down with one of them."""
    timed_out: int
    deaths: int
    """How often a process died, by itself, while it ran one of them."""
    resubmitted: int
    """How often one of them was sent once more."""
    waiting: float
    """From submission to being sent."""
    communication: float
    """From being sent to the start."""
    execution: float
    notification: float
    """From the end to the result's being kept."""
    response: float
    """From submission to the end."""
    arrival_rate: float
    """Jobs per time unit that have arrived."""


class Statistics(NamedTuple):
    """How jobs have fared until some time."""

    until: float
    """Time units since the beginning."""
    overall: Figures
    classes: dict[str, Figures]
    machines: tuple[str, ...]
    executed: NDArray[np.int64]
    """Jobs [class, machine] that finished there."""
    rates: Floats
    """Finished jobs per time unit of work on them [class, machine]; nan where none did."""
    overhead: Floats
    """p [class, machine]: the mean share of a machine's turn that is work."""

    def as_json(self) -> dict[str, Any]:
        """Return everything as ``--json`` prints it."""
        return {
            "until": self.until,
            "overall": self.overall._asdict(),
            "classes": {name: each._asdict() for name, each in self.classes.items()},
            "machines": list(self.machines),
            "executed": self.executed.tolist(),
            "execution_rates": self.rates.tolist(),
            "overhead_ratios": self.overhead.tolist(),
        }


def statistics(journal: Journal, until: float | None = None) -> Statistics:
    """Read the statistics off a journal."""
    about = journal.told("classes", "machines", "ended")
    if until is None:
        until = about.get("ended") or journal.last()
    groups = [_Group(*row) for row in journal.select(f"{GROUPED} GROUP BY 1, 2, 3")]
    names = list(about.get("classes", ()))
    order = journal.select("class, min(number) FROM job GROUP BY 1 ORDER BY 2")
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
    return Statistics(
        float(until),
        _figures(groups, until),
        {name: _figures([g for g in groups if g.task_class == name], until) for name in names},
        tuple(machines),
        executed,
        rates,
        overhead,
    )


class _Group(NamedTuple):
    """Jobs of a class that are in the same stage on the same machine; times are sums."""

    task_class: str
    machine: str | None
    stage: str
    number: int
    timed: int
    """Those whose start is known."""
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
"""The database adds up, as jobs may be many."""


def _figures(groups: list[_Group], until: float) -> Figures:
    number = {stage: sum(g.number for g in groups if g.stage == stage) for stage in Stage}
    done = [group for group in groups if group.stage == Stage.finished]

    def mean(name: str, jobs: int) -> float:
        total = sum(getattr(group, name) for group in done)
        return total / jobs if jobs else float("nan")

    ended, timed = number[Stage.finished], sum(group.timed for group in done)

    arrived = sum(number.values())
    return Figures(
        arrived=arrived,
        finished=number[Stage.finished],
        failed=number[Stage.failed],
        cancelled=number[Stage.cancelled],
        unfinished=sum(number[each] for each in Stage if not each.is_final),
        lost=sum(group.lost for group in groups),
        timed_out=sum(group.timed_out for group in groups),
        deaths=sum(group.deaths for group in groups),
        resubmitted=sum(group.resubmitted for group in groups),
        waiting=mean("waiting", ended),
        communication=mean("communication", timed),
        execution=mean("execution", timed),
        notification=mean("notification", ended),
        response=mean("response", ended),
        arrival_rate=arrived / until if until > 0 else float("nan"),
    )
