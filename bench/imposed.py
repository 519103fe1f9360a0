"""Execution times on a machine before, while and after an availability is imposed on it.

While it is, jobs should take 1/a times as long. Goal: within 5 %, on a computer with an idle
processor. On a busy one, root can give the measurement a session of its own with a high priority:
``setsid sh -c 'echo -20 > /proc/self/autogroup; python -m bench imposed'``.
"""

import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import gridwright as gw
from gridwright.grid import Journal
from gridwright.testbed.adjuster import carry_along, spin, wait

from .cluster import dask_workers

AVAILABILITIES = (0.8, 0.5, 0.2, 0.1)
ROUNDS = 5
SECONDS = 0.2
"""Of a job with the whole CPU."""


def main() -> None:
    carry_along()
    with tempfile.TemporaryDirectory() as folder:
        measure("local", None, Path(folder) / "local.sqlite")
        with dask_workers(1) as address:
            measure("Dask", address, Path(folder) / "dask.sqlite")


def measure(words: str, place: str | None, journal: Path) -> None:
    options: dict[str, Any] = {"machines": 1} if place is None else {"on": place}
    with gw.Grid("fcfs", journal=journal, **options) as grid:
        (name,) = grid.status()["machines"]

        def seconds(function: Any, size: float) -> float:
            future = grid.submit(function, size)
            future.result()
            with closing(Journal(journal)) as read:
                job = next(each.job for each in read.jobs() if each.job.number == future.number)
            return job.ended - job.started

        seconds(spin, 1)  # imports are not to be measured
        iterations = round(2000 * SECONDS / median(seconds(spin, 2000) for _ in range(ROUNDS)))
        for kind, job, size in (("spin", spin, iterations), ("wait", wait, SECONDS)):
            for share in AVAILABILITIES:
                before, during, after = [], [], []
                for _ in range(ROUNDS):
                    before.append(seconds(job, size))
                    grid.impose(name, share, 3600.0)
                    during.append(seconds(job, size))
                    grid.impose(name, 1.0, 3600.0)
                    after.append(seconds(job, size))
                times = [sum(each) / ROUNDS for each in (before, during, after)]
                off = 2 * times[1] * share / (times[0] + times[2]) - 1
                said = ", ".join(f"{1000 * each:.0f}" for each in times)
                print(f"{words}, {kind}, availability {share}: {said} ms, {off:+.1%} of 1/a")
