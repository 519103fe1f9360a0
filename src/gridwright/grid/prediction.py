"""Predict the CPU availability of a machine: a fixed share, or from earlier weeks."""

from __future__ import annotations

import re
import socket
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from ..model import InputError, did_you_mean
from ..model.record import NonNegative, PositiveOrInfinite, Record, explain, shortened
from .ownership import home

MINUTES = 24 * 60
"""Minutes of a day."""

MODES = {
    "weekly": {"weights"},
    "recursive": {"c", "start"},
    "fixed": {"availability", "period"},
}
"""The modes, and the parameters of each."""

Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class Slot(NamedTuple):
    """An interval of a day."""

    day: int
    """The ordinal of the date."""
    interval: int


def slot_of(time: float, intervals: int) -> Slot:
    """Return the interval of a time, in this computer's time zone.

    >>> slot_of(datetime(2024, 1, 1, 12, 20).timestamp(), 96)
    Slot(day=738886, interval=49)
    """
    here = datetime.fromtimestamp(time)
    return Slot(here.toordinal(), (60 * here.hour + here.minute) * intervals // MINUTES)


class Prediction(Record):
    """How the CPU availability of a machine is predicted.

    Parameters
    ----------
    mode
        ``weekly``: the weighted mean of the same interval of the same weekday in earlier weeks;
        ``recursive``: ``c`` times the measurement of a week plus ``1 - c`` times its prediction,
        from week to week; ``fixed``: a given share for a given time. Without a history, and after
        that time, the measured share is the prediction.
    intervals
        Equal parts of a day, each a whole number of minutes.
    weights
        Of the last week, the week before it, and so on. Weeks without measurements do not count.
    c, start
        The weight of the newest measurement, and the prediction before the first.
    availability, period
        The share, and for how many seconds it holds.

    Examples
    --------
    >>> Prediction.of("weekly").predict({1: 0.75, 3: 0.0}, measured=1.0)
    0.5
    >>> Prediction.of({"mode": "recursive", "c": 0.5}).predict({1: 0.75, 2: 1.0}, measured=1.0)
    0.75
    """

    mode: Annotated[Literal["weekly", "recursive", "fixed"], Field(title="Prediction mode")] = (
        "weekly"
    )
    intervals: Annotated[int, Field(strict=True, ge=1, le=MINUTES)] = 96
    weights: Annotated[
        tuple[NonNegative, ...],
        Field(title="Weights of earlier weeks", description="Last week first"),
    ] = (0.4, 0.3, 0.2, 0.1)
    c: Annotated[Share, Field(title="Weight of the last week")] = 0.5
    start: Share = 0.5
    availability: Share | None = None
    period: PositiveOrInfinite = float("inf")

    @classmethod
    def of(cls, value: Any) -> Self:
        """Make a prediction from the name of a mode, or from a table with a ``mode``."""
        if isinstance(value, cls):
            return value
        table = {"mode": value} if isinstance(value, str) else value
        if not isinstance(table, Mapping):
            raise InputError(
                f"{shortened(value)} is not a prediction; expected a mode such as 'weekly', "
                "or a table such as { mode = 'recursive', c = 0.3 }"
            )
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            raise InputError(f"prediction: {explain(error, cls)}") from None

    @model_validator(mode="before")
    @classmethod
    def _known_mode(cls, value: Any) -> Any:
        """Accept the name of a mode in place of a table."""
        table = {"mode": value} if isinstance(value, str) else value
        if isinstance(table, Mapping):
            mode = table.get("mode", "weekly")
            if not isinstance(mode, str) or mode not in MODES:
                hint = did_you_mean(str(mode), MODES) or f"; there are {', '.join(MODES)}"
                raise ValueError(f"no mode {shortened(mode)}{hint}")
        return table

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        own = MODES[self.mode] | {"mode", "intervals"}
        for key in type(self).model_fields:
            if key in self.model_fields_set - own:
                raise ValueError(f"{key} is not a parameter of mode {self.mode}")
        if MINUTES % self.intervals:
            raise ValueError(
                f"intervals is {self.intervals}; expected a divisor of {MINUTES}, "
                "so that each is a whole number of minutes"
            )
        if not sum(self.weights) > 0:
            raise ValueError("weights are all 0 or none; expected at least one > 0")
        if self.mode == "fixed" and self.availability is None:
            raise ValueError("availability is missing; mode fixed needs it")
        return self

    def predict(self, past: Mapping[int, float], measured: float, elapsed: float = 0.0) -> float:
        """Return the predicted share.

        ``past`` has the shares of the same interval on the same weekday, by how many weeks ago;
        ``measured`` is the share now; ``elapsed`` are the seconds since a fixed share was set.
        """
        if self.availability is not None:  # the mode is fixed
            return self.availability if elapsed < self.period else measured
        if self.mode == "weekly":
            counted = [
                (weight, past[week])
                for week, weight in enumerate(self.weights, start=1)
                if week in past and weight > 0
            ]
            shares = [share for _, share in counted]
            if counted:
                total = sum(weight for weight, _ in counted)
                expected = sum(weight * share for weight, share in counted) / total
        else:
            shares = [past[week] for week in sorted(past, reverse=True) if week > 0]
            expected = self.start
            for share in shares:
                expected = self.c * share + (1 - self.c) * expected
            shares = [self.start, *shares] if shares else []
        # rounding must not exceed the values that the mean is of
        return min(max(expected, min(shares)), max(shares)) if shares else measured


def predictions_of(value: Any, machines: int) -> list[Prediction]:
    """Return a prediction for each machine, from one for all or a list with one for each.

    >>> [each.mode for each in predictions_of(["weekly", "recursive"], 2)]
    ['weekly', 'recursive']
    """
    if not isinstance(value, list | tuple):
        return [Prediction.of(value)] * machines
    if len(value) != machines:
        raise InputError(f"{len(value)} predictions for {machines} machines; give as many, or one")
    return [Prediction.of(each) for each in value]


WEEK = 7

# Ordered by weekday and minute, because predictions read it so.
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
"""Seconds to wait while another agent of this computer writes."""


def history_path() -> Path:
    """Return the file of this computer; several computers may share a home folder."""
    host = re.sub(r"[^\w.-]", "_", socket.gethostname()) or "host"
    return home() / "availability" / f"{host}.sqlite"


class Extent(NamedTuple):
    """How much a history has."""

    weeks: int
    """Weeks with a measurement."""
    intervals: int
    """Intervals of a week with a measurement in any week."""
    hours: float
    """Hours that were measured."""
    first: str
    """The first day, as 2024-01-31, or an empty text."""
    last: str


class History:
    """The measurements of a computer: for each minute the seconds measured and those available.

    It stores minutes, so that the number of intervals can be changed later. Several agents may
    write to one file; their measurements of a minute are averaged. `add` creates a missing file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or history_path()

    def add(self, end: float, seconds: float, share: float) -> None:
        """Add the share that was available in the seconds before ``end``, split into minutes."""
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
        """Return the mean shares of an interval on this weekday, by how many weeks ago."""
        day, interval = slot_of(time, intervals)
        length = MINUTES // intervals
        found = self._rows(
            "SELECT day, sum(available) / sum(seconds) FROM reading"
            " WHERE weekday = ? AND minute >= ? AND minute < ? AND day < ? GROUP BY day",
            (day % WEEK, interval * length, (interval + 1) * length, day),
        )
        return {(day - then) // WEEK: _share(mean) for then, mean in found}

    def week(self, intervals: int) -> list[list[float]]:
        """Return the mean share of each interval of a week, Monday first; nan if unknown."""
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
        """Return how much was measured, for days of so many intervals."""
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
        """Open the file; a connection cannot be used in another thread, so none is kept."""
        database = sqlite3.connect(self.path, timeout=PATIENCE)
        try:
            database.executescript(SCHEMA)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _wrong(self, error: Exception) -> InputError:
        return InputError(f"{self.path} cannot be used as a history: {error}")


def _share(mean: float) -> float:
    return min(max(mean, 0.0), 1.0)


def _date(day: int | None) -> str:
    return "" if day is None else datetime.fromordinal(day).date().isoformat()
