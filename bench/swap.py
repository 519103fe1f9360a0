"""What it costs or saves to put a grid in the place of another executor, on this computer.

The same jobs run before and after, in turn, and the best of three rounds of each counts. Jobs sleep
10 to 100 ms, or do nothing. Floor: jobs that do nothing take at most 1.5 times as long as in a
``ProcessPoolExecutor``. ``bench dask_short`` compares with Dask.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import gridwright as gw

MACHINES = 2
ROUNDS = 3
NOTHING, SLEEPS, COMMANDS = 2_000, 200, 10
SECONDS = [random.Random(1).uniform(0.01, 0.1) for _ in range(SLEEPS)]


def nothing(executor: Executor) -> None:
    for future in [executor.submit(abs, k) for k in range(NOTHING)]:
        future.result()


def nothing_together(grid: gw.Grid) -> None:
    for future in grid.submit_all(abs, range(NOTHING)):
        future.result()


def sleeps(executor: Executor) -> None:
    list(executor.map(time.sleep, SECONDS))


def parallel(backend: str, **options: object) -> None:
    import joblib

    with joblib.parallel_config(backend, **options):
        joblib.Parallel(n_jobs=MACHINES)(joblib.delayed(time.sleep)(each) for each in SECONDS)


def shell(command: str) -> None:
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def compare(
    words: str, before: Callable[[], None], after: Callable[[], None], rounds: int = ROUNDS
) -> None:
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for one, found in zip((before, after), times, strict=True):
            begin = perf_counter()
            one()
            found.append(perf_counter() - begin)
    old, new = map(min, times)
    print(f"{words:64}{old:8.2f} s before{new:8.2f} s after{new / old:8.2f} ×")


@contextmanager
def served() -> Iterator[str]:
    """Serve a grid; yield the command that submits to it."""
    program = f"{sys.executable} -m gridwright grid"
    with subprocess.Popen(
        f"exec {program} serve --name swap --machines {MACHINES}",
        shell=True,
        stdout=subprocess.PIPE,
        text=True,
    ) as service:
        assert service.stdout is not None
        service.stdout.readline()
        try:
            yield program
        finally:
            service.terminate()


def main() -> None:
    import gridwright.joblib  # noqa: F401  # registers the backend

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with (
            ProcessPoolExecutor(MACHINES) as pool,
            gw.Grid(slots=MACHINES, journal=path / "durable.sqlite") as grid,
            gw.Grid(slots=MACHINES, journal=path / "quick.sqlite", durable=False) as quick,
        ):
            words = f"concurrent.futures, {NOTHING:,} jobs that do nothing"
            compare(f"{words}, together", lambda: nothing(pool), lambda: nothing_together(grid))
            compare(f"{words}, one by one", lambda: nothing(pool), lambda: nothing(grid))
            compare(f"{words}, not durable", lambda: nothing(pool), lambda: nothing(quick))
            words = f"concurrent.futures, {SLEEPS} jobs of 10 to 100 ms"
            compare(words, lambda: sleeps(pool), lambda: sleeps(grid))
            compare(
                f"joblib, {SLEEPS} jobs of 10 to 100 ms",
                lambda: parallel("loky"),
                lambda: parallel("gridwright", grid=grid),
            )
        os.environ["GRIDWRIGHT_HOME"] = folder
        with served() as program:
            command, many = "sleep 2", f"$(seq {COMMANDS})"
            submit = (
                f"for k in {many}; do {program} submit --on swap --wait -- {command} & done; wait"
            )
            compare(
                f"a shell loop, {COMMANDS} commands of 2 s",
                lambda: shell(f"for k in {many}; do {command}; done"),
                lambda: shell(submit),
                rounds=1,
            )
