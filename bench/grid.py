"""The local executor: jobs a second against a pool of processes, and memory over many jobs.

Also jobs submitted a second to machines that take their time: one by one and by ``map``, durable
(each call returns after its jobs are in the journal) and not.

Floor: 500 jobs a second (goal: 1,000). The pool remembers nothing; a grid writes every job to its
journal before it runs it.
"""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter

import psutil

from gridwright.grid import Grid
from gridwright.grid.executors.virtual import FakeExecutor

MACHINES = 2
ROUND = 2_000
MANY = 100_000


def submissions(folder: Path) -> None:
    for durable in (True, False):
        executor = FakeExecutor(["a", "b"], lambda *_: 1e6)
        path = folder / f"{durable}.sqlite"
        with Grid("fcfs", on=executor, journal=path, durable=durable) as grid:
            singly, together = [], []
            for _ in range(5):
                begin = perf_counter()
                for k in range(ROUND):
                    grid.submit(abs, k)
                between = perf_counter()
                grid.submit_all(abs, range(ROUND))
                singly.append(ROUND / (between - begin))
                together.append(ROUND / (perf_counter() - between))
                grid.status()  # whose answer comes after what was handed over
            grid.close()  # the jobs never end
        print(
            f"{'durable' if durable else 'not durable':12}{max(singly):8.0f} jobs/s by submit"
            f"{max(together):8.0f} jobs/s by map"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        submissions(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        with (
            Grid("fcfs", MACHINES, journal=Path(folder) / "quick.sqlite") as grid,
            ProcessPoolExecutor(MACHINES) as pool,
        ):
            ours, theirs = [], []
            for _ in range(4):
                begin = perf_counter()
                for future in grid.submit_all(abs, range(ROUND)):
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
                for future in grid.submit_all(abs, range(ROUND)):
                    future.result()
                sizes.append(own.memory_info().rss / 2**20)
            seconds = perf_counter() - begin
        tenth = len(sizes) // 10
        print(
            f"{MANY:,} jobs in {seconds:.0f} s: {sizes[tenth]:.1f} MiB after a tenth of them, "
            f"{sizes[-1]:.1f} MiB after all"
        )
