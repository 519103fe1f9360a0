"""The executor without machines: jobs take as long as is said, on the clock of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..prediction import Prediction
from .seam import Ended, Event, MachineDown, MachineUp, Reading, Started

__all__ = ["FakeExecutor"]


class FakeExecutor:
    """Machines that only pass the time.

    In a `VirtualLoop` that takes none, and a whole run is over in a moment.

    Parameters
    ----------
    machines
        Their names.
    duration
        Seconds that an attempt takes: ``duration(job, machine, attempt)``.
    readings
        The CPU availability of a machine at a time, for whoever asks for readings.
    before, after
        Seconds from a job's being sent to its start, and from its end to that being told.
    """

    def __init__(
        self,
        machines: Sequence[str],
        duration: Callable[[int, int, int], float],
        *,
        readings: Callable[[int, float], float] | None = None,
        before: float = 0.0,
        after: float = 0.0,
    ) -> None:
        self.machines = list(machines)
        self.duration, self.before, self.after = duration, before, after
        self.readings = readings
        self._reading: asyncio.TimerHandle | None = None
        self.tell: Callable[[Event], None] = lambda event: None
        self._running: dict[int, tuple[tuple[int, int], list[asyncio.TimerHandle]]] = {}
        self._away: set[int] = set()
        self._predictions: dict[int, tuple[Prediction, float]] = {}

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Tell of every machine that it is up."""
        self.tell = tell
        for machine in range(len(self.machines)):
            tell(MachineUp(machine))
        if resolution > 0 and self.readings is not None:
            self._read(resolution)

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Pass the time that a job takes."""
        if machine in self._away:
            return
        loop = asyncio.get_running_loop()
        begin = loop.time() + self.before
        end = begin + self.duration(job, machine, attempt)
        started = Started(machine, job, attempt, begin)
        ended = Ended(machine, job, attempt, end, b"", "")
        timers = [loop.call_at(end + self.after, self._end, ended)]
        if self.before > 0:
            timers.append(loop.call_at(begin, self.tell, started))
        else:
            self.tell(started)
        self._running[machine] = ((job, attempt), timers)

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Forget an attempt."""
        if self._running.get(machine, ((-1, -1),))[0] == (job, attempt):
            self._stop(machine)

    async def ping(self, machine: int) -> float:
        """Answer at once."""
        if machine in self._away:
            raise TimeoutError
        return 0.0

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Forget what a machine is running, and what it is sent, until it is repaired."""
        self._stop(machine)
        self._away.add(machine)
        if not silent:
            self.tell(MachineDown(machine, "it was taken away"))

    def repair(self, machine: int) -> None:
        """Bring a machine back."""
        if machine in self._away:
            self._away.discard(machine)
            self.tell(MachineUp(machine))

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Predict from now on what is read of a machine; there is no history."""
        self._predictions[machine] = prediction, asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Forget everything."""
        if self._reading is not None:
            self._reading.cancel()
        for machine in list(self._running):
            self._stop(machine)

    def _read(self, resolution: float) -> None:
        """Tell of every machine's CPU availability, now and then again."""
        loop = asyncio.get_running_loop()
        assert self.readings is not None
        for machine in range(len(self.machines)):
            share = self.readings(machine, loop.time())
            way, since = self._predictions.get(machine, (Prediction(), 0.0))
            self.tell(Reading(machine, share, way.predict({}, share, loop.time() - since)))
        self._reading = loop.call_later(resolution, self._read, resolution)

    def _end(self, ended: Ended) -> None:
        self._running.pop(ended.machine, None)
        self.tell(ended)

    def _stop(self, machine: int) -> None:
        for timer in self._running.pop(machine, (None, []))[1]:
            timer.cancel()
