"""Runs: experiments that were conducted or are being conducted, read from their journals."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..grid import Journal, Statistics, request, statistics
from ..grid.event import UNUSUAL
from ..grid.ownership import home
from ..model import InputError, System
from .experiment import Experiment
from .workload import Fault, JobList

LONGEST_NUMBER = 10
"""More digits than the number of any run has."""


class Run:
    """A run, read from its journal; ``gridwright runs`` shows its number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path, new=False)
        try:
            with self.journal.blamed():
                self.about = self.read_about()
                if self.about.get("kind") != "run":
                    raise InputError(f"{path} is the journal of a grid, not of an experiment")
                for key in ("experiment", "policy", "unit", "origin", "machines", "faults"):
                    if key not in self.about:
                        raise InputError(f"{path} is damaged: it does not say its {key}")
                self.faults = tuple(Fault(*fault) for fault in self.about["faults"])
        except BaseException:
            self.journal.close()
            raise

    def read_about(self) -> dict[str, Any]:
        """Read the description of the run, without its long list of jobs."""
        keys = [key for (key,) in self.journal.select("key FROM about") if key != "jobs"]
        return self.journal.told(*keys) if keys else {}

    @cached_property
    def jobs(self) -> JobList:
        """The jobs of the run, read when they are first needed."""
        try:
            return JobList.from_json(self.journal.told("jobs")["jobs"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{self.path} is damaged: its list of jobs makes no sense") from None

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment. A policy of the user is read from its file again."""
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
        """``run 3``, or the path of its journal."""
        return f"run {self.number}" if self.number else str(self.path)

    @property
    def began(self) -> float:
        """When time 0 was by the clock, in seconds since 1970: its machines were up by then."""
        for entry in self.journal.entries(f"WHERE kind = 'begun' AND {UNUSUAL} LIMIT 1"):
            return float(entry.fields["clock"] - entry.time * self.about["unit"])
        return float(self.about["origin"])

    @property
    def until(self) -> float:
        """The time units that have passed in the run."""
        return float(self.journal.told("ended").get("ended") or self.journal.last())

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``done``, or ``stopped`` before its end."""
        if self.journal.is_claimed():
            return "paused" if self.journal.told("paused").get("paused") else "running"
        return "done" if self.journal.told("ended") else "stopped"

    def statistics(self, within: Sequence[float] = ()) -> Statistics:
        """Return the statistics of its jobs, with shares of responses within times."""
        return statistics(self.journal, self.until, within)

    def pause(self) -> bool:
        """Stop the time of the run until it is resumed; return False if it is paused already.

        Running jobs continue; their events are delayed by the length of the pause.
        """
        return request(self.journal, "pause run", "") == "done"

    def resume(self) -> bool:
        """Continue a run that was paused; return False if it is not paused."""
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
        """Delete the run with its journal."""
        self.close()
        for ending in ("", "-wal", "-shm", "-lock"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)
        self.path.with_suffix(".twin.json").unlink(missing_ok=True)  # the page keeps it there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
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


def _folder() -> Path:
    return home() / "runs"


def new_run(
    experiment: Experiment,
    *,
    path: Path | None = None,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
) -> Run:
    """Create the journal of a run that has not begun."""
    jobs = experiment.job_list() if jobs is None else jobs
    faults = experiment.faults() if faults is None else faults
    machines = experiment.machine_names()
    path = _next_path() if path is None else path
    with closing(Journal(path)) as journal:
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
    return Run(path)


def _next_path() -> Path:
    """Return the path of the next run, and create its file."""
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


class Overview(NamedTuple):
    """A run in one line."""

    run: int
    state: str
    """``running``, ``paused``, ``done``, ``stopped`` before its end, or ``unreadable``."""
    name: str
    system: str = ""
    policy: str = ""
    time_unit: float = 1.0
    duration: float = 0.0
    time_units: float = 0.0
    """The time units that have passed."""
    began: float = 0.0
    """When it began, in seconds since 1970."""
    arrived: int = 0
    finished: int = 0
    mean_response: float | None = None


def overview(path: Path) -> Overview:
    """Return the overview of a run without reading its jobs, so that long lists are quick."""
    try:
        with Run(path) as run:
            words, fields = run.about["experiment"], Experiment.model_fields
            return Overview(
                run.number,
                run.state,
                str(words.get("name", "")),
                str(words["system"].get("name", "")),
                str(run.about["policy"]),
                float(words.get("time_unit", fields["time_unit"].default)),
                float(words.get("duration", fields["duration"].default)),
                run.until,
                run.began,
                *run.journal.tally(),
            )
    except InputError as error:
        number = int(path.stem) if path.stem.isdigit() else 0
        return Overview(number, "unreadable", str(error))
