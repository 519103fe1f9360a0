"""The agent: measures beside the work how much CPU others leave to the grid, and predicts it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from threading import Event, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from ..model import InputError
from .prediction import History, Prediction, predictions_of


class Measurement(NamedTuple):
    """The share of a computer's CPU that was there for the grid during some seconds."""

    end: float
    """Seconds since 1970."""
    seconds: float
    share: float


def measure(
    resolution: float, own: Callable[[], Collection[int]], stop: Event | None = None
) -> Iterator[Measurement]:
    """Measure this computer's availability every so many seconds, until told to stop."""
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
        due = max(due + resolution, time.monotonic() + resolution / 2)  # late: skip, never hurry


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
    """A thread that tells of a computer's CPU availability, as measured and as predicted.

    Parameters
    ----------
    tell
        Called in the agent's thread with the share measured, and the share predicted for each
        machine.
    resolution
        Seconds between readings.
    own
        Called in the agent's thread for the pids of the grid's processes on this computer. What
        descends from them is the grid's as well, but for what occupies the machine on purpose.
    prediction
        A mode's name, a table, or a ``Prediction``; or a list with one for each machine.
    machines
        How many machines of the grid are on this computer.
    history
        Where readings are kept; this computer's own file unless given.
    """

    def __init__(
        self,
        tell: Callable[[float, list[float]], object],
        resolution: float,
        own: Callable[[], Collection[int]],
        *,
        prediction: Any = "weekly",
        machines: int = 1,
        history: History | None = None,
    ) -> None:
        self.tell, self.resolution, self.own = tell, resolution, own
        self.predictions = predictions_of(prediction, machines)
        self._since = [time.monotonic()] * machines
        self.history = history or History()
        self.trouble = ""
        """Why readings are not kept, if they are not."""
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to measure."""
        if self._thread is None:
            self._since = [time.monotonic()] * len(self._since)
            measurements = measure(self.resolution, self.own, self._stop)
            self._thread = Thread(
                target=self._run, args=(measurements,), name="gridwright-agent", daemon=True
            )
            self._thread.start()

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Predict a machine's availability in another way from now on."""
        self.predictions[machine], self._since[machine] = prediction, time.monotonic()

    def stop(self) -> None:
        """Measure no more, and tell no more once this returns."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self, measurements: Iterator[Measurement]) -> None:
        for each in measurements:
            ways = list(zip(self.predictions, self._since, strict=True))
            past = self._keep(each, {way.intervals for way, _ in ways})
            now = time.monotonic()
            predicted = [
                way.predict(past.get(way.intervals, {}), each.share, now - since)
                for way, since in ways
            ]
            if not self._stop.is_set():
                self.tell(each.share, predicted)

    def _keep(
        self, measurement: Measurement, intervals: Collection[int]
    ) -> dict[int, dict[int, float]]:
        """Keep a measurement, and look up earlier weeks. A full disk must not stop the grid."""
        past: dict[int, dict[int, float]] = {}
        self.trouble = ""
        try:
            past = {each: self.history.past(measurement.end, each) for each in intervals}
            self.history.add(*measurement)
        except InputError as error:
            self.trouble = str(error)
        return past


LOAD = "gw-load"
"""The name of processes that occupy a machine on purpose: foreign, whoever started them."""

BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""What counts as taken. A processor that waits for a disk is free; one that was lent is not."""


class Process(NamedTuple):
    """A process, as it stood when a snapshot was taken."""

    parent: int
    name: str
    seconds: float
    """CPU time of its own, and of those of its children that have ended."""


class Snapshot(NamedTuple):
    """How much the processors and each process have worked so far."""

    time: float
    busy: float
    processes: Mapping[int, Process]


def snapshot() -> Snapshot:
    """Look at the processors and at every process."""
    psutil = _psutil()
    processes = {}
    for process in psutil.process_iter(["ppid", "name", "cpu_times"]):
        known, times = process.info, process.info["cpu_times"]
        if times is not None:  # else it has just ended, or is hidden from us
            seconds = times.user + times.system + times.children_user + times.children_system
            processes[process.pid] = Process(known["ppid"] or 0, known["name"] or "", seconds)
    spent = psutil.cpu_times()
    busy = sum(getattr(spent, kind, 0.0) for kind in BUSY)
    return Snapshot(time.monotonic(), busy, processes)


def availability(
    before: Snapshot, after: Snapshot, own: Collection[int], cores: int | None = None
) -> float:
    """Return the share of the processors that others left to the grid between two snapshots.

    Parameters
    ----------
    before, after
        Two snapshots.
    own
        The grid's processes. What descends from them is the grid's as well.
    cores
        How many processors there are; this computer's.

    Examples
    --------
    >>> before = Snapshot(0.0, 100.0, {7: Process(1, "grid", 5.0)})
    >>> after = Snapshot(1.0, 101.5, {7: Process(1, "grid", 6.0)})
    >>> availability(before, after, own=[7], cores=2)
    0.75
    """
    room = (cores or os.cpu_count() or 1) * (after.time - before.time)
    if not room > 0:
        return 1.0
    ours = _family(after.processes, own)
    used = sum(after.processes[pid].seconds for pid in ours) - sum(
        process.seconds
        for pid, process in before.processes.items()
        if pid in ours or _passed_on(pid, before.processes, after.processes, ours)
    )
    foreign = after.busy - before.busy - max(used, 0.0)
    return min(max(1.0 - foreign / room, 0.0), 1.0)


def _family(processes: Mapping[int, Process], roots: Collection[int]) -> set[int]:
    """Return processes and what descends from them, but for loads."""
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
    """Tell whether a process has ended, and its time is now in that of one of ours."""
    seen = set()
    while pid in before and pid not in after and pid not in seen:
        seen.add(pid)
        pid = before[pid].parent
    return bool(seen) and pid in ours


def _psutil() -> Any:
    try:
        import psutil
    except ImportError:
        raise InputError("measuring needs psutil: pip install 'gridwright[grid]'") from None
    return psutil
