"""The agent: measures the share of the CPU that is left for the grid, and predicts it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import fsum
from threading import Event, Thread
from typing import Any, NamedTuple, Self

from ..model import InputError
from .prediction import History, Prediction, predictions_of


class Measurement(NamedTuple):
    """The share of a computer's CPU that the grid could use during some seconds."""

    end: float
    """Seconds since 1970."""
    seconds: float
    share: float


def measure(
    resolution: float, own: Callable[[], Collection[int]], stop: Event | None = None
) -> Iterator[Measurement]:
    """Measure this computer's availability every ``resolution`` seconds, until ``stop`` is set."""
    if not 0 < resolution < float("inf"):
        raise InputError(f"resolution is {resolution:g}; expected seconds > 0")
    return _measure(resolution, own, stop or Event(), snapshot())


def _measure(
    resolution: float, own: Callable[[], Collection[int]], stop: Event, before: Snapshot
) -> Iterator[Measurement]:
    due = before.time + resolution
    while not stop.wait(max(due - time.monotonic(), 0.0)):
        after = snapshot()
        seconds = after.time - before.time
        yield Measurement(time.time(), seconds, availability(before, after, own()))
        before = after
        due = max(due + resolution, time.monotonic() + resolution / 2)  # if late, skip some


def forecast(
    prediction: Prediction, history: History, measured: float, times: Collection[float]
) -> list[float]:
    """Return the shares to expect at some times, the first of which is now."""
    now = min(times, default=0.0)
    return [
        prediction.predict(history.past(time, prediction.intervals), measured, time - now)
        for time in times
    ]


class Agent:
    """A thread that reports a computer's CPU availability, as measured and as predicted.

    In this thread, ``tell`` is called with the measured and the predicted share of each machine,
    and ``own`` for the pids of the grid's processes. Their descendants are the grid's too, except
    for processes of a load. ``shares`` returns which share of the time each machine ran, if some
    were made slower. ``history``, by default this computer's file, has the computer's own share.
    """

    def __init__(
        self,
        tell: Callable[[list[float], list[float]], object],
        resolution: float,
        own: Callable[[], Collection[int]],
        *,
        prediction: Any = "weekly",
        machines: int = 1,
        shares: Callable[[], Sequence[float]] | None = None,
        history: History | None = None,
    ) -> None:
        self.tell, self.resolution, self.own = tell, resolution, own
        self.predictions = predictions_of(prediction, machines)
        self._since = [time.monotonic()] * machines
        self.shares = shares or (lambda: [1.0] * machines)
        self.history = history or History()
        self.trouble = ""
        """Why readings are not stored, or an empty text."""
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start to measure."""
        if self._thread is None:
            self._since = [time.monotonic()] * len(self._since)
            measurements = measure(self.resolution, self.own, self._stop)
            self._thread = Thread(
                target=self._run, args=(measurements,), name="gridwright-agent", daemon=True
            )
            self._thread.start()

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Change how a machine's availability is predicted."""
        self.predictions[machine], self._since[machine] = prediction, time.monotonic()

    def stop(self) -> None:
        """Stop; after this returns, ``tell`` is not called again."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, measurements: Iterator[Measurement]) -> None:
        for each in measurements:
            ways = list(zip(self.predictions, self._since, strict=True))
            past = self._keep(each, {way.intervals for way, _ in ways})
            now = time.monotonic()
            shares = self.shares()
            measured = [each.share * share for share in shares]
            predicted = [
                way.predict(_times(share, past.get(way.intervals, {})), found, now - since)
                for (way, since), share, found in zip(ways, shares, measured, strict=True)
            ]
            if not self._stop.is_set():
                self.tell(measured, predicted)

    def _keep(
        self, measurement: Measurement, intervals: Collection[int]
    ) -> dict[int, dict[int, float]]:
        """Store a measurement, and read earlier weeks; an error here must not stop the grid."""
        past: dict[int, dict[int, float]] = {}
        self.trouble = ""
        try:
            past = {each: self.history.past(measurement.end, each) for each in intervals}
            self.history.add(*measurement)
        except InputError as error:
            self.trouble = str(error)
        return past


def _times(share: float, past: Mapping[int, float]) -> dict[int, float]:
    """Return what a machine would have had in earlier weeks with a share of its computer."""
    return {week: share * each for week, each in past.items()}


LOAD = "gw-load"
"""The name of the processes of a load, which count as foreign."""

BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""Kinds of CPU time that count as used; waiting for a disk does not."""


class Process(NamedTuple):
    """A process in a snapshot."""

    parent: int
    name: str
    seconds: float
    """CPU time of the process, and of its children that have ended."""


class Snapshot(NamedTuple):
    """The CPU time that the processors and each process have used so far."""

    time: float
    busy: float
    processes: Mapping[int, Process]


def snapshot() -> Snapshot:
    """Return the CPU times now."""
    try:
        import psutil
    except ImportError:
        raise InputError("measuring needs psutil: pip install 'gridwright[grid]'") from None
    processes = {}
    for process in psutil.process_iter(["ppid", "name", "cpu_times"]):
        known, times = process.info, process.info["cpu_times"]
        if times is not None:  # otherwise it has just ended, or is hidden
            seconds = times.user + times.system + times.children_user + times.children_system
            processes[process.pid] = Process(known["ppid"] or 0, known["name"] or "", seconds)
    spent = psutil.cpu_times()
    busy = sum(getattr(spent, kind, 0.0) for kind in BUSY)
    return Snapshot(time.monotonic(), busy, processes)


def availability(
    before: Snapshot, after: Snapshot, own: Collection[int], cores: int | None = None
) -> float:
    """Return the share of the processors that others left to the grid between two snapshots.

    The processes ``own`` and their descendants are the grid's.

    >>> before = Snapshot(0.0, 100.0, {7: Process(1, "grid", 5.0)})
    >>> after = Snapshot(1.0, 101.5, {7: Process(1, "grid", 6.0)})
    >>> availability(before, after, own=[7], cores=2)
    0.75
    """
    room = (cores or os.cpu_count() or 1) * (after.time - before.time)
    if not room > 0:
        return 1.0
    ours = _family(after.processes, own)
    used = fsum(after.processes[pid].seconds for pid in ours) - fsum(
        process.seconds
        for pid, process in before.processes.items()
        if pid in ours or _passed_on(pid, before.processes, after.processes, ours)
    )
    foreign = after.busy - before.busy - max(used, 0.0)
    return min(max(1.0 - foreign / room, 0.0), 1.0)


def _family(processes: Mapping[int, Process], roots: Collection[int]) -> set[int]:
    """Return processes and their descendants, without loads."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        if process.name != LOAD:
            children.setdefault(process.parent, []).append(pid)
    family: set[int] = set()
    following = [pid for pid in roots if pid in processes]
    while following:
        pid = following.pop()
        if pid not in family:
            family.add(pid)
            following += children.get(pid, ())
    return family


def _passed_on(
    pid: int, before: Mapping[int, Process], after: Mapping[int, Process], ours: set[int]
) -> bool:
    """Tell whether a process has ended, and its CPU time now counts for one of ours."""
    seen = set()
    while pid in before and pid not in after and pid not in seen:
        seen.add(pid)
        pid = before[pid].parent
    return bool(seen) and pid in ours
