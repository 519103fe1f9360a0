"""Put long runs together from pieces, which a GPU simulates side by side.

A GPU is fast if it has thousands of runs, and a published experiment has thirty. If a run is much
longer than the system takes to settle, it does not matter whether one run is observed for long or
many are observed for less, each after a warm-up. Together, the pieces are as long as the run.

Tasks that have not left at the end of a piece have no response yet, and the longest are missed most
often. So the response is worked out from the mean number in system by Little's law, over the tasks
that left. Waiting and queueing, for which this cannot be done, are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model import System
from ..policies import find as find_policy
from ..simulation import Job, Replication, launch
from .device import GPU, find_device
from .result import Result
from .results_by_kind import result_of
from .simulate import check_numbers, options_of, seeds_of
from .store import Kept

AT_ONCE = 7_680
"""About how many pieces are launched together: what is done after them is kept."""
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


def simulate_in_pieces(
    system: System,
    policy: str,
    horizon: float,
    replications: int,
    seed: int,
    pieces: Pieces,
    store: Kept | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Result:
    """Simulate long replications on the GPU, each in pieces; keep those that are done.

    The number in system is noted as a mean over the pieces, from the start of their warm-up.
    """
    found, chosen = find_policy(policy), seeds_of(seed, 0, replications)
    check_numbers(horizon, replications, seed, pieces.warmup)
    options = options_of(system, found, horizon, on=GPU)
    where = {**options, "on": (GPU, *pieces)}
    keys = [store and store.key(system, found, each, where) for each in chosen]
    kept = {k: store.get(key) for k, key in enumerate(keys) if store and key}
    runs = {k: each for k, each in kept.items() if each is not None}
    missing = [k for k in range(replications) if k not in runs]
    together = max(1, round(AT_ONCE / pieces.number))
    length = pieces.warmup + horizon / pieces.number
    for begin in range(0, len(missing), together):
        part = missing[begin : begin + together]
        cut = [each for k in part for each in _seeds_of_pieces(chosen[k], pieces.number)]
        alike = system.assumed is None
        job = Job(system, found, cut, length, pieces.warmup, alike=alike)

        def on_progress(share: float, begin: int = begin, size: int = len(part)) -> None:
            progress((begin + share * size) / len(missing))

        for k, run in zip(part, _run(job, pieces.number, on_progress), strict=True):
            runs[k] = run
            if store and (key := keys[k]):
                store.put(key, run)
    every = tuple(runs[k] for k in range(replications))
    return result_of(system, found, horizon, 0.0, seed, every, ())


def _run(job: Job, number: int, on_progress: Callable[[float], None]) -> Iterator[Replication]:
    """Run the pieces of replications, so many of each; give the replications in their order."""
    parts: list[list[Replication]] = [[] for _ in range(len(job.seeds) // number)]
    keep = lambda _, k, piece: parts[k // number].append(piece)  # noqa: E731
    launch(find_device(), [job], keep, on_progress)
    return (joined(each, job.horizon - job.warmup) for each in parts)


def _seeds_of_pieces(seed: np.random.SeedSequence, number: int) -> list[np.random.SeedSequence]:
    return [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, k)) for k in range(number)
    ]


def joined(pieces: Sequence[Replication], length: float) -> Replication:
    """Return what the pieces of a run measured as one replication; all are so long."""
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
