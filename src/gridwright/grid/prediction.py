"""What share of a machine's CPU to expect: fixed, or from the same time in earlier weeks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from ..model import InputError, did_you_mean
from ..model.record import NonNegative, PositiveOrInfinite, Record, explain, shortened

__all__ = ["MINUTES", "MODES", "Prediction", "Slot", "predictions_of", "slot_of"]

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
    """Days since the calendar began; the same weekday comes every seven."""
    interval: int


def slot_of(time: float, intervals: int) -> Slot:
    """Return the interval that a time is in, by the machine's own clock on the wall.

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
        ``recursive``: ``c`` times the reading of a week and ``1 - c`` times what was expected of
        it, from week to week; ``fixed``: a given share for a given time, then what is measured.
        Without a history, what is measured now.
    intervals
        Equal parts of a day, each a whole number of minutes.
    weights
        Of the last week, the week before it, and so on. Weeks without a reading do not count.
    c, start
        The weight of the newest reading, and what is expected before the first.
    availability, period
        The share, and how many seconds it holds.

    Examples
    --------
    >>> Prediction.of("weekly").predict({1: 0.75, 3: 0.0}, measured=1.0)
    0.5
    >>> Prediction.of({"mode": "recursive", "c": 0.5}).predict({1: 0.75, 2: 1.0}, measured=1.0)
    0.75
    """

    mode: Literal["weekly", "recursive", "fixed"] = "weekly"
    intervals: Annotated[int, Field(strict=True, ge=1, le=MINUTES)] = 96
    weights: tuple[NonNegative, ...] = (0.4, 0.3, 0.2, 0.1)
    c: Share = 0.5
    start: Share = 0.5
    availability: Share | None = None
    period: PositiveOrInfinite = float("inf")

    @classmethod
    def of(cls, value: Any) -> Self:
        """Make one of a mode's name, or of a table with a ``mode`` and its parameters."""
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
        """Take a mode's name for a table, so that a field of a record may be either."""
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
                raise ValueError(f"{key} is no parameter of mode {self.mode}")
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
        """Return the share to expect.

        Parameters
        ----------
        past
            The readings of the same interval on the same weekday, by how many weeks ago.
        measured
            The share now.
        elapsed
            Seconds since a fixed share began to hold.
        """
        if self.availability is not None:  # the mode is fixed
            return self.availability if elapsed < self.period else measured
        if self.mode == "weekly":
            return self._weekly(past, measured)
        return self._recursive(past, measured)

    def _weekly(self, past: Mapping[int, float], measured: float) -> float:
        counted = [
            (weight, past[week])
            for week, weight in enumerate(self.weights, start=1)
            if week in past and weight > 0
        ]
        if not counted:
            return measured
        total = sum(weight for weight, _ in counted)
        mean = sum(weight * share for weight, share in counted) / total
        return _between(mean, [share for _, share in counted])

    def _recursive(self, past: Mapping[int, float], measured: float) -> float:
        weeks = sorted((week for week in past if week > 0), reverse=True)
        if not weeks:
            return measured
        expected = self.start
        for week in weeks:
            expected = self.c * past[week] + (1 - self.c) * expected
        return _between(expected, [self.start, *(past[week] for week in weeks)])


def predictions_of(value: Any, machines: int) -> list[Prediction]:
    """Return a prediction for each machine: of one for all, or of a list of one each.

    >>> [each.mode for each in predictions_of(["weekly", "recursive"], 2)]
    ['weekly', 'recursive']
    """
    if not isinstance(value, list | tuple):
        return [Prediction.of(value)] * machines
    if len(value) != machines:
        raise InputError(f"{len(value)} predictions for {machines} machines; give as many, or one")
    return [Prediction.of(each) for each in value]


def _between(value: float, shares: list[float]) -> float:
    """Take away what rounding adds beyond the values that a mean is of."""
    return min(max(value, min(shares)), max(shares))
