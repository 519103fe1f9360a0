"""What the clients of a walk ask of Dask, and how they check the answers."""

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["KIND_NAMES", "LIMIT", "SCENARIOS", "Load"]

LIMIT = 60.0
"""Seconds after which a client that waits counts as hanging."""
KIND_NAMES = ("render", "encode", "mix")


class WrongError(AssertionError):
    """Raised for a result that is not as it should be."""


class HangError(AssertionError):
    """Raised when tasks do not end."""


class Load(NamedTuple):
    """Where the tasks of a client run, and what they may use."""

    client: Any
    rng: random.Random
    folder: Path
    rock: str
    """The address of the worker that never leaves."""
    there: Callable[[], list[str]]
    """The names of the workers that are there now."""


# tasks


def speed_of(worker: Any, kind: str) -> float:
    """Return how many times longer a kind of task takes on a worker."""
    if not hasattr(worker, "walk_speed"):
        rng = random.Random(str(worker.name))
        worker.walk_speed = {name: rng.choice((0.5, 1, 2, 4)) for name in KIND_NAMES}
    return float(worker.walk_speed[kind])


def spend(kind: str, seconds: float) -> None:
    from distributed import get_worker

    time.sleep(seconds * speed_of(get_worker(), kind))


def render(number: int, seconds: float = 0.01) -> int:
    spend("render", seconds)
    return 3 * number


def encode(number: int, seconds: float = 0.01) -> int:
    spend("encode", seconds)
    return 3 * number


def mix(number: int, seconds: float = 0.01) -> int:
    spend("mix", seconds)
    return 3 * number


def add(*numbers: int) -> int:
    spend("mix", 0.005)
    return sum(numbers)


def fail(number: int) -> int:
    spend("mix", 0.005)
    raise ValueError(number)


def fail_first(path: str, times: int) -> int:
    """Fail as many times as said, then return how often it was run before."""
    with open(path, "a") as log:
        log.write("x")
    before = Path(path).stat().st_size - 1
    if before < times:
        raise OSError("not yet")
    return before


def leave_a_mark(path: str) -> None:
    spend("encode", 0.01)
    Path(path).touch()


def on_gpu(number: int) -> tuple[int, bool]:
    from distributed import get_worker

    spend("render", 0.01)
    return 3 * number, "GPU" in get_worker().state.total_resources


def where(number: int) -> tuple[int, str]:
    from distributed import get_worker

    spend("encode", 0.01)
    return 3 * number, get_worker().address


def run_long(number: int, seconds: float) -> int:
    from distributed import secede

    secede()
    time.sleep(seconds)
    return 3 * number


def ask_others(numbers: Sequence[int]) -> int:
    from distributed import worker_client

    with worker_client() as client:
        found: list[int] = client.gather(client.map(render, numbers, pure=False))
    return sum(found)


class Counter:
    """An actor."""

    def __init__(self) -> None:
        self.number = 0

    def increment(self) -> int:
        self.number += 1
        return self.number


KINDS = (render, encode, mix)


# what a client does, and how many tasks it has checked


def plain(load: Load) -> int:
    numbers = some(load, 60)
    futures = []
    for number in numbers:
        seconds, priority = load.rng.expovariate(50), load.rng.choice((0, 0, 0, 5, -5))
        kind = load.rng.choice(KINDS)
        futures.append(load.client.submit(kind, number, seconds, pure=False, priority=priority))
        if load.rng.random() < 0.3:
            time.sleep(load.rng.expovariate(100))
    return check(load, futures, [3 * number for number in numbers])


def mapped(load: Load) -> int:
    numbers = some(load, 150)
    futures = load.client.map(load.rng.choice(KINDS), numbers, pure=load.rng.random() < 0.3)
    return check(load, futures, [3 * number for number in numbers])


def annotated(load: Load) -> int:
    from dask.base import annotate

    numbers = some(load, 30)
    with annotate(gridwright=load.rng.choice(KIND_NAMES)):
        futures = load.client.map(load.rng.choice(KINDS), numbers, pure=False)
    return check(load, futures, [3 * number for number in numbers])


