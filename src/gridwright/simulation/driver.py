"""What one replication measured, and the slices that its loop is driven by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import InputError, System

__all__ = [
    "Conditions",
    "Replication",
    "check_run",
    "slice_ends",
]

SAMPLES = 128
"""How often the number in system is noted, at most."""
TASKS_PER_SLICE = 200_000
"""A slice is at most about this many tasks, so that a run can be stopped and shows progress."""
MOST_PARTS = 1 << 40
LONGEST = 1e15
"""Time units that a run may have: times are exact to some tenths of one then."""

Floats = NDArray[np.float64]


class Conditions(NamedTuple):
    """How a replication is run."""

    horizon: float
    seed: np.random.SeedSequence
    warmup: float = 0.0
    delays: Any = None  # what a real grid adds
    trace: bool = False
    interpreted: bool = False
    on_slice: Callable[[float], None] = lambda done: None  # told of the share done


class Replication(NamedTuple):
    """What one replication measured, over the time after the warm-up."""

    mean_number: float
    response: Floats  # [class], mean over tasks that arrived after the warm-up and finished
    waiting: Floats
    queueing: Floats
    responded: NDArray[np.int64]  # [class], how many those are
    throughput: Floats  # [class]
    utilisation: Floats  # [machine]
    tasks: int
    times: Floats  # [sample]
    number: Floats  # [sample], tasks in the system then
    seconds: float
    trace: Any = None  # EVENT records
    lost: int = 0
    refusals: int = 0
    held: int = 0
    asked: int = 0
    replans: int = 0
    tally: Floats = np.zeros(0)
    permitted: Floats = np.zeros(0)  # [class], machines that the plan permits
    memory: Floats = np.zeros((0, 0))
    more: Mapping[str, Any] = MappingProxyType({})  # what only some kinds of systems have


def slice_ends(
    system: System, horizon: float, warmup: float, effort: float = 1.0, fewest: int = 32
) -> Iterator[tuple[float, bool]]:
    """Cut the run into slices, and say at which ends the number in system is noted.

    The effort is how many times as long as usual a task takes to simulate; it is noted at least
    the fewest times.

    An empty slice comes first: it compiles the loop, so that the time of the others is the time
    of running. One ends with the warm-up.
    """
    expected = horizon * float(system.arrival_rates.sum())
    samples = int(min(max(expected / 100, fewest), SAMPLES))
    parts = max(1, int(min(effort * expected / samples / TASKS_PER_SLICE, MOST_PARTS)))
    yield 0.0, False
    last = 0.0
    for k in range(1, samples * parts + 1):
        # rounding must not leave the last one short of the horizon
        end = horizon if k == samples * parts else horizon * k / (samples * parts)
        if last < warmup < end:
            yield warmup, False
        yield end, k % parts == 0
        last = end


def check_run(horizon: float, warmup: float) -> None:
    """Refuse a run without length."""
    if not 0 < horizon < np.inf:
        raise InputError(f"horizon is {horizon:g}; expected a number > 0")
    if horizon > LONGEST:
        raise InputError(f"horizon is {horizon:g}; expected at most {LONGEST:g}")
    if not 0 <= warmup < horizon:
        raise InputError(f"warmup is {warmup:g}; expected at least 0 and less than the horizon")
