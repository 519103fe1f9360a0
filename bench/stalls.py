"""How long one turn of the mapper holds its event loop, in CPU time of its own.

Goal: 50 ms, when a machine dies with 10,000 jobs in its queue, with 200 classes under a planner,
and when 200,000 jobs are submitted at once. Also the memory and the cancellation of waiting jobs,
and for how long the loop waits while the statistics of these jobs are counted.
"""

import asyncio
import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from time import perf_counter, sleep, thread_time
from typing import Any

import psutil

from gridwright.grid import Grid, statistics
from gridwright.grid.executors.virtual import FakeExecutor

QUEUED = 10_000
CLASSES = 200
MANY = 200_000


class Turns:
    """Measures the turns of a grid, but for Python's collections of garbage in them."""

    def __init__(self, grid: Grid) -> None:
        self.longest = self.collecting = self._spent = self._began = 0.0
        turn = grid.mapper._turn

        def measured() -> None:
            self._spent, began = 0.0, thread_time()
            turn()
            self.longest = max(self.longest, thread_time() - began - self._spent)
            self.collecting = max(self.collecting, self._spent)

        def collected(phase: str, _: object) -> None:
            if get_ident() == grid._thread.ident:
                if phase == "start":
                    self._began = thread_time()
                else:
                    self._spent += thread_time() - self._began

        gc.callbacks.append(collected)
        grid.mapper._turn = measured  # type: ignore[method-assign]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        death(Path(folder) / "death.sqlite")
        planner(Path(folder) / "planner.sqlite")
        at_once(Path(folder) / "many.sqlite")


def death(path: Path) -> None:
    executor = FakeExecutor(["a", "b"], lambda *_: 1000.0)
    with Grid("mct", on=executor, journal=path) as grid:
        grid.pause("b")
        grid.submit_all(abs, range(QUEUED))
        grid.resume("b")
        turns, began = Turns(grid), perf_counter()
        grid.kill("a")
        while grid.status()["machines"]["b"]["queued"] < QUEUED - 1:
            sleep(0.05)
        print(
            f"{QUEUED:,} jobs of a machine that died, under mct: offered anew in "
            f"{perf_counter() - began:.2f} s, longest turn {1000 * turns.longest:.0f} ms"
        )
        grid.close()  # the jobs never end


def planner(path: Path) -> None:
    with Grid("pas_dg", 4, journal=path) as grid:
        turns, began = Turns(grid), perf_counter()
        futures = [
            grid.options(task_class=f"class {k % CLASSES}").submit(abs, k)
            for k in range(5 * CLASSES)
        ]
        for future in futures:
            future.result()
        print(
            f"{len(futures):,} jobs of {CLASSES} new classes, under pas_dg: "
            f"{perf_counter() - began:.1f} s, longest turn {1000 * turns.longest:.0f} ms, "
            f"{grid.status()['plans']} plans"
        )


def at_once(path: Path) -> None:
    own = psutil.Process()
    with Grid("fcfs", 2, journal=path, durable=False) as grid:
        grid.submit(abs, 1).result()
        turns, before, began = Turns(grid), own.memory_info().rss, perf_counter()
        futures = grid.submit_all(abs, range(MANY))
        sent, done = perf_counter() - began, 0
        while grid.status()["classes"]["abs"]["arrived"] < MANY:
            sleep(0.05)
        taken_in = perf_counter() - began
        done = sum(each.done() for each in futures)
        memory = (own.memory_info().rss - before) / MANY
        began = perf_counter()
        cancelled = futures[-1].cancel() and futures[MANY // 2].cancel()
        cancelling = perf_counter() - began
        print(
            f"{MANY:,} jobs at once, under fcfs: handed over in {sent:.1f} s, all in "
            f"the journal after {taken_in:.1f} s with {done:,} jobs done meanwhile, longest turn "
            f"{1000 * turns.longest:.0f} ms (collecting garbage {1000 * turns.collecting:.0f} ms); "
            f"{memory / 1000:.2f} kB a job with its future and call; "
            f"two cancelled ({cancelled}) in {1000 * cancelling:.0f} ms"
        )
        inside = longest_wait(grid, lambda: grid._in_loop(lambda: statistics(grid.journal)))
        beside = longest_wait(grid, grid.statistics)
        print(
            f"statistics of {MANY:,} jobs: the loop waits for at most {1000 * beside:.0f} ms; "
            f"{1000 * inside:.0f} ms if it counts them itself"
        )
        grid.close()


def longest_wait(grid: Grid, what: Callable[[], Any]) -> float:
    """Return the longest time in which the event loop of a grid did nothing else, in seconds."""
    waits: list[float] = []

    async def look() -> None:
        last = perf_counter()
        while True:
            await asyncio.sleep(0.001)
            waits.append(perf_counter() - last)
            last = perf_counter()

    looking = asyncio.run_coroutine_threadsafe(look(), grid._loop)
    what()
    seen = len(waits)
    while len(waits) == seen:  # also the wait that has not ended yet
        sleep(0.001)
    looking.cancel()
    return max(waits)


if __name__ == "__main__":
    main()