def chained(load: Load) -> int:
    numbers = some(load, 40)
    leaves = load.client.map(load.rng.choice(KINDS), numbers, pure=False)
    level = leaves
    while len(level) > 1:
        level = [
            load.client.submit(add, *level[k : k + 3], pure=False) for k in range(0, len(level), 3)
        ]
    return len(leaves) + check(load, level, [3 * sum(numbers)])


def arrays(load: Load) -> int:
    import dask.array as da

    side = load.rng.choice((100, 200, 300))
    x = da.ones((side, side), chunks=(50, 50))
    future = load.client.compute(((x + x.T) @ x).sum())
    return check(load, [future], [2.0 * side**3])


def retried(load: Load) -> int:
    times = load.rng.randint(1, 3)
    paths = [fresh(load) for _ in range(load.rng.randint(1, 5))]
    futures = [
        load.client.submit(fail_first, str(path), times, retries=times, pure=False)
        for path in paths
    ]
    for found in results(load, futures):
        expect(found >= times, f"a task that fails {times} times was run {found} times before")
    return len(futures)


def failing(load: Load) -> int:
    futures = load.client.map(fail, some(load, 10), pure=False)
    dependents = [load.client.submit(add, future, pure=False) for future in futures]
    finish(load, futures + dependents)
    for future in futures + dependents:
        error = future.exception(timeout=LIMIT)
        expect(isinstance(error, ValueError), f"{error!r} in place of a ValueError")
    return len(futures) + len(dependents)


def restricted(load: Load) -> int:
    numbers = some(load, 12)
    futures = load.client.map(where, numbers, workers=[load.rock], pure=False)
    for number, found in zip(numbers, results(load, futures), strict=True):
        expect(tuple(found) == (3 * number, load.rock), f"{found} not on {load.rock}")
    return len(futures)


def preferring(load: Load) -> int:
    """Prefer a worker that stays: without it, Dask may leave tasks for ever without a worker."""
    numbers = some(load, 20)
    preferred = [load.rock]
    futures = load.client.map(
        render, numbers, workers=preferred, allow_other_workers=True, pure=False
    )
    return check(load, futures, [3 * number for number in numbers])


def with_resources(load: Load) -> int:
    numbers = some(load, 12)
    futures = load.client.map(on_gpu, numbers, resources={"GPU": 1}, pure=False)
    return check(load, futures, [(3 * number, True) for number in numbers])


def long_running(load: Load) -> int:
    numbers = some(load, 8)
    futures = [
        load.client.submit(run_long, number, load.rng.uniform(0, 1.5), pure=False)
        for number in numbers
    ]
    return check(load, futures, [3 * number for number in numbers])


def nested(load: Load) -> int:
    lists = [some(load, 10) for _ in range(load.rng.randint(1, 4))]
    futures = [load.client.submit(ask_others, numbers, pure=False) for numbers in lists]
    return check(load, futures, [3 * sum(numbers) for numbers in lists])


def cancelled(load: Load) -> int:
    numbers = some(load, 60)
    futures = load.client.map(load.rng.choice(KINDS), numbers, pure=False)
    time.sleep(load.rng.uniform(0, 0.2))
    kept = [load.rng.random() < 0.5 for _ in numbers]
    load.client.cancel([future for future, keep in zip(futures, kept, strict=True) if not keep])
    wanted = [future for future, keep in zip(futures, kept, strict=True) if keep]
    for future, keep in zip(futures, kept, strict=True):
        expect(keep or future.status == "cancelled", f"cancelled, but {future.status}")
    return check(load, wanted, [3 * n for n, keep in zip(numbers, kept, strict=True) if keep])


def abandoned(load: Load) -> int:
    """Drop the futures while the tasks wait and run."""
    load.client.map(load.rng.choice(KINDS), some(load, 60), [0.05], pure=False)
    return 0


def unwatched(load: Load) -> int:
    """Leave tasks alone; whether they have run is checked in the end."""
    from distributed import fire_and_forget

    for _ in range(load.rng.randint(1, 5)):
        path = fresh(load)
        path.with_suffix(".due").touch()
        fire_and_forget(load.client.submit(leave_a_mark, str(path), pure=False))
    return 0


