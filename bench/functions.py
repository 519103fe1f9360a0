"""A user's own functions on unequal workers: a grid that learns against Dask's own scheduler.

Two classes of jobs on four workers, two of which are slowed, one class more than the other. Jobs
come at random, the same ones for both, on the same cluster in the same run; nobody is told how fast
a worker is. The figure is the mean response, as a share of that under Dask's own scheduler.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil

from gridwright.grid import Grid
from gridwright.grid.executors.dask import DaskExecutor

from .cluster import dask_workers

JOBS = 200
SPEED = {"picture": [4.0, 4.0, 0.8, 0.8], "sound": [1.5, 1.5, 1.2, 1.2]}
"""Jobs of a class that each worker does in a unit of time."""
UNIT = 0.25
"""Seconds."""
RATES = {"picture": 5.0, "sound": 2.0}
"""Jobs of a class that come in a unit of time: 70 % of what could be done."""


def main() -> None:
    # By value, as a function of a user's own script goes: workers need not import this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with dask_workers(4) as address, tempfile.TemporaryDirectory() as folder:
        for policy in ("pas_dg", "lpas_dg"):
            compare(address, policy, Path(folder) / f"{policy}.sqlite")


def compare(address: str, policy: str, journal: Path) -> None:
    """Run the same jobs both ways, twice."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        names = client.run(lambda dask_worker: dask_worker.name)
        pids = client.run(os.getpid)
        order = sorted(pids, key=lambda worker: str(names[worker]))
        place = {pids[worker]: number for number, worker in enumerate(order)}
        ours, theirs = [], []
        with Grid(policy, on=DaskExecutor(address), journal=journal) as grid:
            for seed in (1, 2, 3):

                def managed(kind: str, *arguments: Any) -> Any:
                    return grid.options(task_class=kind).submit(work, *arguments)

                ours.append(run(managed, place, seed))

                def bare(kind: str, *arguments: Any) -> Any:
                    return client.submit(
                        work, *arguments, pure=False, key=f"{kind}-{os.urandom(8).hex()}"
                    )

                theirs.append(run(bare, place, seed))
    first, second = np.mean(theirs), np.mean(ours)
    each = ", ".join(f"{a / b:.2f}" for a, b in zip(ours, theirs, strict=True))
    print(
        f"{policy:8} {1e3 * second:6.0f} ms grid{1e3 * first:8.0f} ms Dask"
        f"{second / first:8.2f} × Dask (round by round: {each})"
    )


def run(submit: Callable[..., Any], place: dict[int, int], seed: int) -> float:
    """Send the jobs at their times; return the mean response."""
    rng = np.random.default_rng(seed)
    total = sum(RATES.values())
    kinds = rng.choice(list(RATES), JOBS, p=[rate / total for rate in RATES.values()])
    times = np.cumsum(rng.exponential(UNIT / total, JOBS))
    sizes = rng.exponential(UNIT, JOBS)
    begin, ends = time.monotonic(), np.zeros(JOBS)
    futures = []
    for number, (kind, at, size) in enumerate(zip(kinds, times, sizes, strict=True)):
        time.sleep(max(0.0, begin + at - time.monotonic()))
        future = submit(str(kind), float(size), place, SPEED[str(kind)])

        def note(done: Any, number: int = number) -> None:
            ends[number] = time.monotonic()

        future.add_done_callback(note)
        futures.append(future)
    for future in futures:
        future.result()
    while not ends.all():
        time.sleep(0.001)
    return float(np.mean(ends - begin - times))


def work(size: float, place: dict[int, int], speeds: list[float]) -> int:
    """Work at the speed of the worker that this runs in, or that started its process."""
    this = psutil.Process()
    number = next(place[each.pid] for each in [this, *this.parents()] if each.pid in place)
    time.sleep(size / speeds[number])
    return number
