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
    about = journal.about
    columns = "class", "machine", "stage", "submitted", "free", "sent", "started", "ended"
    rows = journal.table("job", *columns, "settled", "lost", "timed_out")
    if until is None:
        until = about.get("ended") or journal.last()
    names = list(about.get("classes", ()))
    names += [each for each in dict.fromkeys(row[0] for row in rows) if each not in names]
    machines = list(about.get("machines", ()))
    machines += [m for m in dict.fromkeys(row[1] for row in rows if row[1]) if m not in machines]
    kind = np.array([names.index(row[0]) for row in rows], dtype=int)
    stage = np.array([row[2] for row in rows])
    times = np.array(
        [[np.nan if time is None else time for time in row[3:9]] for row in rows], dtype=float
    ).reshape(-1, 6)
    counts = np.array([row[9:] for row in rows], dtype=int).reshape(-1, 2)
    every = np.ones(len(rows), bool)
    parts = (stage, times, counts, until)
    by_class = {name: _figures(kind == i, *parts) for i, name in enumerate(names)}
    executed = np.zeros((len(names), len(machines)), np.int64)
    worked, share = np.zeros(executed.shape), np.zeros(executed.shape)
    for row, i, (submitted, free, _, started, ended, settled) in zip(
        rows, kind, times, strict=True
    ):
        if row[2] == Stage.finished and row[1]:
            j = machines.index(row[1])
            executed[i, j] += 1
            worked[i, j] += ended - started
            turn = settled - max(free, submitted)
            share[i, j] += (ended - started) / turn if turn > 0 else 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(executed > 0, executed / worked, np.nan)
        overhead = np.where(executed > 0, share / executed, np.nan)
    return Statistics(
        float(until),
        _figures(every, *parts),
        by_class,
        tuple(machines),
        executed,
        rates,
        overhead,
    )


def _figures(
    chosen: NDArray[np.bool_],
    stage: NDArray[np.str_],
    times: Floats,
    counts: NDArray[np.int64],
    until: float,
) -> Figures:
    stages = stage[chosen]
    done = times[chosen & (stage == Stage.finished)]
    submitted, _, sent, started, ended, settled = done.T
    number = {each: int((stages == each).sum()) for each in Stage}

    def mean(values: Floats) -> float:
        return float(values.mean()) if len(values) else float("nan")

    return Figures(
        arrived=len(stages),
        finished=number[Stage.finished],
        failed=number[Stage.failed],
        cancelled=number[Stage.cancelled],
        unfinished=sum(number[each] for each in Stage if not each.is_final),
        lost=int(counts[chosen, 0].sum()),
        timed_out=int(counts[chosen, 1].sum()),
        waiting=mean(sent - submitted),
        communication=mean(started - sent),
        execution=mean(ended - started),
        notification=mean(settled - ended),
        response=mean(ended - submitted),
        arrival_rate=len(stages) / until if until > 0 else float("nan"),
    )
