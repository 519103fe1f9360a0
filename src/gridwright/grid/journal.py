"""The journal: everything that happens to a grid, on disk before it is acted upon."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..model import InputError
from .job import Job, Stage

__all__ = ["VERSION", "Entry", "Journal", "Kept", "home"]

VERSION = 1

SCHEMA = """
CREATE TABLE job (
    number INTEGER PRIMARY KEY, class TEXT NOT NULL, submitted REAL NOT NULL, work BLOB,
    stage TEXT NOT NULL, machine TEXT, attempt INTEGER NOT NULL, assigned REAL, sent REAL,
    started REAL, ended REAL, lost INTEGER NOT NULL, timed_out INTEGER NOT NULL,
    result BLOB, error TEXT);
CREATE TABLE event (
    time REAL NOT NULL, kind TEXT NOT NULL, job INTEGER, attempt INTEGER, machine TEXT,
    detail TEXT);
"""


def home() -> Path:
    """Return the folder where journals are kept."""
    given = os.environ.get("GRIDWRIGHT_HOME")
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "gridwright"


class Entry(NamedTuple):
    """Something that happened."""

    time: float
    kind: str
    job: int | None = None
    attempt: int | None = None
    machine: str | None = None
    detail: str = ""


class Kept(NamedTuple):
    """A job as the journal kept it."""

    job: Job
    task_class: str
    machine: str
    work: bytes
    result: bytes
    error: str


class Journal:
    """A file that remembers a grid's jobs and all that happened to them.

    It survives a kill of this process at any moment. What one turn of the grid does is written in
    one piece: all of it is there, or none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{path} is no journal that can be used: {error}") from None

    def _prepare(self) -> None:
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables:
                raise InputError(f"{self.path} is a database, but no journal of a grid")
            self._database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")
        elif version != VERSION:
            raise InputError(
                f"{self.path} is a journal of version {version}; this Gridwright reads {VERSION}"
            )

    def write(
        self,
        entries: Sequence[Entry],
        jobs: Sequence[tuple[Job, str, str | None]] = (),
        submitted: Sequence[tuple[int, bytes]] = (),
        results: Sequence[tuple[int, bytes, str]] = (),
    ) -> None:
        """Write one turn: what happened, how jobs now stand, their work and their results."""
        run = self._database.execute
        run("BEGIN IMMEDIATE")
        try:
            self._database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", entries)
            works = dict(submitted)
            for job, task_class, machine in jobs:
                if job.number in works:
                    new = (job.number, task_class, job.submitted, works[job.number])
                    places = ", ".join("?" * 13)
                    run(
                        f"INSERT INTO job VALUES ({places}, NULL, NULL)",
                        (*new, *_standing(job, machine)),
                    )
                else:
                    run(
                        "UPDATE job SET stage=?, machine=?, attempt=?, assigned=?, sent=?,"
                        " started=?, ended=?, lost=?, timed_out=? WHERE number=?",
                        (*_standing(job, machine), job.number),
                    )
            for number, result, error in results:
                run("UPDATE job SET result=?, error=? WHERE number=?", (result, error, number))
            run("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise

    def jobs(self) -> Iterator[Kept]:
        """Return every job, in the order of submission."""
        for row in self._database.execute("SELECT * FROM job ORDER BY number"):
            number, name, submitted, work, stage, machine, attempt = row[:7]
            times = [float("nan") if time is None else time for time in row[7:11]]
            job = Job(number, -1, submitted, Stage(stage), attempt=attempt)
            job.assigned, job.sent, job.started, job.ended = times
            job.lost, job.timed_out = row[11], row[12]
            yield Kept(job, name, machine or "", work, row[13] or b"", row[14] or "")

    def events(self) -> list[Entry]:
        """Return everything that happened, in its order."""
        return [Entry(*row) for row in self._database.execute("SELECT * FROM event ORDER BY rowid")]

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _standing(job: Job, machine: str | None) -> tuple[Any, ...]:
    times = (job.assigned, job.sent, job.started, job.ended)
    known = tuple(None if time != time else time for time in times)
    return (str(job.stage), machine, job.attempt, *known, job.lost, job.timed_out)
