"""Tables that are exported of a grid: jobs, failures, exceptions, decisions, beliefs, figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..model import InputError
from ..model.error import file_errors
from ..model.spreadsheet import write_rows
from .journal import Journal
from .journal_queries import Statistics, statistics
from .ownership import home

TIMES = ("submitted", "free", "heard_free", "sent", "started", "ended", "heard", "settled")
TIME_TITLES = (
    *("submitted", "t1 machine free", "t2 known", "t3 sent", "t4 started", "t5 ended"),
    *("t6 known", "t7 result"),
)
"""What the times of a job are called in tables."""
FAILURES = ("failure", "repair", "down", "up", "killed", "started again", "paused", "resumed")
EXCEPTIONS = ("failed", "cancelled", "timed out", "late answer", "lost", "down")
BELIEFS = ("rates", "arrivals", "plan", "availability imposed")

Rows = Iterable[Sequence[Any]]


def find_journal(which: str) -> Journal:
    """Open the journal of a grid by the name under which it is or was served, or by its path."""
    served = home() / "grids" / f"{which}.sqlite"
    path = served if "/" not in which and served.is_file() else Path(which)
    if not path.is_file():
        raise InputError(
            f"no grid {which!r}; expected the name of a grid that is or was served on this "
            "computer, or the path of a journal"
        )
    return Journal(path, new=False)


def export(journal: Journal, folder: Path) -> list[Path]:
    """Write the history of a grid as tables into a folder; return their paths.

    Times are in seconds since the beginning, except where a title names the time of day.
    """
    journal.check()
    if journal.told("kind").get("kind") != "grid":
        path = journal.path
        raise InputError(f"{path} is not of a grid; 'gridwright runs export' exports experiments")
    with journal.snapshot(), journal.blamed():
        found = statistics(journal)
        tables: dict[str, Rows] = {
            "jobs.csv": job_rows(journal),
            **event_tables(journal),
            "classes.csv": _classes(found),
            "rates.csv": _rates(found),
            "system.csv": _system(journal, found),
        }
    return write_tables(folder, tables)


def event_tables(journal: Journal) -> dict[str, Rows]:
    """Return the tables of events that a grid and an experiment have in common."""

    def events(columns: str, *kinds: str) -> list[list[Any]]:
        names = columns.split()
        rows = [[getattr(each, name) for name in names] for each in journal.events(*kinds)]
        return [["event" if name == "kind" else name for name in names], *rows]

    readings = [
        [entry.time, entry.machine, entry.fields["measured"], entry.fields["predicted"]]
        for entry in journal.events("availability")
    ]
    return {
        "failures.csv": events("time kind machine detail", *FAILURES),
        "availability.csv": [["time", "machine", "measured", "predicted"], *readings],
        "exceptions.csv": events("time kind job attempt machine detail", *EXCEPTIONS),
        "decisions.csv": [["time", "asked", "candidates", "choice", "plan"], *journal.decisions()],
        "beliefs.csv": events("time kind machine detail", *BELIEFS),
    }


def write_tables(folder: Path, tables: Mapping[str, Rows]) -> list[Path]:
    """Write tables into a folder, which is made if it is not there; return their paths."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder, or a name for a new one")
    with file_errors(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
    for file, rows in tables.items():
        write_rows(folder / file, rows)
    return [folder / file for file in tables]


def known(value: Any) -> Any:
    """Return an empty cell in place of nan."""
    return "" if value != value else value


def job_rows(journal: Journal) -> list[list[Any]]:
    """Return the table of the jobs of a grid, with its titles."""
    rows: list[list[Any]] = [
        [
            *("job", "key", "class", "client", "priority", "machine", "stage"),
            *("attempts", "lost", "timed out", "deaths", "causes"),
            *(*TIME_TITLES, "response", "submitted at", "error"),
        ]
    ]
    origin = float(journal.told("origin")["origin"])
    for kept in journal.jobs(contents=False):
        job = kept.job
        at = datetime.fromtimestamp(origin + job.submitted).isoformat(" ", "milliseconds")
        about = [job.number, job.key or "", kept.task_class, job.options.client]
        where = [job.options.priority, kept.machine, str(job.stage)]
        counts = [job.attempt, job.lost, job.timed_out, job.deaths, "; ".join(job.causes)]
        times = [known(getattr(job, name)) for name in TIMES]
        response = known(job.ended - job.submitted)
        rows.append([*about, *where, *counts, *times, response, at, kept.error])
    return rows


def _classes(found: Statistics) -> list[list[Any]]:
    rows = {**found.classes, "all": found.overall}
    figures = [[name, *map(known, each.as_json().values())] for name, each in rows.items()]
    return [["class", *found.overall.as_json()], *figures]


def _rates(found: Statistics) -> list[list[Any]]:
    names = list(found.classes)
    return [
        ["class", "machine", "finished", "rate"],
        *(
            [names[i], found.machines[j], int(found.executed[i, j]), known(float(rate))]
            for (i, j), rate in np.ndenumerate(found.rates)
        ),
    ]


def _system(journal: Journal, found: Statistics) -> list[list[Any]]:
    about = journal.told("policy", "origin")
    began = datetime.fromtimestamp(float(about["origin"])).isoformat(" ", "seconds")
    return [
        ["policy", about["policy"]],
        ["began at", began],
        ["seconds", found.until],
        *([name, known(value)] for name, value in found.overall.as_json().items()),
    ]
