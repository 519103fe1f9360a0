"""Put long runs together from pieces, which a GPU simulates side by side.

A GPU is fast if it has thousands of runs, and a published experiment has thirty. If a run is much
longer than the system takes to settle, it does not matter whether one run is observed for long or
many are observed for less, each after a warm-up. Together, the pieces are as long as the run.

Tasks that have not left at the end of a piece have no response yet, and the longest are missed most
often. So the response is worked out from the mean number in system by Little's law, over the tasks
that left. Waiting and queueing, for which this cannot be done, are not known, nor are percentiles.
Counts, as of lost tasks and of messages, are those of all pieces with their warm-ups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model import InputError
from .driver import Replication
from .on_device import Job

LEVELS = ("mean_number", "throughput", "utilisation", "number", "class_number", "permitted")
"""Means over time: all pieces are as long."""
TOTALS = (
    *("tasks", "lost", "refusals", "held", "asked", "replans", "interrupted"),
    *("tally", "seconds"),
)


class Pieces(NamedTuple):
    """How a run is cut."""

    number: int
    """Of one run."""
    warmup: float
    """Time before each that does not count."""

    def __str__(self) -> str:
        return f"{self.number} pieces, each after a warm-up of {self.warmup:g} time units"


def in_pieces(job: Job, cut: Pieces) -> Job:
    """Return a job with the pieces of every replication, one replication after the other.

    All start from what the first piece of the first replication draws, whichever of them are run.
    """
    if job.tails:
        raise InputError("runs in pieces have no percentiles of the response")

    def piece_of(replication: tuple[int, ...], piece: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(job.seeds[0].entropy, spawn_key=(*replication, piece))

    seeds = [piece_of(each.spawn_key, k) for each in job.seeds for k in range(cut.number)]
    start = piece_of((0,), 0) if job.system.assumed is None else None
    length = cut.warmup + job.horizon / cut.number
    return Job(job.system, job.policy, seeds, length, cut.warmup, start=start)


def joined(job: Job, pieces: Sequence[Replication]) -> Replication:
    """Return what the pieces of one run of a job measured as one replication."""
    length = job.horizon - job.warmup
    made: dict[str, Any] = {}
    for name in LEVELS:
        made[name] = np.mean([getattr(each, name) for each in pieces], axis=0)
    for name in TOTALS:
        made[name] = np.sum([getattr(each, name) for each in pieces], axis=0)
    number, rate = made["class_number"], made["throughput"]
    unknown = np.full(len(rate), np.nan)
    made["response"] = np.divide(number, rate, out=unknown.copy(), where=rate > 0)
    made["responded"] = np.rint(rate * length * len(pieces)).astype(np.int64)
    plain: Any = {k: v if np.ndim(v) else v.tolist() for k, v in made.items()}
    return pieces[0]._replace(**plain, waiting=unknown, queueing=unknown)
