"""Short jobs on three unequal Dask workers: a grid against bare ``client.submit``, in the same run.

There are three classes of jobs, and each worker is quick at another. The grid learns the rates from
the jobs themselves. Jobs sleep, so that two cores suffice. Floors: 2,000 jobs of 20 to 400 ms in at
most 0.95 of the bare client's time, 400 jobs of 0.1 to 2 s in 0.8 of it, 600 jobs that do nothing
in 1.5 times it.
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import gridwright as gw

from .cluster import dask_workers

FACTORS = {"1": (1.0, 2.0, 4.0), "2": (4.0, 1.0, 2.0), "3": (2.0, 4.0, 1.0)}
"""How much longer the jobs of each class take on a worker than on their best one."""
CASES = [
    ("2,000 jobs of 20 to 400 ms", 2000, 0.02, 0.1, 1),
    ("400 jobs of 0.1 to 2 s", 400, 0.1, 0.5, 1),
    ("600 jobs that do nothing, the best of five rounds", 600, 0.0, 0.0, 5),
]
"""Words, jobs, shortest and longest on their best worker, rounds."""


def wait(task_class: int, seconds: float) -> None:
    if seconds:
        time.sleep(seconds * FACTORS[place()][task_class])


def place() -> str:
    """Return the name of the worker that runs this."""
    if (name := gw.here()) is None:
        from distributed import get_worker

        name = str(get_worker().name)
    return name


def first(seconds: float) -> None:
    wait(0, seconds)


def second(seconds: float) -> None:
    wait(1, seconds)


def third(seconds: float) -> None:
    wait(2, seconds)


def compare(
    address: str, folder: Path, jobs: int, low: float, high: float, rounds: int
) -> tuple[float, float]:
    """Return the seconds of the bare client and of a grid for the same jobs, the best of each."""
    from distributed import Client

    rng = random.Random(1)
    calls: list[tuple[Callable[[float], None], float]] = [
        (rng.choice([first, second, third]), rng.uniform(low, high)) for _ in range(jobs)
    ]
    bare, ours = [], []
    with (
        Client(address, set_as_default=False) as client,
        gw.Grid(on=address, journal=folder / f"{jobs}.sqlite") as grid,
    ):
        client.gather([client.submit(each, 0.0, pure=False) for each in (first, second, third)])
        for each in (first, second, third):
            grid.submit(each, 0.0).result()
        for _ in range(rounds):
            begin = perf_counter()
            client.gather([client.submit(each, seconds, pure=False) for each, seconds in calls])
            between = perf_counter()
            for future in [grid.submit(each, seconds) for each, seconds in calls]:
                future.result()
            bare.append(between - begin)
            ours.append(perf_counter() - between)
    return min(bare), min(ours)


def main() -> None:
    with dask_workers(3) as address, tempfile.TemporaryDirectory() as folder:
        for words, *case in CASES:
            bare, ours = compare(address, Path(folder), *case)  # type: ignore[arg-type]
            print(f"{words:52}{bare:8.2f} s bare{ours:8.2f} s grid{ours / bare:8.2f} × bare")
