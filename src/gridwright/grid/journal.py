"""The journal of a grid: a SQLite file with its jobs and events, written before the grid acts."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..model import InputError
from .event import UNUSUAL, USUAL, Entry
from .job import PLAIN, Job, Options, Stage
from .journal_format import ENDED, SCHEMA, SOUND, STANDING, TIMES, TOLD, VERSION
from .ownership import Ownership

IN_MEMORY = Path(":memory:")
"""The path of a journal in memory, which is lost when it is closed."""
BUSY = 5000
"""Milliseconds for which a reader waits for SQLite's write lock."""
BUSY_OWNER = 10
"""The same for the grid that writes the journal: its event loop tries again later instead."""
WARNING = logging.getLogger("gridwright").warning


class Kept(NamedTuple):
    """A job in the journal."""

    job: Job
    task_class: str
    machine: str
    work: bytes
    result: bytes
    error: str


class Request(NamedTuple):
    """A request of an operator to a grid in another process."""

    number: int
    verb: str
    machine: str
    value: str


def _advice(path: Path) -> str:
    """Return what to do about a journal that SQLite cannot open, if it is on a read-only disk."""
    with suppress(OSError):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            return "; its file system is read-only: copy it to a folder that can be written"
    return ""


class Journal:
    """A file with the jobs of a grid and all their events.

    Times are in time units since the grid began; ``about`` has that time and the seconds of a unit.
    The file survives a kill of this process at any moment. A turn of the grid is one transaction.
    """

    def __init__(self, path: Path, *, new: bool = True) -> None:
        self.path, self._absolute = path, path.absolute()
        self._process = os.getpid()
        self._lock = Ownership(path)
        if not new and not path.is_file():
            raise InputError(f"{path}: there is no such journal")
        has_log = Path(f"{path}-wal").exists()
        try:
            if path != IN_MEMORY:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with suppress(FileExistsError):  # to close one that exists would free its locks
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._database = sqlite3.connect(
                path, timeout=BUSY / 1000, isolation_level=None, check_same_thread=False
            )
            try:
                if not new:
                    self._check()  # before anything is changed in it
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=NORMAL")
                if self._check(new=True):
                    words = f"BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;"
                    self._database.executescript(words)
                elif self.told("open").get("open"):
                    self._look_whether_old(has_log=has_log)
            except BaseException:
                self._database.close()
                raise
        except (OSError, sqlite3.Error, UnicodeError) as error:
            why = f"{error}{_advice(path)}"
            raise InputError(f"{path} cannot be used as a journal: {why}") from None

    def _look_whether_old(self, *, has_log: bool) -> None:
        """Warn of a copy of a grid's journal that was made without its log.

        A grid marks its journal as open until it is closed. If nobody has it open, the grid was
        killed and its log is here, or this is a copy.
        """
        try:
            with self._lock.kept_from_others():
                if has_log:
                    self.describe(open=False)
                else:
                    WARNING(
                        "%s may be old: it was copied without %s-wal, which has the latest changes",
                        *(self.path, self.path.name),
                    )
        except (OSError, sqlite3.Error):  # a grid has it open, or it cannot be written
            return

    def _check(self, *, new: bool = False) -> bool:
        """Check that the file is a journal; return whether it is empty, which a new one may be."""
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables:
                raise InputError(f"{self.path} is a database, but not the journal of a grid")
            if not new:
                raise InputError(f"{self.path} is empty; it is not the journal of a grid")
            return True
        if version != VERSION:
            raise InputError(
                f"{self.path} is a journal of version {version}; this Gridwright reads {VERSION}"
            )
        return False

    def claim(self) -> None:
        """Take the right to write this journal, until it is closed or this process ends.

        Requests to an earlier grid that have no answer are refused.
        """
        if self.path == IN_MEMORY or self._lock.is_ours:
            return
        self._lock.take()
        try:
            self.check()
            for request in self.requests():
                self.answer(request.number, "error: the grid that this was asked of had ended")
            self.describe(open=True)
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a copy has the mark
            self._database.execute(f"PRAGMA busy_timeout={BUSY_OWNER}")
            for ending in ("", "-wal", "-shm", "-lock"):
                with suppress(OSError):
                    os.chmod(f"{self.path}{ending}", 0o600)
        except BaseException as error:
            self._lock.let_go()
            if isinstance(error, sqlite3.Error):
                raise InputError(f"{self.path} cannot be written: {error}") from None
            raise
        self._lock.put_up_sign()

    def release(self) -> None:
        """Let others write this journal."""
        if self._lock.is_ours:
            with suppress(sqlite3.Error):
                self._database.execute(f"PRAGMA busy_timeout={BUSY}")
                self.describe(open=False)
            self._lock.let_go()

    def is_claimed(self) -> bool:
        """Tell whether a grid is writing this journal."""
        return self._lock.is_taken()

    def owner(self) -> int | None:
        """Return the process on this computer that is writing this journal, if one is."""
        return self._lock.owner()

    def is_elsewhere(self) -> bool:
        """Tell whether a grid on another computer is writing this journal."""
        return self._lock.is_elsewhere()

    @property
    def about(self) -> dict[str, Any]:
        """The description of the grid: origin, time unit, policy, classes and machines."""
        return self.told()

    def told(self, *keys: str) -> dict[str, Any]:
        """Return some keys of the description, or all; the jobs of a long run are a long text."""
        where = f"WHERE key IN ({', '.join('?' * len(keys))})" if keys else ""
        rows = self.select(f"key, value FROM about {where}", keys)
        try:
            return {key: json.loads(value) for key, value in rows}
        except (TypeError, ValueError, RecursionError):
            raise InputError(f"{self.path} is damaged: its description is not JSON") from None

    def describe(self, **words: Any) -> None:
        """Write keys of the description."""
        rows = [(key, json.dumps(value)) for key, value in words.items()]
        with self._transaction():  # readers see all of it, or nothing
            self._database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)

    @contextmanager
    def reader(self) -> Iterator[Journal]:
        """Open the file once more, to read one state of it beside the thread that writes it."""
        other = copy(self)
        try:
            other._database = sqlite3.connect(
                f"{self._absolute.as_uri()}?mode=rw", BUSY / 1000, isolation_level=None, uri=True
            )
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be read: {error}") from None
        try:
            other._database.execute("PRAGMA query_only=1")
            with other.snapshot():
                yield other
        finally:
            other._database.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries inside see one state of the journal, whatever a grid writes meanwhile."""
        inside = self._database.in_transaction
        with nullcontext() if inside else self._transaction("DEFERRED"):
            yield

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        self._database.execute(f"BEGIN {kind}")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
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
        """Write one turn: its events, the state of its jobs, their calls and their results."""
        works, new, known = dict(submitted), [], []
        answers = {number: (result, error) for number, result, error in results}
        ended = []
        for job, task_class, machine in jobs:
            row = _standing(job, machine)
            if job.number in works:
                options = json.dumps(job.options.as_json()) if job.options != PLAIN else None
                needs = json.dumps(job.needs) if job.needs else None
                about = (job.key, options, needs)
                head = (job.number, task_class, job.submitted, works[job.number])
                new.append((*head, *about, *row))
            elif job.number in answers:
                ended.append((*row, *answers.pop(job.number), job.number))
            else:
                known.append((*row, job.number))
        rest = [(*answer, number) for number, answer in answers.items()]
        with self._transaction():
            for words, rows in (
                ("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", [each.row() for each in entries]),
                ("INSERT INTO decision VALUES (?, ?, ?, ?, ?)", decisions),
                (INSERT, new),
                (UPDATE, known),
                (END, ended),
                ("UPDATE job SET result=?, error=? WHERE number=?", rest),
            ):
                if rows:
                    self._database.executemany(words, rows)

    def jobs(self, *, contents: bool = True, ended: bool = True) -> Iterator[Kept]:
        """Return jobs in the order of submission; calls, results and ended jobs only if wanted."""
        which = "" if ended else f"WHERE stage NOT IN {ENDED}"
        blobs = "work, result, error" if contents else "NULL, NULL, error"
        words = f"number, class, submitted, {', '.join(STANDING)}, key, options, needs, {blobs}"
        for row in self._rows(f"SELECT {words} FROM job {which} ORDER BY number"):
            number, name, submitted, stage, machine, attempt = row[:6]
            if stage not in Stage.__members__:
                raise InputError(f"{self.path} is damaged: a job has stage {stage!r}")
            job = Job(number, -1, submitted, Stage(stage), attempt=attempt)
            for key, time in zip(TIMES, row[6:14], strict=True):
                setattr(job, key, float("nan") if time is None else time)
            job.lost, job.timed_out, job.deaths = row[14:17]
            job.key = row[18]
            try:
                job.causes = tuple(json.loads(row[17] or "[]"))
                job.options = Options(**json.loads(row[19])) if row[19] else PLAIN
                job.needs = tuple(map(int, json.loads(row[20] or "[]")))
            except (TypeError, ValueError):
                raise InputError(f"{self.path} is damaged: job {number} makes no sense") from None
            yield Kept(job, name, machine or "", row[21] or b"", row[22] or b"", row[23] or "")

    def work(self, number: int) -> bytes:
        """Return the pickled call of a job."""
        found = self.select("work FROM job WHERE number=?", (number,))
        if not found or not isinstance(found[0][0], bytes):
            raise InputError(f"{self.path} is damaged: the call of job {number} is missing")
        return found[0][0]

    def result(self, number: int) -> bytes:
        """Return the pickled result of a job that has finished."""
        found = self.select("result FROM job WHERE number=? AND stage='finished'", (number,))
        if not found or not isinstance(found[0][0], bytes):
            raise InputError(f"{self.path} is damaged: the result of job {number} is missing")
        return found[0][0]

    def table(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return columns of a table, in the order of its rows."""
        words = ", ".join(columns)
        return self.select(f"{words} FROM {name} ORDER BY rowid")

    def select(self, words: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return list(self._rows(f"SELECT {words}", values))

    def _rows(self, words: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._database.execute(words, values)
        except sqlite3.ProgrammingError:  # it is closed
            raise
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise InputError(f"{self.path} cannot be read: {error}") from None

    def last(self) -> float:
        """Return the time of the last event."""
        found = self.select("max(time) FROM event WHERE typeof(time) = 'real'")
        return float(found[0][0] or 0.0)

    def count(self) -> dict[str, int]:
        """Count the jobs in each stage."""
        return dict(self.select("stage, count(*) FROM job GROUP BY stage"))

    def tally(self) -> tuple[int, int, float | None]:
        """Return the number of jobs, of finished jobs, and the mean response of these."""
        mean = "avg(CASE stage WHEN 'finished' THEN ended - submitted END)"
        words = f"count(*), total(stage = 'finished'), {mean} FROM job"
        number, finished, response = self.select(words)[0]
        return number, int(finished), response

    def events(self, *kinds: str) -> list[Entry]:
        """Return the events in their order: all, or those of some kinds."""
        where = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        if kinds and not set(kinds) & set(USUAL):
            where += f" AND {UNUSUAL}"
        return self.entries(f"{where} ORDER BY rowid", kinds)

    def entries(self, which: str, values: Sequence[Any] = ()) -> list[Entry]:
        """Return the events that a condition and order in SQL select."""
        rows = self.select(f"time, kind, job, attempt, machine, fields FROM event {which}", values)
        try:
            return [Entry.read(row) for row in rows]
        except (TypeError, ValueError, RecursionError):
            raise InputError(
                f"{self.path} is damaged: the fields of an event are not JSON"
            ) from None

    def decisions(self) -> list[tuple[float, str, str, str | None, int]]:
        """Return the decisions of the policy in their order."""
        return self.select("* FROM decision ORDER BY rowid")

    # requests of operators in other processes

    def ask(self, verb: str, machine: str, value: str = "") -> int:
        """Add a request to the grid that writes this journal; return its number."""
        words = (verb, machine, value)
        try:
            cursor = self._database.execute(
                "INSERT INTO request (verb, machine, value) VALUES (?, ?, ?)", words
            )
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be written: {error}") from None
        return cursor.lastrowid or 0

    def requests(self) -> list[Request]:
        """Return the requests that have no answer yet."""
        words = "number, verb, machine, value FROM request WHERE answer IS NULL ORDER BY number"
        return [Request(*row) for row in self.select(words)]

    def answer(self, number: int, answer: str) -> None:
        """Answer a request."""
        self._database.execute("UPDATE request SET answer=? WHERE number=?", (answer, number))

    def answered(self, number: int) -> str | None:
        """Return the answer to a request, if there is one."""
        found = self.select("answer FROM request WHERE number=?", (number,))
        return found[0][0] if found else None

    def touched(self) -> int:
        """Return a number that changes when another process has written to the journal."""
        return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the file; others may write it then."""
        if self._process != os.getpid():
            return  # a fork must not use its parent's connection
        self.release()
        self._database.close()

    # checks of the contents

    def check(self) -> None:
        """Read the whole journal; raise InputError if it is damaged."""
        if wrong := self._wrong():
            raise InputError(f"{self.path} is damaged: {wrong}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Replace an error inside by one that says what is damaged in the journal."""
        try:
            yield
        except InputError:
            raise
        except Exception:
            with suppress(sqlite3.ProgrammingError):
                self.check()
            raise

    def _wrong(self) -> str:
        """Return what is damaged, or an empty text."""
        try:
            for (found,) in self._rows("PRAGMA quick_check(1)"):
                if found != "ok":
                    return " ".join(str(found).split())
            for name, columns in SOUND.items():
                right = " AND ".join(f"({words})" for words in columns)
                wrong = self.select(f"rowid FROM {name} WHERE NOT ({right}) LIMIT 1")
                if wrong:
                    return f"row {wrong[0][0]} of its table {name} makes no sense"
            about = self.about
            names = {
                column: {name for (name,) in self.select(f"DISTINCT {column} FROM job")}
                for column in ("class", "machine")
            }
        except InputError as error:
            return str(error).removeprefix(f"{self.path} ")
        for key, kind in TOLD.items():
            if key in about and not isinstance(about[key], kind):
                return f"{key} is {str(about[key])[:40]!r}"
        if about.get("kind") == "run":
            if not isinstance(about.get("experiment", {}).get("system"), dict):
                return "its experiment has no system"
            for column, known in (("class", "classes"), ("machine", "machines")):
                told = about.get(known)
                if not isinstance(told, list):
                    return f"{known} is {str(told)[:40]!r}"
                if unknown := names[column] - {None, *map(str, told)}:
                    return f"a job has the {column} {str(unknown.pop())[:40]!r}, which is not known"
        return ""


INSERT = f"INSERT INTO job VALUES ({', '.join('?' * (7 + len(STANDING)))}, NULL, NULL)"
UPDATE = f"UPDATE job SET {', '.join(f'{name}=?' for name in STANDING)} WHERE number=?"
END = UPDATE.replace(" WHERE", ", result=?, error=? WHERE")
_times = attrgetter(*TIMES)


def _standing(job: Job, machine: str | None) -> tuple[Any, ...]:
    known = [None if time != time else time for time in _times(job)]
    causes = json.dumps(job.causes) if job.causes else None
    counts = (job.lost, job.timed_out, job.deaths)
    return (str(job.stage), machine, job.attempt, *known, *counts, causes)
