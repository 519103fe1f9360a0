"""The executor of a Dask cluster: machines are the workers of its scheduler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from ...model import InputError
from ..prediction import Prediction
from ..slots import Slots, check_slots, slot_names, slots_of
from .connection import ANSWER, LOOK, Connection, Workers, choose, find_workers, security_of
from .dask_machines import Attempt, Call, Machine, Task, Worker
from .protocol import Ended, Event, MachineDown, MachineUp, Reading, Returned, Started

ROUNDS = 3
"""Messages to a new worker that measure its clock."""
GREETING = 20.0
"""Seconds for the first of them, because the worker has to import modules."""
TOGETHER = 1 << 20
"""The most bytes of calls that travel together."""
LARGE = 120.0
"""Seconds in which a large result must come."""
WORD = 10.0
"""Seconds between later ones: clocks drift, and a worker ends the processes of a silent grid."""


class DaskExecutor:
    """Machines that are workers of a Dask cluster, one job at a time on each of their slots.

    Jobs run in a process beside the worker's own, so that they can be stopped and do not block the
    worker. When a worker leaves, its machines go down; when one with its name comes, they are up
    again. The start of a job is reported after 50 ms, or with its end if that is earlier.

    Parameters
    ----------
    address
        Of the scheduler: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
    machines
        Names or addresses of the workers to use, or how many. By default all, also those that join
        later.
    security
        TLS options: a ``distributed.Security``, or a dict with ``tls_ca_file``,
        ``tls_client_cert`` and ``tls_client_key``.
    slots
        Jobs that run at the same time on each worker, or a dict of workers and their numbers.
        Workers that it does not name, also those that join later, have 1.
    prediction
        How CPU availability is predicted if it is measured: for all machines, or a list with one
        for each.
    """

    lacks_modules = True
    """Its machines cannot import modules that lie beside the user's script."""

    most_ahead = 50
    """How many jobs a slot takes beyond the one that it runs."""

    def __init__(
        self,
        address: str,
        machines: int | Sequence[str] | None = None,
        *,
        security: Any = None,
        slots: Slots = 1,
        prediction: Any = "weekly",
    ) -> None:
        self.address, self.slots = address, slots
        ways = prediction if isinstance(prediction, list | tuple) else [prediction]
        self._ways = [Prediction.of(each) for each in ways]
        self._resolution = 0.0
        self.machines: list[str] = []
        self.hosts: list[str] = []
        self.tell: Callable[[Event], None] = lambda event: None
        self._security = security_of(address, security)
        self._grows = machines is None
        self._topic = f"gridwright-{uuid4().hex}"
        self._all: list[Machine] = []
        self._called: dict[str, list[Machine]] = {}
        """Machines by the name or address of their worker."""
        self._workers: dict[str, Worker] = {}
        self._greeting: dict[str, asyncio.Task[None]] = {}
        self._missing: set[str] = set()
        """Workers that were missing at the last check."""
        self._trouble = ""
        self._connection: Connection | None = None
        at_least = machines if isinstance(machines, int) else 1
        names = choose(address, find_workers(address, self._security, at_least), machines)
        check_slots(slots, names)
        for name in names:
            self._add(name)

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Connect, and start the processes of all machines."""
        self.tell, self._resolution = tell, resolution
        self._connection = Connection(
            self.address, self._security, self._topic, self._hear, self._look, self._lost
        )
        await self._connection.open()
        await asyncio.gather(*self._greeting.values())
        if not self._workers:
            raise InputError(
                f"no worker at {self.address} runs jobs: {self._trouble}; is the same version of "
                "gridwright installed there?"
            )
        self._connection.spawn(self._keep_in_touch())

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Submit a call as a task of one worker."""
        it = self._all[machine]
        if it.away or it.worker is None or self._connection is None:
            return  # the grid learns otherwise that the machine is gone
        it.attempts[job, attempt] = Attempt(time.monotonic())
        if not it.outbox:
            asyncio.get_running_loop().call_soon(self._submit, it)
        it.outbox.append((job, attempt, work))

    def _submit(self, machine: Machine) -> None:
        """Submit the calls of this moment for a machine, the small ones as one task."""
        calls, machine.outbox = machine.outbox, []
        bundle: list[Call] = []
        for call in calls:
            if bundle and sum(len(each[2]) for each in bundle) + len(call[2]) > TOGETHER:
                self._submit_bundle(machine, bundle)
                bundle = []
            bundle.append(call)
        self._submit_bundle(machine, bundle)

    def _submit_bundle(self, machine: Machine, calls: list[Call]) -> None:
        from .worker_plugin import run

        calls = [call for call in calls if call[:2] in machine.attempts]  # not cancelled meanwhile
        if not calls or machine.worker is None or self._connection is None:
            return
        key, where = f"{self._topic}-{calls[0][0]}-{calls[0][1]}", machine.worker.address
        arguments = (self._topic, key, machine.slot, calls)
        task = Task(self._connection.submit(key, where, run, *arguments), len(calls))
        for call in calls:
            machine.attempts[call[:2]].task = task

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Release the task of an attempt, or stop it alone; its worker then stops it."""
        it = self._all[machine]
        found = it.attempts.pop((job, attempt), None)
        if found is not None and not found.leave() and it.worker is not None:
            self._stop(it.worker.address, (job, attempt))

    def call_back(self, job: int, machine: int, attempt: int) -> None:
        """Ask the worker for a job that was sent ahead, until it has answered."""
        from .worker_plugin import call_back

        it, call = self._all[machine], (job, attempt)
        worker, found = it.worker, it.attempts.get(call)

        async def insist(connection: Connection) -> None:
            while worker is not None and it.worker is worker and it.attempts.get(call) is found:
                with suppress(Exception):
                    returns = await connection.ask(worker.address, call_back, self._topic, call)
                    if returns and found is not None and it.attempts.pop(call, None) is found:
                        found.leave()
                        self.tell(Returned(machine, *call))
                    return
                await asyncio.sleep(LOOK)

        if found is not None and self._connection is not None:
            self._connection.spawn(insist(self._connection))

    async def ping(self, machine: int) -> float:
        """Return the seconds that a machine's process takes to answer through the scheduler."""
        from .worker_plugin import ping

        it, began = self._all[machine], time.monotonic()
        if it.away or it.worker is None or self._connection is None:
            raise TimeoutError
        with suppress(OSError, KeyError):
            if await self._connection.ask(it.worker.address, ping, self._topic, it.slot):
                return time.monotonic() - began
        raise TimeoutError

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Kill a machine's process; start no other until the machine is repaired."""
        it = self._all[machine]
        if it.away or self._connection is None:
            return
        it.away = True
        it.absences += 1
        it.release()
        if it.worker is not None:
            self._connection.spawn(self._speak(it.worker))
            if not silent:
                self.tell(MachineDown(machine, "it was taken away"))

    def repair(self, machine: int) -> None:
        """Start a machine's process again."""
        it = self._all[machine]
        if it.away and self._connection is not None:
            it.away = False
            if it.worker is not None:
                self._connection.spawn(self._bring_back(it, it.worker, it.absences))

    async def impose(self, machine: int, availability: float) -> None:
        """Let the jobs of a machine run for a share of the time; return when its worker knows."""
        it = self._all[machine]
        it.share = availability
        if it.worker is not None:
            await self._speak(it.worker)  # if that fails, it hears of it within ten seconds

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Change how a machine's availability is predicted."""
        it = self._all[machine]
        it.prediction = prediction
        if it.worker is not None and self._connection is not None:
            self._connection.spawn(self._speak(it.worker))

    async def close(self) -> None:
        """Stop the jobs, end the processes, and disconnect."""
        for machine in self._all:
            machine.release()
        if self._connection is None:
            return
        if (client := self._connection.client) is not None:
            from .worker_plugin import farewell, forget

            with suppress(Exception):  # a worker that misses this notices the silence
                async with asyncio.timeout(ANSWER):
                    options = {"workers": list(self._workers), "on_error": "ignore"}
                    await client.run(farewell, self._topic, **options)
                    await client.run_on_scheduler(forget, self._topic)
        await self._connection.close()

    # workers come and go

    def _add(self, name: str) -> list[Machine]:
        """Add the machines of a worker."""
        first, slots = len(self._all), slots_of(self.slots, name)
        # the last prediction holds for machines that join
        found = self._called[name] = [
            Machine(first + k, k, self._ways[min(first + k, len(self._ways) - 1)])
            for k in range(slots)
        ]
        self._all += found
        self.machines += slot_names(name, slots)
        self.hosts += [name] * slots
        return found

    def _look(self, there: Workers) -> None:
        """Greet new workers, give up those that are gone, and report tasks that failed."""
        missing = self._workers.keys() - there.keys()
        for address in missing & self._missing:  # usually the scheduler has reported it
            self._lost(address)
        self._missing = missing
        for address, name in there.items():
            known = name in self._called or address in self._called
            if address in self._workers or address in self._greeting or self._connection is None:
                continue
            if known or self._grows:
                self._greeting[address] = self._connection.spawn(self._greet(address, name))
        for machine in self._all:
            for task in {attempt.task for attempt in machine.attempts.values()}:
                if task is None or task.failed or self._connection is None:
                    continue
                if task.future.status == "error":
                    task.failed = True
                    self._connection.spawn(self._blame(machine, task))

    def _lost(self, address: str | None, died: bool = False, why: str = "") -> None:
        """Give up a worker, or all (None)."""
        if address is None:
            for each in list(self._workers):
                self._lost(each, why="the scheduler is gone")
        elif (worker := self._workers.pop(address, None)) is not None:
            died = died and not worker.leaving
            why = why or ("its worker died" if died else "its worker is gone")
            for machine in worker.machines:
                machine.worker, had_job = None, bool(machine.attempts)
                machine.release()
                if not machine.away:
                    self.tell(MachineDown(machine.number, why, died and had_job))

    async def _greet(self, address: str, name: str) -> None:
        """Start a worker's machines; they are up when it has answered."""
        called = address if address in self._called else name
        slots = slots_of(self.slots, called)
        worker = Worker(address, self._called.get(called, []), slots)
        try:
            if any(machine.worker for machine in worker.machines):
                return  # an earlier worker with this name counts as there
            for _ in range(ROUNDS):
                if not await self._speak(worker):
                    return
        finally:
            del self._greeting[address]
        worker.machines = worker.machines or self._add(name)
        self._workers[address] = worker
        for machine in worker.machines:
            machine.worker = worker
            if not machine.away:
                self.tell(MachineUp(machine.number))

    async def _speak(self, worker: Worker) -> bool:
        """Tell a worker which machines are away, and measure its clock; False if that fails."""
        from .worker_plugin import clock, hello

        assert self._connection is not None
        try:
            async with worker.turn:
                away = [each.away for each in worker.machines] or [False] * worker.slots
                shares = [each.share for each in worker.machines] or [1.0] * worker.slots
                began = time.monotonic()
                ways = [each.prediction for each in worker.machines]
                ways = ways or [self._ways[-1]] * worker.slots
                words = (self._topic, away, shares, (self._resolution, ways))
                patience = ANSWER if worker.identity else GREETING
                said = await self._connection.ask(worker.address, hello, *words, patience=patience)
                now = time.monotonic()
        except Exception as error:  # another computer may fail in any way
            self._trouble = f"{type(error).__name__}: {error}"
            return False
        theirs, which, identity = said
        worker.set_clock(began, theirs, now, same=which == clock())
        worker.identity = worker.identity or identity
        if worker.identity != identity:
            self._lost(worker.address, why="its processes were ended")
        return bool(worker.identity == identity)

    async def _keep_in_touch(self) -> None:
        while True:
            await asyncio.sleep(WORD)
            workers = list(self._workers.values())
            for worker in workers:
                worker.delay *= 1.2  # the measured offset becomes less certain
            # together, so that a frozen worker delays no other
            await asyncio.gather(*map(self._speak, workers))

    async def _bring_back(self, machine: Machine, worker: Worker, which: int) -> None:
        """Report a machine that was repaired, unless it was taken away again."""
        while machine.worker is worker and machine.absences == which:
            if not await self._speak(worker):
                await asyncio.sleep(LOOK)
            elif machine.worker is worker and machine.absences == which:
                self.tell(MachineUp(machine.number))
                return

    # messages of workers

    def _hear(self, said: list[Any]) -> None:
        address, words = said
        for word in words:
            if (worker := self._workers.get(address)) is not None:
                self._hear_word(worker, *word)

    def _hear_word(self, worker: Worker, kind: str, slot: int, *rest: Any) -> None:
        worker.leaving = worker.leaving or kind == "leaving"
        machine = worker.machines[slot]
        if machine.away:
            return
        match kind:
            case "started":
                job, attempt, at = rest
                if self._started(machine, (job, attempt), at + worker.offset) is None:
                    self._stop(worker.address, (job, attempt))
            case "ended":
                job, attempt, started, ended, result, is_kept = rest
                found = self._started(machine, (job, attempt), started + worker.offset)
                if found is None or found.started is None:
                    if is_kept:
                        self._stop(worker.address, (job, attempt))
                    return
                at = min(max(ended + worker.offset, found.started), time.monotonic())
                if result is None:
                    self._fetch(machine, (job, attempt), found, at, is_kept=is_kept)
                else:
                    self._end(machine, (job, attempt), found, at, *result)
            case "down":
                had_job = bool(machine.attempts)
                if rest[1] is not None:  # the job that its process was running
                    self._started(machine, tuple(rest[1]), time.monotonic())
                machine.release()
                self.tell(MachineDown(machine.number, rest[0], died=had_job))
            case "up":
                self.tell(MachineUp(machine.number))
            case "reading":
                self.tell(Reading(machine.number, *rest))
            case "forgot":
                self._lost(worker.address, why="its processes were ended")

    def _stop(self, address: str, job: tuple[int, int]) -> None:
        """Stop a job: the scheduler ignores a release that comes before its task."""
        from .worker_plugin import stop

        async def insist(connection: Connection) -> None:
            while (worker := self._workers.get(address)) is not None and not worker.leaving:
                with suppress(Exception):
                    await connection.ask(address, stop, self._topic, job)
                    return
                await asyncio.sleep(LOOK)

        if self._connection is not None:
            self._connection.spawn(insist(self._connection))

    def _started(self, machine: Machine, number: tuple[int, int], at: float) -> Attempt | None:
        """Report the start of an attempt once, and not before it was sent."""
        found = machine.attempts.get(number)
        if found is not None and found.started is None:
            found.started = min(max(at, found.sent), time.monotonic())
            self.tell(Started(machine.number, *number, found.started))
        return found

    async def _blame(self, machine: Machine, task: Task) -> None:
        """Report a task that failed: its jobs run in turn, so only one of them is at fault.

        It is the one that has started, or else the next one. The others wait again.
        """
        wrong = await task.future.exception()
        await asyncio.sleep(2 * LOOK)  # if its worker is gone, or jobs have ended, hear that first
        left = {
            number: attempt
            for number, attempt in machine.attempts.items()
            if attempt.task is task and not attempt.fetching
        }
        begun = [number for number, attempt in left.items() if attempt.started is not None]
        error = f"its worker failed: {type(wrong).__name__}: {wrong}"
        for number in begun or list(left)[:1]:
            self._end(machine, number, left.pop(number), time.monotonic(), b"", error)
        for number, attempt in left.items():
            del machine.attempts[number]
            attempt.leave()
            self.tell(Returned(machine.number, *number))

    def _end(self, machine: Machine, number: tuple[int, int], attempt: Attempt, *rest: Any) -> None:
        """Report the end of an attempt: its time, result and error."""
        if machine.attempts.get(number) is attempt:
            del machine.attempts[number]
            attempt.leave()
            self.tell(Ended(machine.number, *number, *rest))

    def _fetch(
        self,
        machine: Machine,
        number: tuple[int, int],
        attempt: Attempt,
        at: float,
        *,
        is_kept: bool = False,
    ) -> None:
        """Get the result of an attempt, or its error: from its task, or as the worker keeps it."""

        async def fetch() -> None:
            try:
                assert attempt.task is not None
                result, error = await attempt.task.future
            except Exception as wrong:
                await asyncio.sleep(2 * LOOK)  # if its worker is gone, report that first
                result, error = b"", f"its worker failed: {type(wrong).__name__}: {wrong}"
            self._end(machine, number, attempt, at, result, error)

        async def collect_kept(connection: Connection) -> None:
            from .worker_plugin import collect

            worker = machine.worker
            while worker is not None and machine.worker is worker:
                with suppress(Exception):
                    about = (worker.address, collect, self._topic, number)
                    found = await connection.ask(*about, patience=LARGE)
                    if found is None:
                        self._lost(worker.address, why="its processes were ended")
                    else:
                        self._end(machine, number, attempt, at, *found)
                        self._stop(worker.address, number)  # it may forget the result
                    return
                await asyncio.sleep(LOOK)

        if not attempt.fetching and self._connection is not None:
            attempt.fetching = True
            self._connection.spawn(collect_kept(self._connection) if is_kept else fetch())
