"""Pause a run: no time passes for it until it is resumed.

No job arrives, none starts, and no machine fails. Running jobs continue, but their events are
delayed by the length of the pause, so that a job takes as long as it really did in the time of the
experiment. A pause changes no statistics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ..grid.executors import Ended, Event, Executor, MachineDown, Reading, Started
from ..grid.slots import hosts_of


@dataclass
class _Word:
    """An event of a machine that is passed on later."""

    event: Event
    heard: float
    late: float
    """Seconds of the delay."""
    timer: asyncio.TimerHandle | None = None


class PausableExecutor:
    """An executor that can be paused, around the executor that runs the jobs."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.machines = executor.machines  # the same list: machines may join it
        self.hosts = hosts_of(executor)
        self.ping, self.repair, self.predict = executor.ping, executor.repair, executor.predict
        self.impose = executor.impose
        self.since: float | None = None
        """When it was paused, on the clock of the loop; None if it is not."""
        self._going = asyncio.Event()
        self._going.set()
        self._tell: Callable[[Event], None] = lambda event: None
        self._late: dict[int, float] = {}
        """The delay in seconds of the events of each machine that runs a job."""
        self._words: list[_Word] = []
        self._starts: list[tuple[int, int, int, bytes]] = []

    def pause(self) -> float | None:
        """Pause; return the time, or None if it is paused already."""
        if self.since is not None:
            return None
        self._going.clear()
        for word in self._words:
            if word.timer is not None:
                word.timer.cancel()
        self.since = asyncio.get_running_loop().time()
        return self.since

    def resume(self, shift: Callable[[float], None]) -> bool:
        """Continue, after calling ``shift`` with the seconds of the pause."""
        if self.since is None:
            return False
        length = asyncio.get_running_loop().time() - self.since
        self.since = None
        shift(length)
        self._late = {machine: late + length for machine, late in self._late.items()}
        for word in self._words:
            word.late += length
            self._schedule(word)
        starts, self._starts = self._starts, []
        for start in starts:
            self.start(*start)
        self._going.set()
        return True

    async def going(self) -> None:
        """Wait while it is paused."""
        await self._going.wait()

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Start the machines."""
        self._tell = tell
        await self.executor.open(self._hear, resolution)

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Run a call on a machine, after the pause if there is one."""
        if self.since is not None:
            self._starts.append((job, machine, attempt, work))
        else:
            self._late[machine] = 0.0
            self.executor.start(job, machine, attempt, work)

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt, or do not start it."""
        held = [start for start in self._starts if start[:3] == (job, machine, attempt)]
        if held:
            self._starts.remove(held[0])
            return
        self._forget(machine, job)
        self.executor.cancel(job, machine, attempt)

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Take a machine away, and drop the delayed events of its job."""
        self._forget(machine)
        self.executor.fail(machine, silent=silent)

    async def close(self) -> None:
        """Stop everything."""
        for word in self._words:
            if word.timer is not None:
                word.timer.cancel()
        await self.executor.close()

    def _hear(self, event: Event) -> None:
        """Pass on an event of a machine, delayed if there was a pause."""
        if isinstance(event, Reading):
            if self.since is None:
                self._tell(event)
            return
        late = self._late.get(event.machine, 0.0)
        if self.since is None and not late:
            self._say_held(event.machine)
            self._pass_on(event)
            return
        word = _Word(event, asyncio.get_running_loop().time(), late)
        self._words.append(word)
        if self.since is None:
            self._schedule(word)

    def _schedule(self, word: _Word) -> None:
        loop, machine = asyncio.get_running_loop(), word.event.machine
        word.timer = loop.call_at(word.heard + word.late, self._say_held, machine, word)

    def _say_held(self, machine: int, last: _Word | None = None) -> None:
        """Pass on the delayed events of a machine in order, up to one of them or all."""
        for word in [word for word in self._words if word.event.machine == machine]:
            self._drop(word)
            event = word.event
            if isinstance(event, Started | Ended):
                event = event._replace(at=event.at + word.late)
            self._pass_on(event)
            if word is last:
                return

    def _pass_on(self, event: Event) -> None:
        if isinstance(event, Ended | MachineDown):
            self._late.pop(event.machine, None)
        self._tell(event)

    def _forget(self, machine: int, job: int | None = None) -> None:
        """Drop the delayed events of a machine about a job, or about all jobs.

        Events about the machine itself are kept, because it does not repeat them.
        """
        self._late.pop(machine, None)
        for word in [word for word in self._words if word.event.machine == machine]:
            event = word.event
            if isinstance(event, Started | Ended) and job in (None, event.job):
                self._drop(word)

    def _drop(self, word: _Word) -> None:
        self._words.remove(word)
        if word.timer is not None:
            word.timer.cancel()
