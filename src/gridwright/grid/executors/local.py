"""The local executor: each machine is a process of this computer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...model import InputError
from ..agent import Agent
from ..prediction import Prediction, predictions_of
from ..slots import Slots, check_slots, slot_names, slots_of
from .process import Pauses, Process, end_orphans, in_thread, measured_share
from .protocol import Ended, Event, MachineDown, MachineUp, Reading, Returned, Started

SILENCE = 2.0
"""Seconds in which a process must return a job that is called back, or have begun it."""


@dataclass
class _Machine:
    """The process of a machine, and its state."""

    number: int
    process: Process | None = None
    starting: asyncio.Task[None] | None = None
    """The task that last started a process."""
    calls: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """The jobs and attempts that it was sent, the running one first; None: it is to be stopped."""
    is_up: bool = False
    """Whether the last report to the grid said that it is up."""
    restarting: bool = False
    """Whether its process was killed to stop a job."""
    away: bool = False
    """Whether it was taken away, until it is repaired."""
    begun: tuple[int, int] | None = None
    """The last call that it has begun."""
    share: float = 1.0
    """The share of the time in which its jobs run."""
    pauses: Pauses = field(default_factory=Pauses)


class LocalExecutor:
    """Runs each slot of a machine as a process of this computer; one that dies is replaced."""

    most_ahead = 50
    """How many jobs a process takes beyond the one that it runs."""

    def __init__(
        self, machines: int | Sequence[str], *, slots: Slots = 1, prediction: Any = "weekly"
    ) -> None:
        names = [str(k + 1) for k in range(machines)] if isinstance(machines, int) else machines
        check_slots(slots, names)
        numbers = {name: slots_of(slots, name) for name in names}
        self.machines = [each for name in names for each in slot_names(name, numbers[name])]
        self.hosts = [name for name in names for _ in range(numbers[name])]
        self.closing = False
        self.tell: Callable[[Event], None] = lambda event: None
        self.predictions = predictions_of(prediction, len(self.machines))
        self._agent: Agent | None = None
        self._all = [_Machine(number) for number in range(len(self.machines))]
        self._closed = asyncio.Event()

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Start the processes."""
        self.tell = tell
        await in_thread(end_orphans)
        try:
            await asyncio.gather(*(self._start(machine, first=True) for machine in self._all))
        except OSError as error:
            raise InputError(f"cannot start a process on this computer: {error}") from None
        if resolution > 0:
            self._measure(asyncio.get_running_loop(), resolution)

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Send a call to a machine."""
        it = self._all[machine]
        if it.away:
            return  # it is away without the knowledge of the grid
        it.calls[job, attempt] = work
        if it.process is not None and not it.restarting:  # otherwise it starts when it is ready
            it.process.run(job, attempt, work)

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt by ending its process and every process that it has started.

        One that has not begun is called back.
        """
        it, call = self._all[machine], (job, attempt)
        if it.away or call not in it.calls:
            return
        if it.restarting or it.process is None:
            del it.calls[call]
        elif call == self._begun(it):
            self._stop(it, call)
        else:
            it.calls[call] = None
            it.process.call_back(job, attempt)

    def call_back(self, job: int, machine: int, attempt: int) -> None:
        """Ask for a job that was sent ahead."""
        it, call = self._all[machine], (job, attempt)
        if it.away or it.calls.get(call) is None:
            return
        if it.process is not None and not it.restarting:
            it.process.call_back(job, attempt)
            asyncio.get_running_loop().call_later(SILENCE, self._give_up, it, call)
        elif call != next(iter(it.calls)):
            del it.calls[call]
            self.tell(Returned(machine, job, attempt))

    def _begun(self, machine: _Machine) -> tuple[int, int] | None:
        """Return the call that a machine runs, or begins next."""
        if machine.begun in machine.calls:
            return machine.begun
        return next((call for call, work in machine.calls.items() if work is not None), None)

    def _give_up(self, machine: _Machine, call: tuple[int, int]) -> None:
        """Take a call back from a process that does not answer, unless it has begun it.

        A job may block all threads of its process. If it begins the call later, it is stopped.
        """
        if machine.calls.get(call) is not None and call != self._begun(machine):
            machine.calls[call] = None
            self.tell(Returned(machine.number, *call))

    def _stop(self, machine: _Machine, call: tuple[int, int]) -> None:
        """Stop a running job: start another process for the calls behind it."""
        del machine.calls[call]
        machine.restarting = True
        if machine.process is not None:
            machine.process.kill()

    async def ping(self, machine: int) -> float:
        """Return the seconds that a process takes to answer."""
        it = self._all[machine]
        if it.process is None or it.away:
            raise TimeoutError
        return await it.process.ping()

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Kill a process, and start no other in its place until the machine is repaired."""
        it = self._all[machine]
        if it.away:
            return
        it.away, it.is_up, it.restarting = True, False, False
        it.calls.clear()
        if it.process is not None:
            it.process.kill()
        if not silent:
            self.tell(MachineDown(machine, "it was taken away"))

    def repair(self, machine: int) -> None:
        """Start a process again."""
        it = self._all[machine]
        if it.away:
            it.away = False
            if it.process is None and (it.starting is None or it.starting.done()):
                self._start(it)  # otherwise one is starting

    def pid(self, machine: int) -> int:
        """Return the pid of the process of a machine; -1 while there is none."""
        process = self._all[machine].process
        return process.pid if process is not None else -1

    async def impose(self, machine: int, availability: float) -> None:
        """Let the jobs of a machine run for a share of the time."""
        it = self._all[machine]
        it.share = availability
        if it.process is not None and it.is_up:
            it.process.impose(availability)

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Change how a machine's availability is predicted."""
        self.predictions[machine] = prediction
        if self._agent is not None:
            self._agent.predict(machine, prediction)

    async def close(self) -> None:
        """Kill the processes."""
        self.closing = True
        self._closed.set()
        if self._agent is not None:
            await in_thread(self._agent.stop)
        for machine in self._all:
            if machine.process is not None:
                machine.process.kill()
        for machine in self._all:
            if machine.starting is not None:
                await asyncio.wait([machine.starting])
            if machine.process is not None:
                await machine.process.close()

    def _measure(self, loop: asyncio.AbstractEventLoop, resolution: float) -> None:
        """Start one agent for all machines, because they share this computer's processors.

        The processes of the grid are this one and all that descend from it.
        """

        def tell(measured: list[float], predicted: list[float]) -> None:
            for machine, found, expected in zip(self._all, measured, predicted, strict=True):
                if not machine.away:
                    self.tell(Reading(machine.number, found, expected))

        self._agent = Agent(
            lambda *reading: loop.call_soon_threadsafe(tell, *reading),
            resolution,
            own=lambda: [os.getpid()],
            prediction=self.predictions,
            machines=len(self._all),
            shares=lambda: [measured_share(each.process, each.share) for each in self._all],
        )
        self._agent.start()

    def _start(
        self, machine: _Machine, pause: float = 0.0, *, first: bool = False
    ) -> asyncio.Task[None]:
        machine.starting = asyncio.create_task(self._spawn(machine, pause, first=first))
        return machine.starting

    async def _spawn(self, machine: _Machine, pause: float, *, first: bool) -> None:
        """Start a process after a pause; if that fails, try again, or raise if it is the first."""
        hear, gone = partial(self._hear, machine), partial(self._gone, machine)
        name, process = self.machines[machine.number], None
        while process is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._closed.wait()
            if self.closing:
                return
            try:
                process = machine.process = await Process.start(name, hear, gone)
            except OSError:
                if first:
                    raise
                pause = machine.pauses.longest
        await process.ready
        if machine.process is not process or process.killed:
            return  # another is started in its place
        if machine.away or self.closing:  # meanwhile
            process.kill()
            return
        process.impose(machine.share)
        if not machine.is_up:
            machine.is_up = True
            self.tell(MachineUp(machine.number))
        machine.restarting = False
        calls = {call: work for call, work in machine.calls.items() if work is not None}
        machine.calls = {}
        for (job, attempt), work in calls.items():
            self.start(job, machine.number, attempt, work)

    def _hear(
        self,
        machine: _Machine,
        kind: type[Started] | type[Ended] | type[Returned],
        job: int,
        attempt: int,
        *rest: Any,
    ) -> None:
        """Pass on an event of a machine; stop a job that was to be called back and has begun."""
        call = (job, attempt)
        if machine.away or call not in machine.calls:
            return
        is_wanted = machine.calls[call] is not None
        machine.begun = call if kind is Started else machine.begun
        if kind is Started and not is_wanted:
            self._stop(machine, call)
        elif kind is not Started:
            del machine.calls[call]
            if kind is Ended:
                machine.pauses.reset()
        if is_wanted:
            self.tell(kind(machine.number, job, attempt, *rest))

    async def _gone(self, machine: _Machine, why: str, died: bool) -> None:
        """Replace a process that is gone."""
        if self.closing:
            return
        had_job = bool(machine.calls)
        machine.process = None
        if machine.is_up and not machine.restarting and not machine.away:
            machine.is_up = False
            machine.calls.clear()
            self.tell(MachineDown(machine.number, why, died and had_job))
        if not machine.away:
            self._start(machine, machine.pauses.next() if died else 0.0)
