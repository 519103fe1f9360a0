"""Everything about a run as tables for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..grid import Statistics
from ..grid.statistics import Figures
from ..model import InputError
from .report import actual_rates
from .rows import write_rows
from .run import Run

__all__ = ["export"]


def export(run: Run, folder: Path) -> list[Path]:
    """Write a run's tables into a folder; return their paths.

    Times are in time units since the beginning, and by the clock on the wall where it says so.
    Besides the tables of a run there are the four files of the original testbed.
    """
    run.journal.check()
    name = run.experiment.name or run.system.name or f"run-{run.number}"
    name = "".join(each if each.isalnum() or each in "-_." else "-" for each in name)
    found = run.statistics()
    tables = {
        **_tables(run, found),
        f"{name}_classesStats.txt": _classes(run, found),
        f"{name}_jobs.txt": _jobs(run),
        f"{name}_mue.txt": _rates(run),
        f"{name}_systemStats.txt": _system(run, found),
    }
    written = []
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder, or a name for a new one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from None
    for file, rows in tables.items():
        written.append(folder / file)
        write_rows(written[-1], rows)
    return written


def _tables(run: Run, found: Statistics) -> dict[str, Iterable[Sequence[Any]]]:
    journal = run.journal
    faults = journal.events("failure", "repair", "down", "up")
    trouble = journal.events("failed", "timed out", "late answer", "down")
    readings = [
        [entry.time, entry.machine, *entry.detail.split()]
        for entry in journal.events("availability")
    ]
    beliefs = journal.events("rates", "arrivals", "plan", "availability imposed")
    generations = [
        [kept.job.number, kept.task_class, planned, kept.job.submitted, work]
        for kept, planned, work in zip(
            journal.jobs(contents=False), run.jobs.times, run.jobs.works, strict=False
        )
    ]
    return {
        "jobs.csv": _jobs(run),
        "generations.csv": [["job", "class", "planned", "submitted", "work"], *generations],
        "failures.csv": [
            ["time", "event", "machine", "detail"],
            *([each.time, each.kind, each.machine, each.detail] for each in faults),
        ],
        "availability.csv": [["time", "machine", "measured", "predicted"], *readings],
        "exceptions.csv": [
            ["time", "event", "job", "attempt", "machine", "detail"],
            *(
                [each.time, each.kind, each.job, each.attempt, each.machine, each.detail]
                for each in trouble
            ),
        ],
        "decisions.csv": [["time", "asked", "candidates", "choice", "plan"], *journal.decisions()],
        "beliefs.csv": [
            ["time", "event", "machine", "detail"],
            *([each.time, each.kind, each.machine, each.detail] for each in beliefs),
        ],
        "classes.csv": _classes(run, found),
        "rates.csv": _rates(run),
        "system.csv": _system(run, found),
    }


def _jobs(run: Run) -> list[list[Any]]:
    columns = ("submitted", "free", "heard_free", "sent", "started", "ended", "heard", "settled")
    titles = ["t1 machine free", "t2 known", "t3 sent", "t4 started", "t5 ended", "t6 known"]
    rows: list[list[Any]] = [
        [
            *("job", "class", "machine", "stage", "attempts", "lost", "timed out", "deaths"),
            *("submitted", *titles, "t7 result", "response", "submitted at", "work", "error"),
        ]
    ]
    stretches = _stretches(run)
    for kept, work in zip(run.journal.jobs(contents=False), run.jobs.works, strict=False):
        job = kept.job
        origin = next(origin for since, origin in stretches if since <= job.submitted)
        seconds = origin + job.submitted * run.about["unit"]
        at = datetime.fromtimestamp(seconds).isoformat(" ", "milliseconds")
        stage = str(job.stage) if job.stage.is_final else "unfinished"
        head = [job.number, kept.task_class, kept.machine, stage, job.attempt, job.lost]
        times = [_known(getattr(job, name)) for name in columns]
        response = _known(job.ended - job.submitted if job.stage == "finished" else float("nan"))
        rows.append([*head, job.timed_out, job.deaths, *times, response, at, work, kept.error])
    return rows


def _classes(run: Run, found: Statistics) -> list[list[Any]]:
    rows: list[list[Any]] = [["class", "desired arrival rate", *Figures._fields]]
    for i, (name, figures) in enumerate(found.classes.items()):
        rows.append([name, float(run.system.arrival_rates[i]), *map(_known, figures)])
    rows.append(["all", float(run.system.arrival_rates.sum()), *map(_known, found.overall)])
    return rows


def _rates(run: Run) -> list[list[Any]]:
    rows: list[list[Any]] = [["class", "machine", "desired rate", "actual rate"]]
    actual = actual_rates(run)
    for i, name in enumerate(run.system.classes):
        for j, machine in enumerate(run.about["machines"]):
            desired = float(run.system.effective[i, j])
            rows.append([name, machine, desired, _known(actual[i, j])])
    return rows


def _system(run: Run, found: Statistics) -> list[list[Any]]:
    began = datetime.fromtimestamp(_stretches(run)[-1][1]).isoformat(" ", "seconds")
    return [
        ["system", run.system.name],
        ["policy", run.about["policy"]],
        ["began at", began],
        ["seconds of a time unit", run.about["unit"]],
        ["time units", found.until],
        *([name, _known(value)] for name, value in found.overall._asdict().items()),
    ]


def _stretches(run: Run) -> list[tuple[float, float]]:
    """Return since when, and when zero was by the clock on the wall: the last stretch first.

    A run that was stopped or paused and went on has several.
    """
    begun = run.journal.events("begun", "run resumed")
    found = [(each.time, float(each.detail) - each.time * run.about["unit"]) for each in begun]
    return [*reversed(found), (float("-inf"), found[0][1] if found else run.about["origin"])]


def _known(value: Any) -> Any:
    """Leave out what is not a number: an empty cell says so best."""
    return "" if value != value else value
