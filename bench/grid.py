"""The local executor: jobs a second against a pool of processes, and memory over many jobs.

Floor: 500 jobs a second (goal: 1,000). The pool remembers nothing; a grid writes every job to its
journal before it runs it.
"""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter

import psutil

from gridwright.grid import Grid

MACHINES = 2
ROUND = 2_000
MANY = 100_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with (
            Grid("fcfs", MACHINES, journal=Path(folder) / "quick.sqlite") as grid,
            ProcessPoolExecutor(MACHINES) as pool,
        ):
            ours, theirs = [], []
            for _ in range(4):
                begin = perf_counter()
                for future in grid.map(abs, range(ROUND)):
                    future.result()
                between = perf_counter()
                for other in [pool.submit(abs, k) for k in range(ROUND)]:
                    other.result()
                ours.append(ROUND / (between - begin))
                theirs.append(ROUND / (perf_counter() - between))
        grid_rate, pool_rate = max(ours[1:]), max(theirs[1:])
        print(
            f"{grid_rate:8.0f} jobs/s grid{pool_rate:10.0f} jobs/s pool"
            f"{grid_rate / pool_rate:8.2f} × the pool"
        )
        own, sizes = psutil.Process(), []
        with Grid("fcfs", MACHINES, journal=Path(folder) / "many.sqlite") as grid:
            begin = perf_counter()
            for _ in range(MANY // ROUND):
                for future in grid.map(abs, range(ROUND)):
                    future.result()
                sizes.append(own.memory_info().rss / 2**20)
            seconds = perf_counter() - begin
        tenth = len(sizes) // 10
        print(
            f"{MANY:,} jobs in {seconds:.0f} s: {sizes[tenth]:.1f} MiB after a tenth of them, "
            f"{sizes[-1]:.1f} MiB after all"
        )
