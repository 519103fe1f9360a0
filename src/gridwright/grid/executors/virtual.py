"""An executor without machines, and an event loop in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from ..prediction import Prediction
from .protocol import Ended, Event, MachineDown, MachineUp, Reading, Returned, Started


class FakeExecutor:
    """Machines on which nothing runs: an attempt takes ``duration(job, machine, attempt)`` seconds.

    In a `VirtualLoop` a whole run is over in a moment. An attempt takes longer on a machine that is
    made slower. ``readings(machine, time)`` is the CPU availability of one that is not. ``before``
    and ``after`` are the seconds from sending a job to its start, and from its end to the report of
    it. ``most_ahead`` is how many jobs a machine takes beyond the one that it runs.
    """

    def __init__(
        self,
        machines: Sequence[str],
        duration: Callable[[int, int, int], float],
        before: float = 0.0,
        after: float = 0.0,
        *,
        readings: Callable[[int, float], float] | None = None,
        most_ahead: int = 0,
    ) -> None:
        self.machines, self.most_ahead = list(machines), most_ahead
        self.duration, self.before, self.after = duration, before, after
        self.readings = readings
        self._reading: asyncio.TimerHandle | None = None
        self.tell: Callable[[Event], None] = lambda event: None
        self._running: dict[int, tuple[Started, Ended, list[asyncio.TimerHandle]]] = {}
        self._shares: dict[int, float] = {}
        self._ahead: list[list[tuple[int, int]]] = [[] for _ in self.machines]
        self._away: set[int] = set()
        self._predictions: dict[int, tuple[Prediction, float]] = {}

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Report that all machines are up."""
        self.tell = tell
        for machine in range(len(self.machines)):
            tell(MachineUp(machine))
        if resolution > 0 and self.readings is not None:
            self._read(resolution)

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Report the start and the end of a job at their times."""
        if machine in self._away:
            return
        if self.most_ahead and machine in self._running:
            self._ahead[machine].append((job, attempt))
        else:
            self._begin(job, machine, attempt, asyncio.get_running_loop().time() + self.before)

    def _begin(self, job: int, machine: int, attempt: int, begin: float) -> None:
        loop = asyncio.get_running_loop()
        end = begin + self.duration(job, machine, attempt) / self._shares.get(machine, 1.0)
        started = Started(machine, job, attempt, begin)
        ended = Ended(machine, job, attempt, end, b"", "")
        timers = [loop.call_at(end + self.after, self._end, ended)]
        if begin > loop.time():
            timers.append(loop.call_at(begin, self.tell, started))
        else:
            self.tell(started)
        self._running[machine] = (started, ended, timers)

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Forget an attempt."""
        if (job, attempt) in self._ahead[machine]:
            self._ahead[machine].remove((job, attempt))
        elif machine in self._running and self._running[machine][0][1:3] == (job, attempt):
            self._stop(machine)
            self._go_on(machine, asyncio.get_running_loop().time())

    def call_back(self, job: int, machine: int, attempt: int) -> None:
        """Return a job that was sent ahead."""
        if (job, attempt) in self._ahead[machine]:
            self._ahead[machine].remove((job, attempt))
            word = Returned(machine, job, attempt)
            asyncio.get_running_loop().call_later(self.after, self.tell, word)

    async def ping(self, machine: int) -> float:
        """Answer at once."""
        if machine in self._away:
            raise TimeoutError
        return 0.0

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Drop the jobs of a machine, and all that it is sent until it is repaired."""
        self._ahead[machine].clear()
        self._stop(machine)
        self._away.add(machine)
        if not silent:
            self.tell(MachineDown(machine, "it was taken away"))

    def repair(self, machine: int) -> None:
        """Bring back a machine."""
        if machine in self._away:
            self._away.discard(machine)
            self.tell(MachineUp(machine))

    async def impose(self, machine: int, availability: float) -> None:
        """Let a machine's jobs take longer, also what is left of the running one."""
        faster = self._shares.get(machine, 1.0) / availability
        self._shares[machine] = availability
        if machine in self._running:
            loop, (started, ended, timers) = asyncio.get_running_loop(), self._running[machine]
            since = max(loop.time(), started.at)
            if ended.at > since:
                ended = ended._replace(at=since + (ended.at - since) * faster)
                timers[0].cancel()
                timers[0] = loop.call_at(ended.at + self.after, self._end, ended)
                self._running[machine] = (started, ended, timers)

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Change how a machine's availability is predicted; there is no history."""
        self._predictions[machine] = prediction, asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Stop all timers."""
        if self._reading is not None:
            self._reading.cancel()
        for machine in list(self._running):
            self._stop(machine)

    def _read(self, resolution: float) -> None:
        """Report the CPU availability of all machines, now and every ``resolution`` seconds."""
        loop = asyncio.get_running_loop()
        assert self.readings is not None
        for machine in range(len(self.machines)):
            share = self.readings(machine, loop.time()) * self._shares.get(machine, 1.0)
            way, since = self._predictions.get(machine, (Prediction(), 0.0))
            self.tell(Reading(machine, share, way.predict({}, share, loop.time() - since)))
        self._reading = loop.call_later(resolution, self._read, resolution)

    def _end(self, ended: Ended) -> None:
        self._running.pop(ended.machine, None)
        self.tell(ended)
        self._go_on(ended.machine, ended.at)

    def _go_on(self, machine: int, time: float) -> None:
        """Begin the next job that a machine has."""
        if self._ahead[machine]:
            job, attempt = self._ahead[machine].pop(0)
            self._begin(job, machine, attempt, time)

    def _stop(self, machine: int) -> None:
        for timer in self._running.pop(machine, (None, None, []))[2]:
            timer.cancel()


T = TypeVar("T")
GLANCE = 0.2
"""Seconds between checks for Ctrl-C."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time.

    Its clock starts at 0 and jumps to the next timer as soon as there is nothing else to do.
    """

    def __init__(self) -> None:
        self._virtual = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        """Return the virtual time."""
        return self._virtual


class _Jump(selectors.DefaultSelector):
    """A selector that moves the clock of its loop instead of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("all tasks wait for ever: no timer is set")
        self._loop._virtual += max(timeout, 0.0)
        return super().select(0)


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time.

    >>> async def hour():
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtually(hour())
    3600.0
    """
    stop = Stop()

    async def until_stopped() -> T:
        stop.cancels(asyncio.current_task())
        return await coroutine

    def run() -> T:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(until_stopped())

    return run_apart(run, stop)


class Stop:
    """Cancels a task when it is called, also from another thread or before there is a task."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self._cancel: Callable[[], object] = bool

    def cancels(self, task: asyncio.Task[Any] | None) -> None:
        """Set the task to cancel, in its loop; cancel it at once if `Stop` was called before."""
        assert task is not None
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self.wanted.is_set():
            task.cancel()

    def __call__(self) -> None:
        """Cancel the task, now or as soon as it is known."""
        self.wanted.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._cancel()


def run_apart(run: Callable[[], T], stop: Callable[[], object] = bool) -> T:
    """Call a function that runs an event loop: in another thread if a loop runs here (a notebook).

    ``stop`` is called when Ctrl-C is pressed meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(bool).result()  # so that the thread has started before Ctrl-C
        try:
            future = thread.submit(run)
            while not future.done():  # Ctrl-C just before a wait counts after it
                wait([future], GLANCE)
            return future.result()
        except KeyboardInterrupt:
            stop()
            raise
