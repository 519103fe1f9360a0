"""Real Dask workers, and ways to look at what a grid does on them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import cloudpickle
import psutil
import pytest

from gridwright import InputError
from gridwright.grid import Grid, Journal
from gridwright.grid.executors import (
    Ended,
    Event,
    Executor,
)

WAIT = 60


"""Seconds after which something that should have happened long ago has not."""


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this
COMMAND = [sys.executable, "-m", "gridwright", "dask", "workers"]


def until(true: Callable[[], Any]) -> Any:
    """Wait for something to become true; it has a minute for what takes a moment."""
    end = time.monotonic() + WAIT
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    def is_alive(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
        return False

    return list(filter(is_alive, processes))


class Cluster:
    """Workers that were started by the command, with some words before it."""

    def __init__(self, *arguments: str, before: Sequence[str] = ()) -> None:
        self.home = TemporaryDirectory()
        self.process = subprocess.Popen(
            [*before, *COMMAND, "--json", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GRIDWRIGHT_HOME": self.home.name},
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            self.process.stdout.close()
            self.home.cleanup()
            raise InputError(f"it ended with status {self.process.wait()}")
        self.address: str = json.loads(said)["address"]
        self.port = self.address.rpartition(":")[2]

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """End it; none of its processes stays behind."""
        everybody = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        status = self.process.wait(WAIT)
        assert self.process.stdout is not None
        self.process.stdout.close()
        until(lambda: not alive(everybody))
        self.home.cleanup()
        return status


@contextmanager
def running(*arguments: str, before: Sequence[str] = ()) -> Iterator[Cluster]:
    cluster = Cluster(*arguments, before=before)
    try:
        yield cluster
    finally:
        if cluster.process.poll() is None:
            assert cluster.end() == 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running("--local", "2", "--port", "0") as found:
        yield found


@pytest.fixture
def no_process_stays_behind() -> Iterator[None]:
    def workers() -> list[psutil.Process]:
        found = []
        for each in psutil.Process().children(recursive=True):
            try:
                if any(word.endswith("grid/worker.py") for word in each.cmdline()):
                    found.append(each)
            except psutil.Error:
                continue
        return alive(found)

    yield
    until(lambda: not workers())


def journalled(path: Path) -> dict[int, Any]:
    journal = Journal(path)
    try:
        return {kept.job.number: kept for kept in journal.jobs()}
    finally:
        journal.close()


def events(path: Path) -> list[Any]:
    journal = Journal(path)
    try:
        return list(journal.events())
    finally:
        journal.close()


def where(grid: Grid, number: int) -> str:
    """Wait until a job is running; return its machine."""
    return until(
        lambda: next(
            (n for n, m in grid.status()["machines"].items() if m["running"] == number), ""
        )
    )


def all_up(grid: Grid) -> bool:
    return all(machine["up"] for machine in grid.status()["machines"].values())


class Driven:
    """An executor without a grid: what it tells is kept."""

    def __init__(self, executor: Executor, resolution: float = 0.0) -> None:
        self.executor = executor
        self.told: list[Event] = []
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever)
        self.thread.start()
        self.wait(executor.open(self.told.append, resolution))

    def wait(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(WAIT)

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        async def run() -> Any:
            return function(*arguments, **options)

        return self.wait(run())

    def start(self, job: int, machine: int, function: Any, *arguments: Any) -> None:
        work = cloudpickle.dumps((function, arguments, {}))
        self.call(self.executor.start, job, machine, 1, work)

    def result(self, job: int) -> Any:
        (ended,) = until(lambda: [e for e in self.told if isinstance(e, Ended) and e.job == job])
        assert not ended.error
        return cloudpickle.loads(ended.result)

    def __enter__(self) -> "Driven":
        return self

    def __exit__(self, *wrong: object) -> None:
        self.wait(self.executor.close())
        left = self.call(
            lambda: [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        )
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        assert not left


def dask_worker() -> int:
    """Return the Dask worker of a job: the parent of the guardian of the job's process."""
    return psutil.Process(os.getppid()).ppid()


def first_time_for_ever(mark: Path) -> str:
    """Write down which process this is, and stay; return the second time."""
    if not mark.exists():
        mark.with_suffix(".new").write_text(f"{os.getpid()} {dask_worker()}")
        mark.with_suffix(".new").rename(mark)
        time.sleep(1000)
    return "done"
