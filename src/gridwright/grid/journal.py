"""The journal: everything that happens to a grid, on disk before it is acted upon."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, NamedTuple

from ..model import InputError
from .job import Job, Stage

__all__ = ["IN_MEMORY", "UNUSUAL", "VERSION", "Entry", "Journal", "Kept", "Request", "home"]

VERSION = 3
IN_MEMORY = Path(":memory:")
"""A journal that is gone when it is closed."""
PATIENCE = 0.5
"""Seconds for which a journal is waited for: whoever looks at its lock holds it for a moment."""

TIMES = ("assigned", "free", "heard_free", "sent", "started", "ended", "heard", "settled")
STANDING = ("stage", "machine", "attempt", *TIMES, "lost", "timed_out", "deaths", "causes")

USUAL = ("submitted", "sent", "started", "finished")
"""What every job goes through."""
UNUSUAL = f"kind NOT IN {USUAL}"
"""A condition for all else; whoever asks in these words need not read every event."""

SCHEMA = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE job (
    number INTEGER PRIMARY KEY, class TEXT NOT NULL, submitted REAL NOT NULL, work BLOB,
    stage TEXT NOT NULL, machine TEXT, attempt INTEGER NOT NULL,
    {", ".join(f"{name} REAL" for name in TIMES)},
    lost INTEGER NOT NULL, timed_out INTEGER NOT NULL, deaths INTEGER NOT NULL, causes TEXT,
    result BLOB, error TEXT);
CREATE TABLE event (
    time REAL NOT NULL, kind TEXT NOT NULL, job INTEGER, attempt INTEGER, machine TEXT,
    detail TEXT);
CREATE INDEX unusual ON event (kind) WHERE {UNUSUAL};
CREATE TABLE decision (
    time REAL NOT NULL, asked TEXT NOT NULL, candidates TEXT NOT NULL, choice TEXT, plan INTEGER);
CREATE TABLE request (
    number INTEGER PRIMARY KEY, verb TEXT NOT NULL, machine TEXT NOT NULL, value TEXT NOT NULL,
    answer TEXT);
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


class Request(NamedTuple):
    """Something that an operator asks of a grid that runs in another process."""

    number: int
    verb: str
    machine: str
    value: str


class Journal:
    """A file that remembers a grid's jobs and all that happened to them.

    Times are in time units since the grid's beginning; ``about`` tells when that was and how many
    seconds a unit has. It survives a kill of this process at any moment. What one turn of the grid
    does is written in one piece: all of it is there, or none.
    """

    def __init__(self, path: Path, *, new: bool = True) -> None:
        self.path = path
        self._lock: IO[str] | None = None
        if not new and not path.is_file():
            raise InputError(f"{path}: there is no such journal")
        try:
            if path != IN_MEMORY:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                if not new:
                    self._check()  # before anything is changed in it
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=NORMAL")
                if self._check(new=True):
                    words = f"BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;"
                    self._database.executescript(words)
            except BaseException:
                self._database.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{path} is no journal that can be used: {error}") from None

    def _check(self, *, new: bool = False) -> bool:
        """Check that it is a journal; a new one may be empty: return whether it is."""
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables:
                raise InputError(f"{self.path} is a database, but no journal of a grid")
            if not new:
                raise InputError(f"{self.path} is empty, no journal of a grid")
            return True
        if version != VERSION:
            raise InputError(
                f"{self.path} is a journal of version {version}; this Gridwright reads {VERSION}"
            )
        return False

    def claim(self) -> None:
        """Make this journal ours to write, until it is closed or this process ends.

        What was asked of an earlier grid and not answered is not to be done by this one.
        """
        if self.path == IN_MEMORY or self._lock is not None:
            return
        lock = open(f"{self.path}-lock", "a")  # noqa: SIM115
        end = monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                lock.truncate(0)  # whoever was killed is forgotten before we are seen to hold it
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if monotonic() > end:
                    lock.close()
                    words = f"{self.path}: another grid is writing this journal"
                    raise InputError(words) from None
            fcntl.flock(lock, fcntl.LOCK_UN)  # else two who want it keep each other from it
            sleep(0.01)
        lock.write(f"{os.getpid()} {socket.gethostname()}")
        lock.flush()
        self._lock = lock
        for request in self.requests():
            self.answer(request.number, "error: the grid that this was asked of had ended")

    def release(self) -> None:
        """Let others write this journal."""
        if self._lock is not None:
            self._lock.truncate(0)  # the next owner is not to be taken for us
            self._lock.close()
            self._lock = None

    def is_claimed(self) -> bool:
        """Tell whether a grid is writing this journal."""
        try:
            with open(f"{self.path}-lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def owner(self) -> int | None:
        """Return the process on this computer that is writing this journal, if one is."""
        end = monotonic() + PATIENCE
        while (said := self._said()) == "" and monotonic() < end:
            sleep(0.01)  # whoever has just claimed it is about to say who it is
        number, _, computer = (said or "").partition(" ")
        return int(number) if computer == socket.gethostname() and number.isdigit() else None

    def is_elsewhere(self) -> bool:
        """Tell whether a grid on another computer is writing this journal."""
        return (self._said() or "").partition(" ")[2] not in ("", socket.gethostname())

    def _said(self) -> str | None:
        """Return the process and computer of whoever holds the lock: "" if it is not said yet."""
        return Path(f"{self.path}-lock").read_text() if self.is_claimed() else None

    @property
    def about(self) -> dict[str, Any]:
        """What the grid is: its origin, time unit, policy, classes and machines."""
        return self.told()

    def told(self, *keys: str) -> dict[str, Any]:
        """Return some of what the grid is, or all: the jobs of a long run are a long text."""
        where = f"WHERE key IN ({', '.join('?' * len(keys))})" if keys else ""
        rows = self._database.execute(f"SELECT key, value FROM about {where}", keys)
        return {key: json.loads(value) for key, value in rows}

    def describe(self, **words: Any) -> None:
        """Write down what the grid is."""
        rows = [(key, json.dumps(value)) for key, value in words.items()]
        self._database.execute("BEGIN IMMEDIATE")  # whoever looks sees all of it, or nothing
        try:
            self._database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def write(
        self,
        entries: Sequence[Entry],
        jobs: Sequence[tuple[Job, str, str | None]] = (),
        submitted: Sequence[tuple[int, bytes]] = (),
        results: Sequence[tuple[int, bytes, str]] = (),
        decisions: Sequence[tuple[float, str, str, str | None, int]] = (),
    ) -> None:
        """Write one turn: what happened, how jobs now stand, their work and their results."""
        run = self._database.execute
        run("BEGIN IMMEDIATE")
        try:
            if entries:
                self._database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", entries)
            if decisions:
                self._database.executemany("INSERT INTO decision VALUES (?, ?, ?, ?, ?)", decisions)
            works = dict(submitted)
            for job, task_class, machine in jobs:
                if job.number in works:
                    new = (job.number, task_class, job.submitted, works[job.number])
                    run(INSERT, (*new, *_standing(job, machine)))
                else:
                    run(UPDATE, (*_standing(job, machine), job.number))
            for number, result, error in results:
                run("UPDATE job SET result=?, error=? WHERE number=?", (result, error, number))
            run("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise

    def jobs(self, *, contents: bool = True) -> Iterator[Kept]:
        """Return every job, in the order of submission; its work and result only if wanted."""
        blobs = "work, result, error" if contents else "NULL, NULL, error"
        words = f"number, class, submitted, {', '.join(STANDING)}, {blobs}"
        for row in self._database.execute(f"SELECT {words} FROM job ORDER BY number"):
            number, name, submitted, stage, machine, attempt = row[:6]
            job = Job(number, -1, submitted, Stage(stage), attempt=attempt)
            for key, time in zip(TIMES, row[6:14], strict=True):
                setattr(job, key, float("nan") if time is None else time)
            job.lost, job.timed_out, job.deaths = row[14:17]
            job.causes = tuple(json.loads(row[17])) if row[17] else ()
            yield Kept(job, name, machine or "", row[18] or b"", row[19] or b"", row[20] or "")

    def table(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return columns of a table, in the order of its rows."""
        words = ", ".join(columns)
        return list(self._database.execute(f"SELECT {words} FROM {name} ORDER BY rowid"))

    def select(self, words: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what a query finds."""
        return list(self._database.execute(f"SELECT {words}", values))

    def last(self) -> float:
        """Return when something last happened."""
        return float(self._database.execute("SELECT max(time) FROM event").fetchone()[0] or 0.0)

    def count(self) -> dict[str, int]:
        """Count the jobs in every stage."""
        return dict(self._database.execute("SELECT stage, count(*) FROM job GROUP BY stage"))

    def mean_response(self) -> float:
        """Return the mean response of the jobs that have finished; nan before the first."""
        found = self.tally()[2]
        return float("nan") if found is None else float(found)

    def tally(self) -> tuple[int, int, float | None]:
        """Count the jobs and those that have finished, with their mean response."""
        mean = "avg(CASE stage WHEN 'finished' THEN ended - submitted END)"
        words = f"SELECT count(*), total(stage = 'finished'), {mean} FROM job"
        number, finished, response = self._database.execute(words).fetchone()
        return number, int(finished), response

    def events(self, *kinds: str) -> list[Entry]:
        """Return everything that happened, in its order, or what is of some kinds."""
        where = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        if kinds and not set(kinds) & set(USUAL):
            where += f" AND {UNUSUAL}"
        rows = self._database.execute(f"SELECT * FROM event {where} ORDER BY rowid", kinds)
        return [Entry(*row) for row in rows]

    def decisions(self) -> list[tuple[float, str, str, str | None, int]]:
        """Return what was answered to whom, in its order."""
        return list(self._database.execute("SELECT * FROM decision ORDER BY rowid"))

    # requests of operators in other processes

    def ask(self, verb: str, machine: str, value: str = "") -> int:
        """Leave a request for the grid that writes this journal; return its number."""
        words = (verb, machine, value)
        cursor = self._database.execute(
            "INSERT INTO request (verb, machine, value) VALUES (?, ?, ?)", words
        )
        return cursor.lastrowid or 0

    def requests(self) -> list[Request]:
        """Return the requests that have no answer yet."""
        rows = self._database.execute(
            "SELECT number, verb, machine, value FROM request WHERE answer IS NULL ORDER BY number"
        )
        return [Request(*row) for row in rows]

    def answer(self, number: int, answer: str) -> None:
        """Answer a request."""
        self._database.execute("UPDATE request SET answer=? WHERE number=?", (answer, number))

    def answered(self, number: int) -> str | None:
        """Return the answer to a request, if there is one."""
        row = self._database.execute("SELECT answer FROM request WHERE number=?", (number,))
        return row.fetchone()[0]

    def touched(self) -> int:
        """Return a number that changes when another process has written to the journal."""
        return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the file; it is nobody's then."""
        self._database.close()
        self.release()


INSERT = f"INSERT INTO job VALUES ({', '.join('?' * (4 + len(STANDING)))}, NULL, NULL)"
UPDATE = f"UPDATE job SET {', '.join(f'{name}=?' for name in STANDING)} WHERE number=?"


def _standing(job: Job, machine: str | None) -> tuple[Any, ...]:
    times = (getattr(job, name) for name in TIMES)
    known = tuple(None if time != time else time for time in times)
    causes = json.dumps(job.causes) if job.causes else None
    counts = (job.lost, job.timed_out, job.deaths)
    return (str(job.stage), machine, job.attempt, *known, *counts, causes)
