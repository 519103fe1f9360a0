"""A run: an experiment that was conducted, or is, with its journal."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ..grid import Journal, Mapper, Statistics, request, statistics
from ..grid.executors import Executor
from ..grid.journal import home
from ..grid.virtual import Stop, run_apart
from ..model import InputError, System
from .adjuster import Adjuster, real_rates, warnings
from .calibrate import calibrate
from .conduct import Conduct
from .experiment import Experiment
from .faults import Fault
from .generator import JobList

__all__ = ["Run", "conduct", "new_run", "runs"]

LONGEST_NUMBER = 10
"""Digits that no run's number has."""


class Run:
    """A run, read from its journal.

    Its number is that of ``gridwright runs``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path, new=False)
        try:
            with self.journal.blamed():
                self.about = _about(self.journal)
                if self.about.get("kind") != "run":
                    raise InputError(f"{path} is the journal of a grid, not of an experiment")
                for key in ("experiment", "policy", "unit", "origin", "machines", "faults"):
                    if key not in self.about:
                        raise InputError(f"{path} is damaged: it does not say its {key}")
                self.faults = tuple(Fault(*fault) for fault in self.about["faults"])
        except BaseException:
            self.journal.close()
            raise

    @cached_property
    def jobs(self) -> JobList:
        """The jobs of the run: a long list, read when it is needed."""
        return JobList.from_json(self.journal.told("jobs")["jobs"])

    @cached_property
    def experiment(self) -> Experiment:
        """What is tested. A policy of the user's is read from its file again."""
        try:
            return Experiment(**self.about["experiment"])
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None

    @property
    def number(self) -> int:
        """The number of the run."""
        return int(self.path.stem) if self.path.stem.isdigit() else 0

    @property
    def system(self) -> System:
        """The system that was imposed."""
        return self.experiment.system

    @property
    def name(self) -> str:
        """How it is called: run 3, or the path of its journal."""
        return f"run {self.number}" if self.number else str(self.path)

    @property
    def until(self) -> float:
        """How far the run has come, in time units."""
        return float(self.journal.told("ended").get("ended") or self.journal.last())

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``done``, or ``stopped`` before its end."""
        if self.journal.is_claimed():
            return "paused" if self.journal.told("paused").get("paused") else "running"
        return "done" if self.journal.told("ended") else "stopped"

    def statistics(self) -> Statistics:
        """Return how its jobs have fared."""
        return statistics(self.journal, self.until)

    def pause(self) -> bool:
        """Let no time pass for it, until it is resumed; False: so it was.

        What its machines are running goes on, and is told later by as long as the pause.
        """
        return request(self.journal, "pause run", "") == "done"

    def resume(self) -> bool:
        """Let time pass again for a run that was paused; False: so it was."""
        return request(self.journal, "resume run", "") == "done"

    @classmethod
    def find(cls, name: str | int) -> Self:
        """Find a run by its number, or by the path of its journal."""
        if isinstance(name, str) and not (name.isdecimal() and len(name) < LONGEST_NUMBER):
            if not os.path.isfile(name):
                raise InputError(
                    f"no run {name[:80]!r}; expected a number that 'gridwright runs' lists, or the "
                    "path of a journal"
                )
            return cls(Path(name))
        path = _folder() / f"{int(name)}.sqlite"
        if not path.is_file():
            raise InputError(f"there is no run {name}; 'gridwright runs' lists those that are")
        return cls(path)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def discard(self) -> None:
        """Throw the run away, journal and all."""
        self.close()
        for ending in ("", "-wal", "-shm", "-lock"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        try:
            if isinstance(error, Exception):
                with self.journal.blamed():
                    raise error
        finally:
            self.close()


def runs() -> list[Path]:
    """Return the journals of all runs, the oldest first."""
    found = [path for path in _folder().glob("*.sqlite") if path.stem.isdigit()]
    return sorted(found, key=lambda path: int(path.stem))


def conduct(
    experiment: Experiment | Run,
    *,
    path: Path | None = None,
    watch: Callable[[Mapper], None] = lambda mapper: None,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
    executor: Executor | None = None,
    adjuster: Adjuster | None = None,
    warn: Callable[[str], None] = lambda line: None,
) -> Run:
    """Conduct an experiment on real machines; given a run that was stopped, go on with it.

    Jobs, faults, machines and what is run on them are those of the experiment, unless others are
    given. ``warn`` is told of rates that are imposed on machines which are in truth much slower.
    """
    run = experiment
    if isinstance(run, Experiment):
        run = new_run(run, path=path, jobs=jobs, faults=faults)
    elif run.state != "stopped":
        raise InputError(f"{run.name} is {run.state}; only one that was stopped goes on")
    adjuster = adjuster or _adjuster(run.experiment)
    if run.experiment.iterations is not None:
        given = run.experiment.iterations
        rounds = given if isinstance(given, tuple) else (given,) * run.system.shape[0]
        real = real_rates(adjuster.calibrations, rounds, run.experiment.time_unit)
        for line in warnings(run.system, real):
            warn(line)
    run.journal.claim()
    chosen = executor or _executor(run)
    run.journal.describe(machines=chosen.machines)  # a cluster's have names of their own
    run.about = _about(run.journal)
    parts = (run.experiment, chosen, run.journal, run.jobs, run.faults, adjuster, watch)
    conducting = Conduct(*parts)
    try:
        stop = Stop()
        run_apart(lambda: asyncio.run(_until_stopped(conducting, stop)), stop)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except TimeoutError:
        raise InputError("the machines of the experiment did not come up") from None
    finally:
        run.journal.release()
    if conducting.broken:
        raise InputError(f"the run has stopped: {conducting.broken}")
    run.journal.describe(ended=run.experiment.duration)
    return run


async def _until_stopped(conducting: Conduct, stop: Stop) -> None:
    """Conduct it until Ctrl-C is pressed: once is enough, and more must not disturb the end."""
    task = asyncio.create_task(conducting.run())
    loop = asyncio.get_running_loop()
    stop.cancels(task)
    if threading.current_thread() is threading.main_thread():
        pressed = iter([task.cancel])
        loop.add_signal_handler(signal.SIGINT, lambda: next(pressed, bool)())
    await task


def _about(journal: Journal) -> dict[str, Any]:
    """Return what a run is, but for its jobs."""
    keys = [key for (key,) in journal.select("key FROM about") if key != "jobs"]
    return journal.told(*keys) if keys else {}


def _folder() -> Path:
    return home() / "runs"


def new_run(
    experiment: Experiment,
    *,
    path: Path | None = None,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
) -> Run:
    """Write down what is to be conducted: a run that has not begun."""
    jobs = experiment.job_list() if jobs is None else jobs
    faults = experiment.faults() if faults is None else faults
    machines = experiment.machine_names()
    path = _next_path() if path is None else path
    journal = Journal(path)
    journal.describe(
        kind="run",
        origin=time.time(),
        unit=experiment.time_unit,
        experiment=experiment.words(),
        policy=str(experiment.chosen_policy()),
        classes=list(experiment.system.classes),
        machines=machines,
        jobs=jobs.as_json(),
        faults=[list(fault) for fault in faults],
    )
    journal.close()
    return Run(path)


def _next_path() -> Path:
    """Return the path of the next run, and make it ours."""
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = max((int(path.stem) for path in runs()), default=0) + 1
        while True:
            path = folder / f"{number}.sqlite"
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return path
            number += 1
    except OSError as error:
        raise InputError(
            f"runs are kept in {folder}, which cannot be written: {error.strerror}; "
            "set GRIDWRIGHT_HOME to a folder that can"
        ) from None


def _executor(run: Run) -> Executor:
    experiment = run.experiment
    names = experiment.machine_names()
    if experiment.executor == "local":
        from ..grid.executors.local import LocalExecutor

        return LocalExecutor(names, prediction=experiment.prediction)
    from ..grid.executors.dask import DaskExecutor

    wanted: int | list[str] = names if experiment.listed() else len(names)
    if run.journal.count():  # it goes on where it was
        wanted = run.about["machines"]
    security = experiment.tls.security() if experiment.tls is not None else None
    prediction = experiment.prediction
    return DaskExecutor(experiment.address, wanted, security=security, prediction=prediction)


def _adjuster(experiment: Experiment) -> Adjuster:
    """Make what imposes the rates; a loop is measured first, where no list tells its speed."""
    calibrations = list(experiment.known_speeds())
    if experiment.job == "spin" and not calibrations and experiment.executor == "local":
        (measured,) = calibrate(1, repeats=3).calibrations()
        calibrations = [measured] * len(experiment.system.machines)
    return Adjuster(experiment.system, experiment.time_unit, experiment.job, calibrations)