def scattered(load: Load) -> int:
    """Add numbers that Dask cannot compute again, and loses if the last copy dies with a worker."""
    from distributed import CancelledError

    numbers = some(load, 500)
    data = load.client.scatter(numbers, workers=[load.rock], hash=False)
    futures = [load.client.submit(add, *data[k::5], pure=False) for k in range(5)]
    try:
        return check(load, futures, [sum(numbers[k::5]) for k in range(5)])
    except CancelledError:
        expect(any(each.status in ("lost", "cancelled") for each in data), "no data were lost")
        return 0


def actor(load: Load) -> int:
    future = load.client.submit(Counter, actor=True, workers=[load.rock], pure=False)
    (counter,) = results(load, [future])
    for number in range(1, 6):
        expect(counter.increment().result(timeout=LIMIT) == number, "an actor has miscounted")
    return 1


SCENARIOS: list[Callable[[Load], int]] = [
    plain,
    plain,
    mapped,
    mapped,
    annotated,
    chained,
    chained,
    arrays,
    retried,
    failing,
    restricted,
    preferring,
    with_resources,
    long_running,
    nested,
    cancelled,
    abandoned,
    unwatched,
    scattered,
    actor,
]


def some(load: Load, most: int) -> list[int]:
    return [load.rng.randrange(1000) for _ in range(load.rng.randint(1, most))]


def fresh(load: Load) -> Path:
    return load.folder / f"{load.rng.randrange(10**15)}"


def check(load: Load, futures: Sequence[Any], expected: Sequence[Any]) -> int:
    """Wait for futures and compare their results."""
    for future, found, right in zip(futures, results(load, futures), expected, strict=True):
        expect(found == right, f"{future.key}: {found!r} in place of {right!r}")
    return len(futures)


def results(load: Load, futures: Sequence[Any]) -> list[Any]:
    """Wait for futures and return their results; a result may get lost with its worker."""
    finish(load, futures)
    gather = partial(load.client.gather, list(futures), asynchronous=True)
    try:
        found: list[Any] = load.client.sync(gather, callback_timeout=LIMIT)
    except TimeoutError:
        raise late(load, futures, "could not be gathered") from None
    return found


def finish(load: Load, futures: Sequence[Any]) -> None:
    """Wait until futures have ended."""
    from distributed import wait

    try:
        wait(list(futures), timeout=LIMIT)
    except TimeoutError:
        raise late(load, futures, "did not end") from None


def late(load: Load, futures: Sequence[Any], what: str) -> HangError:
    """Return an error that says what Dask thinks of tasks."""
    keys = [future.key for future in futures if not future.done()]
    states = load.client.run_on_scheduler(describe, keys=keys[:5])
    ask = partial(load.client.run, describe_worker, keys[:5], on_error="return", asynchronous=True)
    try:
        states += load.client.sync(ask, callback_timeout=10).items()
    except TimeoutError:
        states.append("a worker does not answer")
    return HangError(f"{len(keys)} of {len(futures)} tasks {what}: {states}")


def describe(dask_scheduler: Any, keys: Sequence[str]) -> list[str]:
    """Return the states of tasks that do not end, of those that they wait for, and of others."""
    asked = [dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks]
    for task in asked:
        asked += [each for each in task.waiting_on or () if each not in asked]
    ended = ("memory", "erred", "forgotten", "released")
    others = [each for each in dask_scheduler.tasks.values() if each.state not in ended]
    asked += [each for each in others if each not in asked]
    plugin = dask_scheduler.plugins.get("gridwright")
    placer = plugin.placer if plugin is not None else None
    said = []
    for task in asked:
        number = placer.numbers.get(task.key) if placer is not None else None
        job = placer.book.jobs.get(number) if placer is not None else None
        ours = f", job {job}, ours {number in placer.tasks}" if placer and job else f", {number}"
        if task.state != "waiting" or not task.waiting_on:
            said.append(f"{task!r} on {task.processing_on}{ours}")
    return said[:20]


def describe_worker(keys: Sequence[str], dask_worker: Any) -> str:
    state = dask_worker.state
    tasks = [repr(state.tasks[key]) for key in keys if key in state.tasks]
    return f"{dask_worker.name} {dask_worker.status.name}: {tasks}, executing {state.executing}, \
ready {len(state.ready)}, long-running {state.long_running}"


def expect(right: bool, message: str) -> None:
    if not right:
        raise WrongError(message)
