"""Conduct an experiment: submit its jobs, inject its failures, and write the journal."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from math import inf
from pathlib import Path
from time import time as wall_clock
from typing import Any, NamedTuple

from ..grid import Journal, Mapper
from ..grid.event import Entry
from ..grid.executors import Executor
from ..grid.executors.virtual import Stop, run_apart
from ..grid.job import Job
from ..grid.journal import IN_MEMORY
from ..grid.operators import Operators
from ..grid.turn import Submission, patiently
from ..grid.validation import executor_of, renamed_place
from ..model import GridTimeoutError, InputError
from ..policies import PEER
from .adjuster import Adjuster, real_rates, warnings
from .calibration import calibrate
from .experiment import LOOPS, Experiment
from .loop_conduct import LoopConduct
from .pause import PausableExecutor
from .peer_conduct import PeerConduct
from .runs import Run, new_run
from .workload import Fault, JobList

PATIENCE = 20.0
"""Seconds in which the machines of an experiment must start."""
INSTANT = 1e-9
"""Seconds that count as no time: adding less may not change a time."""
GLANCE = 0.25
"""Seconds between calls of ``watch``."""


def conduct(
    experiment: Experiment | Run,
    *,
    path: Path | None = None,
    watch: Callable[[Any], None] = lambda mapper: None,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
    on: Executor | str | None = None,
    adjuster: Adjuster | None = None,
    warn: Callable[[str], None] = lambda line: None,
    executor: Executor | None = None,
) -> Run:
    """Conduct an experiment on real machines, or continue a run that was stopped.

    Jobs, faults, machines and their calls are those of the experiment, unless others are given.
    ``warn`` is called with a line for each imposed rate that a machine cannot reach, ``watch``
    regularly with the mapper, or with the `PeerConduct` if the machines decide for themselves.
    """
    run = experiment
    if isinstance(run, Experiment):
        run = new_run(run, path=path, jobs=jobs, faults=faults)
    elif run.state != "stopped":
        raise InputError(f"{run.name} is {run.state}; only a run that was stopped can continue")
    place = renamed_place(on, executor, "", "conduct")
    elsewhere = bool(run.experiment.on) or (isinstance(place, str) and bool(place))
    adjuster = adjuster or _adjuster(run.experiment, elsewhere)
    if run.experiment.iterations is not None:
        given = run.experiment.iterations
        rounds = given if isinstance(given, tuple) else (given,) * run.system.shape[0]
        real = real_rates(adjuster.calibrations, rounds, run.experiment.time_unit)
        for line in warnings(run.system, real):
            warn(line)
    conducting: Conduct | PeerConduct | LoopConduct
    kind = run.experiment.chosen_policy().kind
    if kind is PEER:
        if place:
            raise InputError("machines of a peer policy are processes of this computer, not on=…")
        run.journal.claim()
        conducting = PeerConduct(run.experiment, run.journal, run.jobs, run.faults, adjuster, watch)
    else:
        chosen = _executor(run, place)
        run.journal.claim()
        run.journal.describe(machines=chosen.machines)  # those of a cluster have their own names
        run.about = run.read_about()
        if kind in LOOPS:
            conducting = LoopConduct(run.experiment, chosen, run.journal, adjuster, watch)
        else:
            conducting = Conduct(
                run.experiment, chosen, run.journal, run.jobs, run.faults, adjuster, watch
            )
    try:
        stop = Stop()
        run_apart(lambda: asyncio.run(_until_stopped(conducting, stop)), stop)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except TimeoutError:
        raise GridTimeoutError(
            f"the machines of the experiment did not start within {PATIENCE:g} seconds"
        ) from None
    finally:
        run.journal.release()
    if conducting.failure is not None:
        raise conducting.failure
    until = conducting.until if isinstance(conducting, LoopConduct) else run.experiment.duration
    run.journal.describe(ended=until)
    return run


async def _until_stopped(conducting: Conduct | PeerConduct | LoopConduct, stop: Stop) -> None:
    """Conduct it until Ctrl-C is pressed; pressing it again must not disturb the end."""
    task = asyncio.create_task(conducting.run())
    loop = asyncio.get_running_loop()
    stop.cancels(task)
    if threading.current_thread() is threading.main_thread():
        pressed = iter([task.cancel])
        loop.add_signal_handler(signal.SIGINT, lambda: next(pressed, bool)())
    await task


class Action(NamedTuple):
    """What an operator did to a machine, as the journal has it."""

    time: float
    kind: str
    """One of `ACTIONS`."""
    machine: int
    availability: float | None = None
    """The share of the CPU that was imposed."""


ACTIONS = {
    "paused": "pause",
    "resumed": "resume",
    "killed": "kill",
    "started again": "start",
    "availability imposed": "",
    "availability free": "",
}
"""Events that operators cause, and the verb of each; none for those that set availability."""


class Conduct:
    """Conducts an experiment on any executor: in real time, or in virtual time without machines.

    A journal that has jobs is continued. The adjuster turns the work of a job into a call; it is
    None if nothing really runs. ``watch`` is called regularly with the mapper.
    """

    def __init__(
        self,
        experiment: Experiment,
        executor: Executor,
        journal: Journal,
        jobs: JobList,
        faults: Sequence[Fault],
        adjuster: Adjuster | None = None,
        watch: Callable[[Mapper], None] = lambda mapper: None,
        actions: Sequence[Action] = (),
    ) -> None:
        self.experiment, self.journal, self.actions = experiment, journal, actions
        self.executor = PausableExecutor(executor)
        self.jobs, self.faults, self.adjuster, self.watch = jobs, faults, adjuster, watch
        self.came = 0
        """How many jobs have been submitted."""
        self.failure: Exception | None = None
        """Why it stopped before its end, if it did."""

    async def run(self) -> None:
        """Conduct the experiment to its end, or until it is cancelled."""
        experiment, loop = self.experiment, asyncio.get_running_loop()
        believed = experiment.system.believed
        since, called = self.journal.last(), loop.time()
        mapper = Mapper(
            experiment.chosen_policy(),
            self.executor,
            self.journal,
            experiment.system.classes,
            believed.nominal,
            believed.arrival_rates,
            experiment.settings(),
            clock=lambda: called,  # it stands still until all machines are up
            zero=called - since * experiment.time_unit,
            unit=experiment.time_unit,
            availability=believed.mean_availability,
        )
        mapper.prepare = self._prepare
        parts: list[asyncio.Task[None]] = []
        try:
            await mapper.open()
            async with asyncio.timeout(PATIENCE):  # the experiment begins when all are up
                while not mapper.book.machines["up"].all():
                    await asyncio.sleep(0.005)
            usual = await self._impose()
            mapper.clock, mapper.zero = loop.time, loop.time() - since * experiment.time_unit
            mapper.book.free[:] = mapper.book.heard_free[:] = since
            self.came = self._adopt(mapper)
            # Every part of a run that was stopped has its own time of day.
            await patiently(lambda: self.journal.describe(paused=False))
            mapper.note("begun", clock=wall_clock(), resumed=since > 0)
            operators = Operators(mapper)
            operators.usual = usual
            operators.more = {
                "pause run": lambda: self.pause(mapper),
                "resume run": lambda: self.resume(mapper),
            }
            all_parts = [self._generate(mapper), self._fail(mapper, since, operators)]
            if self.actions:
                all_parts.append(self._operate(mapper, operators))
            if self.journal.path != IN_MEMORY:  # no other process can read it
                all_parts += [operators.serve(), self._watch(mapper)]
            parts = [asyncio.create_task(part) for part in all_parts]
            await self._until(mapper, experiment.duration, parts)
            parts[0].cancel()
            while not mapper.broken and self._due() < experiment.duration:
                self._submit(mapper)  # a busy computer may be late
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            mapper.note("run stopped", clock=wall_clock())
            raise
        finally:
            self.failure = mapper.refusal() if mapper.broken else None
            for part in parts:
                part.cancel()
            await mapper.close()
            self.watch(mapper)

    async def _impose(self) -> dict[int, float]:
        """Make the machines as slow as the system says, if jobs really run; return the shares."""
        if self.adjuster is None:
            return {}
        shares = dict(enumerate(map(float, self.experiment.system.mean_availability)))
        slow = [(machine, share) for machine, share in shares.items() if share < 1]
        await asyncio.gather(*(self.executor.impose(*each) for each in slow))
        return shares

    async def pause(self, mapper: Mapper) -> bool:
        """Stop the time of the experiment until it is resumed."""
        since = self.executor.pause()
        if since is None:
            return False
        mapper.clock = lambda: since
        await self._note(mapper, paused=True)
        return True

    async def resume(self, mapper: Mapper) -> bool:
        """Continue the time of the experiment."""

        def shift(seconds: float) -> None:
            mapper.zero += seconds
            mapper.clock = asyncio.get_running_loop().time

        if not self.executor.resume(shift):
            return False
        await self._note(mapper, paused=False)
        return True

    async def _note(self, mapper: Mapper, *, paused: bool) -> None:
        mapper.note("run paused" if paused else "run resumed", clock=wall_clock())
        await patiently(lambda: self.journal.describe(paused=paused))

    async def _until(
        self, mapper: Mapper, duration: float, parts: Sequence[asyncio.Task[None]]
    ) -> None:
        left_over = list(parts)
        while (left := (duration - mapper.now()) * mapper.unit) > INSTANT and not mapper.broken:
            await asyncio.sleep(min(left, 1.0))
            for part in [part for part in left_over if part.done()]:
                left_over.remove(part)
                part.result()  # raise its error, if it has one

    def _adopt(self, mapper: Mapper) -> int:
        """Add the unfinished jobs of a run that was stopped; return how many were submitted."""
        for kept in self.journal.jobs(ended=False):
            kept.job.lost += kept.job.stage == "sent"
            number = mapper.classes.index(kept.task_class)
            submission = Submission(kept.job.number, number, kept.work, Future())
            mapper.adopt(kept.job, number, submission)
        return self.journal.tally()[0]

    async def _generate(self, mapper: Mapper) -> None:
        """Submit every job at its time."""
        while self.came < len(self.jobs):
            await self._sleep_until(mapper, self._due())
            self._submit(mapper)

    def _due(self) -> float:
        """Return the time of the next job."""
        return float(self.jobs.times[self.came]) if self.came < len(self.jobs) else inf

    def _submit(self, mapper: Mapper) -> None:
        number, self.came = self.came, self.came + 1
        mapper.hear(Submission(number, int(self.jobs.task_classes[number]), b"", Future()))

    async def _fail(self, mapper: Mapper, since: float, operators: Operators) -> None:
        """Take machines away at the times of the faults, and bring them back."""
        events = sorted(
            (time, begins, fault)
            for fault in self.faults
            for time, begins in ((fault.start, 1), (fault.end, 0))
            if fault.end > since
        )
        silent = self.experiment.detection == "timeout"
        for time, begins, fault in events:
            await self._sleep_until(mapper, time)
            name = self.executor.machines[fault.machine]
            mapper.note("failure" if begins else "repair", name)
            if begins:
                operators.take_away(fault.machine, "failed", silent=silent)
            else:
                operators.bring_back(fault.machine, "failed")

    async def _operate(self, mapper: Mapper, operators: Operators) -> None:
        """Do what operators did in another run, at the same times."""
        usual = self.experiment.system.mean_availability
        for action in self.actions:
            await self._sleep_until(mapper, action.time)
            machine, share = action.machine, action.availability
            if verb := ACTIONS[action.kind]:
                await getattr(operators, verb)(self.executor.machines[machine])
                continue
            # The rates have the usual share of the CPU in them already.
            await self.executor.impose(machine, 1.0 if share is None else share / usual[machine])
            told = partial(mapper.beliefs.impose, machine, share)
            mapper.call(
                told, Entry(mapper.now(), action.kind, machine=self.executor.machines[machine])
            )

    async def _watch(self, mapper: Mapper) -> None:
        while True:
            self.watch(mapper)
            await asyncio.sleep(GLANCE)

    async def _sleep_until(self, mapper: Mapper, time: float) -> None:
        await self.executor.going()
        while (wait := (time - mapper.now()) * mapper.unit) > INSTANT:
            await asyncio.sleep(wait)
            await self.executor.going()

    def _prepare(self, job: Job, work: bytes) -> bytes:
        if self.adjuster is None:
            return work
        import cloudpickle

        size = float(self.jobs.works[job.number])
        call = self.adjuster.call(job.task_class, job.machine, size)
        return bytes(cloudpickle.dumps(call))  # by value: a worker imports nothing


def _executor(run: Run, on: Executor | str | None) -> Executor:
    """Return what runs the jobs: an executor that is given, or that of the experiment's place."""
    experiment = run.experiment
    if on is not None and not isinstance(on, str):
        return on
    names = experiment.machine_names()
    wanted: int | list[str] = names
    options: dict[str, Any] = {"prediction": experiment.prediction}
    if address := on or experiment.on:
        if run.journal.count():  # it continues on the machines that it had
            wanted = run.about["machines"]
        elif not experiment.listed():
            wanted = len(names)
        options["security"] = experiment.tls.options() if experiment.tls is not None else None
    return executor_of(address, wanted, **options)


def _adjuster(experiment: Experiment, elsewhere: bool) -> Adjuster:
    """Return the adjuster; measure the speed of this computer first if it is unknown and needed."""
    calibrations = list(experiment.known_speeds())
    if experiment.job == "spin" and not calibrations and not elsewhere:
        (measured,) = calibrate(1, repeats=3).calibrations()
        calibrations = [measured] * len(experiment.system.machines)
    return Adjuster(experiment.system, experiment.time_unit, experiment.job, calibrations)
