"""Conduct an experiment: submit its jobs, inject its failures, and write the journal."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from math import inf
from pathlib import Path
from time import time as wall_clock

from ..grid import Journal, Mapper
from ..grid.event import Entry
from ..grid.executors import Executor
from ..grid.executors.virtual import Stop, run_apart
from ..grid.job import Job
from ..grid.journal import IN_MEMORY
from ..grid.operators import Operators
from ..grid.turn import Submission, patiently
from ..grid.validation import renamed_place
from ..model import GridTimeoutError, InputError
from .adjuster import Adjuster, real_rates, warnings
from .calibration import calibrate
from .experiment import Experiment
from .pause import PausableExecutor
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
    watch: Callable[[Mapper], None] = lambda mapper: None,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
    on: Executor | str | None = None,
    adjuster: Adjuster | None = None,
    warn: Callable[[str], None] = lambda line: None,
    executor: Executor | None = None,
) -> Run:
    """Conduct an experiment on real machines, or continue a run that was stopped.

    Jobs, faults, machines and their calls are those of the experiment, unless others are given.
    ``warn`` is called with a line for each imposed rate that a machine cannot reach.
    """
    run = experiment
    if isinstance(run, Experiment):
        run = new_run(run, path=path, jobs=jobs, faults=faults)
    elif run.state != "stopped":
        raise InputError(f"{run.name} is {run.state}; only a run that was stopped can continue")
    adjuster = adjuster or _adjuster(run.experiment)
    if run.experiment.iterations is not None:
        given = run.experiment.iterations
        rounds = given if isinstance(given, tuple) else (given,) * run.system.shape[0]
        real = real_rates(adjuster.calibrations, rounds, run.experiment.time_unit)
        for line in warnings(run.system, real):
            warn(line)
    run.journal.claim()
    chosen = _executor(run, renamed_place(on, executor, "", "conduct"))
    run.journal.describe(machines=chosen.machines)  # the machines of a cluster have their own names
    run.about = run.read_about()
    parts = (run.experiment, chosen, run.journal, run.jobs, run.faults, adjuster, watch)
    conducting = Conduct(*parts)
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
    run.journal.describe(ended=run.experiment.duration)
    return run


async def _until_stopped(conducting: Conduct, stop: Stop) -> None:
    """Conduct it until Ctrl-C is pressed; pressing it again must not disturb the end."""
    task = asyncio.create_task(conducting.run())
    loop = asyncio.get_running_loop()
    stop.cancels(task)
    if threading.current_thread() is threading.main_thread():
        pressed = iter([task.cancel])
        loop.add_signal_handler(signal.SIGINT, lambda: next(pressed, bool)())
    await task


class Conduct:
    """Conducts an experiment on any executor: in real time, or in virtual time without machines.

    Parameters
    ----------
    experiment
        The experiment.
    executor
        The executor that runs the jobs.
    journal
        The journal; one that has jobs is continued.
    jobs, faults
        The jobs and faults, in time units.
    adjuster
        Turns the work of a job into a call; None if nothing really runs.
    watch
        Called regularly with the mapper, to show the progress.
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
    ) -> None:
        self.experiment, self.journal = experiment, journal
        self.pausable = PausableExecutor(executor)
        self.executor = self.pausable
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
            await self._all_up(mapper)
            mapper.clock, mapper.zero = loop.time, loop.time() - since * experiment.time_unit
            mapper.book.free[:] = mapper.book.heard_free[:] = since
            self.came = self._adopt(mapper)
            # Every part of a run that was stopped has its own time of day.
            await patiently(lambda: self.journal.describe(paused=False))
            entry = Entry(since, "begun", fields={"clock": wall_clock()})
            mapper.call(lambda now: [], entry)
            operators = Operators(mapper)
            operators.more = {
                "pause run": lambda: self.pause(mapper),
                "resume run": lambda: self.resume(mapper),
            }
            all_parts = [self._generate(mapper), self._fail(mapper, since, operators)]
            if self.journal.path != IN_MEMORY:  # no other process can read it
                all_parts += [operators.serve(), self._watch(mapper)]
            parts = [asyncio.create_task(part) for part in all_parts]
            await self._until(mapper, experiment.duration, parts)
            parts[0].cancel()
            while not mapper.broken and self._due() < experiment.duration:
                self._submit(mapper)  # a busy computer may be late
            await asyncio.sleep(0)
        finally:
            self.failure = mapper.refusal() if mapper.broken else None
            for part in parts:
                part.cancel()
            await mapper.close()
            self.watch(mapper)

    async def pause(self, mapper: Mapper) -> bool:
        """Stop the time of the experiment until it is resumed."""
        since = self.pausable.pause()
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

        if not self.pausable.resume(shift):
            return False
        await self._note(mapper, paused=False)
        return True

    async def _note(self, mapper: Mapper, *, paused: bool) -> None:
        kind = "run paused" if paused else "run resumed"
        entry = Entry(mapper.now(), kind, fields={"clock": wall_clock()})
        mapper.call(lambda now: [], entry)
        await patiently(lambda: self.journal.describe(paused=paused))

    async def _all_up(self, mapper: Mapper) -> None:
        """Wait until all machines are up; the experiment begins then."""
        async with asyncio.timeout(PATIENCE):
            while not mapper.book.machines["up"].all():
                await asyncio.sleep(0.005)

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
        came = 0
        for kept in self.journal.jobs():
            came += 1
            if not kept.job.stage.is_final:
                kept.job.lost += kept.job.stage == "sent"
                number = mapper.classes.index(kept.task_class)
                submission = Submission(kept.job.number, number, kept.work, Future())
                mapper.adopt(kept.job, number, submission)
        return came

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
            kind = "failure" if begins else "repair"
            entry = Entry(mapper.now(), kind, machine=self.executor.machines[fault.machine])
            mapper.call(lambda now: [], entry)
            if begins:
                self.executor.fail(fault.machine, silent=silent)
            elif fault.machine not in operators.killed:
                self.executor.repair(fault.machine)

    async def _watch(self, mapper: Mapper) -> None:
        while True:
            self.watch(mapper)
            await asyncio.sleep(GLANCE)

    async def _sleep_until(self, mapper: Mapper, time: float) -> None:
        await self.pausable.going()
        while (wait := (time - mapper.now()) * mapper.unit) > INSTANT:
            await asyncio.sleep(wait)
            await self.pausable.going()

    def _prepare(self, job: Job, work: bytes) -> bytes:
        if self.adjuster is None:
            return work
        import cloudpickle

        share = float(self.experiment.system.mean_availability[job.machine])
        size = float(self.jobs.works[job.number])
        call = self.adjuster.call(job.task_class, job.machine, size, share)
        return bytes(cloudpickle.dumps(call))  # by value: a worker imports nothing


def _executor(run: Run, on: Executor | str | None) -> Executor:
    """Return what runs the jobs: an executor that is given, or that of the experiment's place."""
    experiment = run.experiment
    if on is not None and not isinstance(on, str):
        return on
    names, prediction = experiment.machine_names(), experiment.prediction
    if not (address := on or experiment.on):
        from ..grid.executors.local import LocalExecutor

        return LocalExecutor(names, prediction=prediction)
    from ..grid.executors.dask import DaskExecutor

    wanted: int | list[str] = names if experiment.listed() else len(names)
    if run.journal.count():  # it continues on the machines that it had
        wanted = run.about["machines"]
    security = experiment.tls.options() if experiment.tls is not None else None
    return DaskExecutor(address, wanted, security=security, prediction=prediction)


def _adjuster(experiment: Experiment) -> Adjuster:
    """Return the adjuster; measure the speed of the loop first if it is unknown."""
    calibrations = list(experiment.known_speeds())
    if experiment.job == "spin" and not calibrations and not experiment.on:
        (measured,) = calibrate(1, repeats=3).calibrations()
        calibrations = [measured] * len(experiment.system.machines)
    return Adjuster(experiment.system, experiment.time_unit, experiment.job, calibrations)
