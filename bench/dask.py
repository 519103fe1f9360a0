"""A grid on a Dask cluster against bare ``client.submit`` on the same cluster, in the same run.

Both pin every job to a worker, with one job at a time on each; the bare client is asynchronous,
which is its quickest way. Floor: at most 2 × its time per job (goal: 1.2 ×).
"""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from gridwright.grid import Grid
from gridwright.grid.executors.dask import DaskExecutor

from .cluster import dask_workers

JOBS = 200
ROUNDS = 5


def main() -> None:
    with dask_workers(2) as address, tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            executor = DaskExecutor(address, workers)
            with Grid("fcfs", on=executor, journal=Path(folder) / f"{workers}.sqlite") as grid:
                asyncio.run(compare(grid, address, workers))


async def compare(grid: Grid, address: str, workers: int) -> None:
    """Take turns, so that a busy moment of the computer hits both; the best of each counts."""
    from distributed import Client

    bare_times, grid_times = [], []
    async with Client(address, asynchronous=True, set_as_default=False) as client:
        identity = await client.scheduler.identity(n_workers=-1)
        there = sorted(identity["workers"])[:workers]
        for _ in range(ROUNDS + 1):
            begin = perf_counter()
            await asyncio.gather(*(bare(client, each, JOBS // workers) for each in there))
            between = perf_counter()
            await asyncio.to_thread(ours, grid)
            bare_times.append((between - begin) / JOBS)
            grid_times.append((perf_counter() - between) / JOBS)
    first, second = min(bare_times[1:]), min(grid_times[1:])
    print(
        f"{workers} at a time{1e3 * first:10.2f} ms bare{1e3 * second:9.2f} ms grid"
        f"{second / first:8.2f} × bare"
    )


async def bare(client: Any, worker: str, jobs: int) -> None:
    """Have a worker run a job at a time."""
    options = {"workers": [worker], "allow_other_workers": False, "pure": False}
    for k in range(jobs):
        assert await client.submit(abs, -k, **options) == k


def ours(grid: Grid) -> None:
    """Send the jobs; the grid has a machine run one at a time."""
    for k, future in enumerate(grid.submit_all(abs, range(JOBS))):
        assert future.result() == k
