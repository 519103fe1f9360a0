"""Ordinary Dask code with ``gridwright.dask.Placement`` against stock Dask, in the same run.

There are three classes of jobs, and four workers that are quick at different ones. Jobs sleep, so
that two cores suffice. At load 1, 33 jobs come a second, which is 0.73 of what the LP says that the
workers can do. Stock Dask and ours have workers of their own, and start with nothing learnt.
Streams and jobs that come at once run on both at the same time, what needs the processors in turn.

``python -m bench dask_placement stream_0.5 noops`` runs only these rows.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

import gridwright as gw

from .cluster import dask_workers
from .simulated_workers import pauses

SPEEDS = {
    "unequal": {"render": (20, 2, 4, 4), "encode": (5, 10, 10, 5), "mix": (6, 6, 6, 6)},
    "equal": {"render": (9, 9, 9, 9), "encode": (9, 9, 9, 9), "mix": (6, 6, 6, 6)},
}
"""Jobs of mean size a second, by class and worker."""
ARRIVALS = {"render": 14.0, "encode": 16.0, "mix": 3.0}
"""Jobs a second at load 1."""
STREAM, AT_ONCE, NOTHING = 500, 600, 5_000
"""Jobs of a round."""
Found = TypeVar("Found")


# what the user has: three functions and a script


def render(size: float, workers: str) -> float:
    return wait("render", size, workers)


def encode(size: float, workers: str) -> float:
    return wait("encode", size, workers)


def mix(size: float, workers: str) -> float:
    return wait("mix", size, workers)


def wait(task_class: str, size: float, workers: str) -> float:
    """Take as long as the worker needs; return when this ended."""
    from distributed import get_worker

    time.sleep(size / SPEEDS[workers][task_class][int(get_worker().name) - 1])
    return time.time()


def nothing(number: int) -> int:
    return number


FUNCTIONS = {"render": render, "encode": encode, "mix": mix}


class Job(NamedTuple):
    """When a job comes, and how long it takes at rate 1."""

    due: float
    task_class: str
    size: float


def jobs(number: int, seed: int, load: float = 0.0) -> list[Job]:
    """Return random jobs, which come one by one at a load, or all at once."""
    rng, due, found = random.Random(seed), 0.0, []
    total = sum(ARRIVALS.values()) * load
    for _ in range(number):
        due += rng.expovariate(total) if load else 0.0
        (task_class,) = rng.choices(list(ARRIVALS), list(ARRIVALS.values()))
        found.append(Job(due, task_class, rng.expovariate(1)))
    return found


def respond(client: Any, coming: Sequence[Job], workers: str) -> list[float]:
    """Submit jobs when they are due; return the seconds from each submission to its end."""
    begin, submitted, futures = time.time(), [], []
    for due, task_class, size in coming:
        time.sleep(max(begin + due - time.time(), 0.0))
        submitted.append(time.time() if due else begin)
        futures.append(client.submit(FUNCTIONS[task_class], size, workers, pure=False))
    ends = client.gather(futures)
    return [end - start for start, end in zip(submitted, ends, strict=True)]


def array_sums(client: Any) -> None:
    """Sum an array by rows and columns, transposed, rechunked and shuffled."""
    import dask.array as da

    rng = da.random.default_rng(1)  # type: ignore[no-untyped-call]
    x = rng.random((5000, 5000), chunks=(500, 500))
    y = (x + x.T).rechunk((5000, 100)) + 1
    z = y[np.random.default_rng(1).permutation(5000)].rechunk((250, 2500))
    total, columns = client.gather(client.compute([z.sum(), (z - z.mean(axis=0)).std(axis=0)]))
    assert 2 * 5000**2 * 0.99 < total < 2 * 5000**2 * 1.01
    assert columns.shape == (5000,)


def submit_nothing(client: Any) -> None:
    futures = [client.submit(nothing, k, pure=False) for k in range(NOTHING)]
    assert client.gather(futures) == list(range(NOTHING))


def map_nothing(client: Any) -> None:
    futures = client.map(nothing, range(NOTHING), pure=False)
    assert client.gather(futures) == list(range(NOTHING))


# clusters with and without


def placement(**options: Any) -> Any:
    """Return the line that is added."""
    import gridwright.dask

    return gridwright.dask.Placement("pas_dg", **options)


@contextmanager
def cluster(workers: int, plugin: Any = None) -> Iterator[Any]:
    """Yield a client of new workers, placed by a plugin or by stock Dask."""
    from distributed import Client

    with dask_workers(workers) as address, Client(address, set_as_default=False) as client:
        if plugin is not None:
            client.register_plugin(plugin)
        client.run(nothing, 0)  # imports this module on the workers
        yield client


def side_by_side(script: Callable[[Any], Found]) -> tuple[Found, Found]:
    """Return what a script finds on stock Dask and on ours, run at the same time."""
    with cluster(4) as stock, cluster(4, placement()) as ours, ThreadPoolExecutor(2) as threads:
        first, second = threads.submit(script, stock), threads.submit(script, ours)
        return first.result(), second.result()


def in_turn(script: Callable[[Any], object], workers: int, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a script on stock Dask and on ours, run in turn."""
    with cluster(workers) as stock, cluster(workers, placement()) as ours:
        times: list[list[float]] = [[], []]
        for k in range(2 * (rounds + 1)):
            which = (k + k // 2) % 2
            client = (stock, ours)[which]
            begin = perf_counter()
            script(client)
            if k > 1:  # the first round imports modules
                times[which].append(perf_counter() - begin)
            while client.run_on_scheduler(tasks_left):
                time.sleep(0.02)
    return statistics.median(times[0]), statistics.median(times[1])


def tasks_left(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


# rows


class Line(NamedTuple):
    """A measurement, and what it should be."""

    words: str
    found: float
    floor: float
    goal: float
    unit: str = "× stock"
    more: str = ""


def stream(load: float, workers: str = "unequal") -> tuple[list[float], list[float]]:
    """Return the ratios of the mean and of the 95th percentile of the responses, a round each."""
    means, tails = [], []
    for seed in (1, 2, 3, 4):
        coming = jobs(STREAM, seed, load)
        stock, ours = side_by_side(lambda client, c=coming: respond(client, c, workers))  # type: ignore[misc]
        means.append(statistics.mean(ours) / statistics.mean(stock))
        tails.append(float(np.percentile(ours, 95) / np.percentile(stock, 95)))
    return means, tails


def stream_half() -> Iterator[Line]:
    means, _ = stream(0.5)
    yield Line("stream at 0.5, mean response", *judged(means, 0.55, 0.45))


def stream_heavy() -> Iterator[Line]:
    means, tails = stream(0.8)
    yield Line("stream at 0.8, mean response", *judged(means, 0.35, 0.2))
    yield Line("stream at 0.8, 95th percentile", *judged(tails, 0.5, 0.2))


def known() -> Iterator[Line]:
    """Jobs at once, after an earlier run that has left its rates in a file."""
    with tempfile.TemporaryDirectory() as folder:
        memory, ratios = Path(folder) / "rates", []
        for seed in (3, 2, 1):
            coming = jobs(AT_ONCE, seed)
            with cluster(4, placement(memory=str(memory))) as client:
                total = max(respond(client, coming, "unequal"))
            ratios.append(total / bound(coming, "unequal"))
    yield Line("600 at once, rates known", *judged(ratios[1:], 1.25, 1.1, "× the LP's bound"))


def unknown() -> Iterator[Line]:
    ratios, bounds = at_once("unequal")
    line = Line("600 at once, nothing known", *judged(ratios, 0.9, 0.7))
    yield line._replace(more=f"{line.more}; {np.mean(bounds):.2f} × the LP's bound")


def equal() -> Iterator[Line]:
    means, tails = stream(0.8, "equal")
    yield Line("equal workers, stream at 0.8, mean response", *judged(means, 1.03, 1.0))
    yield Line("equal workers, stream at 0.8, 95th percentile", *judged(tails, 1.03, 1.0))
    ratios, _ = at_once("equal")
    yield Line("equal workers, 600 at once", *judged(ratios, 1.03, 1.0))


def at_once(workers: str) -> tuple[list[float], list[float]]:
    """Return the ratios of total times to stock Dask's and to the LP's bound, a round each."""
    ratios, bounds = [], []
    for seed in (1, 2):
        coming = jobs(AT_ONCE, seed)
        stock, ours = side_by_side(lambda client, c=coming: max(respond(client, c, workers)))  # type: ignore[misc]
        ratios.append(ours / stock)
        bounds.append(ours / bound(coming, workers))
    return ratios, bounds


def bound(coming: Sequence[Job], workers: str) -> float:
    """Return the seconds in which no schedule does these jobs sooner, if they could be split."""
    work = [sum(each.size for each in coming if each.task_class == name) for name in ARRIVALS]
    rates = [SPEEDS[workers][name] for name in ARRIVALS]
    return 1.0 / gw.allocate(gw.System(arrivals=work, rates=rates)).capacity


def graph() -> Iterator[Line]:
    stock, ours = in_turn(array_sums, 2, 7)
    yield compared("a graph with large data", stock, ours, 1.03, 1.0)


def noops() -> Iterator[Line]:
    for words, script in (("submit", submit_nothing), ("map", map_nothing)):
        stock, ours = in_turn(script, 4, 3)
        yield compared(f"5,000 no-ops, {words}", stock, ours, 1.15, 1.05)


def hooks() -> Iterator[Line]:
    stock, ours = pauses(None), pauses(placement())
    more = (
        f"in {ours.hook_name}; longest pause of the event loop {1e3 * ours.loop:.0f} ms, "
        f"of stock's {1e3 * stock.loop:.0f} ms; all tasks in {ours.total:.1f} s, "
        f"with stock in {stock.total:.1f} s"
    )
    words = "longest call of a hook, 200 workers, 10,000 tasks"
    yield Line(words, 1e3 * ours.hook, 50, 10, "ms", more)


def judged(
    found: Sequence[float], floor: float, goal: float, unit: str = "× stock"
) -> tuple[float, float, float, str, str]:
    """Return the median of ratios with what it should be, and all of them."""
    each = "rounds: " + ", ".join(f"{ratio:.2f}" for ratio in found)
    return statistics.median(found), floor, goal, unit, each


def compared(words: str, stock: float, ours: float, floor: float, goal: float) -> Line:
    more = f"{stock:.2f} s stock, {ours:.2f} s ours"
    return Line(words, ours / stock, floor, goal, more=more)


ROWS: dict[str, Callable[[], Iterator[Line]]] = {
    "stream_0.5": stream_half,
    "stream_0.8": stream_heavy,
    "known": known,
    "unknown": unknown,
    "equal": equal,
    "graph": graph,
    "noops": noops,
    "hooks": hooks,
}


def main(*rows: str) -> None:
    for name in rows or ROWS:
        for words, found, floor, goal, unit, more in ROWS[name]():
            met = "goal" if found <= goal else "floor" if found <= floor else "MISSED"
            limits = f"floor {floor:g}, goal {goal:g}: {met}"
            print(f"{words:48}{found:8.2f} {unit:18}{limits:34}{more}", flush=True)
