"""The history of a machine's CPU availability: a small file on its own disk."""

from __future__ import annotations

import re
import socket
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..model import InputError
from .journal import home
from .prediction import MINUTES, slot_of

__all__ = ["Extent", "History", "history_path"]

WEEK = 7

# By weekday and minute, so that what a prediction needs stands together in the file.
SCHEMA = """
CREATE TABLE IF NOT EXISTS reading (
    weekday INTEGER NOT NULL, minute INTEGER NOT NULL, day INTEGER NOT NULL,
    seconds REAL NOT NULL, available REAL NOT NULL,
    PRIMARY KEY (weekday, minute, day)) WITHOUT ROWID;
"""
ADD = """
INSERT INTO reading VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    seconds = seconds + excluded.seconds, available = available + excluded.available
"""
PATIENCE = 10.0
"""Seconds to wait for another agent of this computer that is writing."""


def history_path() -> Path:
    """Return the file of this computer; one each, for a home folder may be shared by many."""
    host = re.sub(r"[^\w.-]", "_", socket.gethostname()) or "host"
    return home() / "availability" / f"{host}.sqlite"


class Extent(NamedTuple):
    """How much is known."""

    weeks: int
    """In which there is any reading."""
    intervals: int
    """Of a week, that have a reading in any week."""
    hours: float
    """Measured in all."""
    first: str
    """The first day, as 2024-01-31; empty if there is none."""
    last: str


class History:
    """What was measured, minute by minute: seconds looked at, and seconds available in them.

    Minutes are kept, and not the intervals that days are cut into, so that these can be changed
    and nothing is lost. Several agents may write to one file; what they saw of a minute is
    averaged. A file that is not there is an empty history, and made when something is added.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or history_path()

    def add(self, end: float, seconds: float, share: float) -> None:
        """Add what was available during the seconds before a time, to every minute in them."""
        rows = []
        while seconds > 1e-9:
            just_before = end - 1e-6
            day, minute = slot_of(just_before, MINUTES)
            into = just_before % 60 + 1e-6  # time zones differ by whole minutes
            part = min(seconds, into)
            rows.append((day % WEEK, minute, day, part, part * share))
            end, seconds = end - part, seconds - part
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as database, database:
                database.executemany(ADD, rows)
        except (OSError, sqlite3.Error) as error:
            raise self._wrong(error) from None

    def past(self, time: float, intervals: int) -> dict[int, float]:
        """Return the means of an interval on this weekday, by how many weeks ago."""
        day, interval = slot_of(time, intervals)
        length = MINUTES // intervals
        found = self._rows(
            "SELECT day, sum(available) / sum(seconds) FROM reading"
            " WHERE weekday = ? AND minute >= ? AND minute < ? AND day < ? GROUP BY day",
            (day % WEEK, interval * length, (interval + 1) * length, day),
        )
        return {(day - then) // WEEK: _share(mean) for then, mean in found}

    def week(self, intervals: int) -> list[list[float]]:
        """Return the mean of each interval of a week, Monday first; NaN where nothing is known."""
        means = [[float("nan")] * intervals for _ in range(WEEK)]
        for weekday, interval, mean in self._rows(
            "SELECT weekday, minute * ? / ?, sum(available) / sum(seconds) FROM reading"
            " GROUP BY 1, 2",
            (intervals, MINUTES),
        ):
            # The calendar's first day was a Monday, and has number 1.
            means[(weekday - 1) % WEEK][interval] = _share(mean)
        return means

    def extent(self, intervals: int) -> Extent:
        """Return how much is known, with days cut into so many intervals."""
        rows = self._rows(
            "SELECT count(DISTINCT (day - 1) / 7), count(DISTINCT weekday * ?1 + minute * ?1 / ?2),"
            " coalesce(sum(seconds), 0) / 3600, min(day), max(day) FROM reading",
            (intervals, MINUTES),
        )
        weeks, known, hours, first, last = rows[0] if rows else (0, 0, 0.0, None, None)
        return Extent(weeks, known, hours, _date(first), _date(last))

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        if not self.path.exists():
            return []
        try:
            with closing(self._open()) as database:
                return database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._wrong(error) from None

    def _open(self) -> sqlite3.Connection:
        """Open the file for a moment: a connection kept would be of no use in another thread."""
        database = sqlite3.connect(self.path, timeout=PATIENCE)
        try:
            database.executescript(SCHEMA)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _wrong(self, error: Exception) -> InputError:
        return InputError(f"{self.path} is no history that can be used: {error}")


def _share(mean: float) -> float:
    return min(max(mean, 0.0), 1.0)


def _date(day: int | None) -> str:
    return "" if day is None else datetime.fromordinal(day).date().isoformat()
