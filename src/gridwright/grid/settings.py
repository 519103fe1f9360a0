"""How a grid goes about its work."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from ..model import InputError
from ..model.record import Count, NonNegative, OneOrList, Positive, Record

__all__ = [
    "Corrections",
    "Curve",
    "Settings",
    "corrections_of",
]

ON_TIMEOUT = ("resubmit", "wait", "fail", "duplicate")


class Curve(Record):
    """A threshold that depends on the load: straight lines between the points given.

    >>> Curve(load=[0, 0.5, 1], threshold=[0.5, 0.2, 0.05]).at(0.75)
    0.125
    """

    load: tuple[NonNegative, ...] = Field(min_length=1)
    threshold: tuple[NonNegative, ...] = Field(min_length=1)

    def at(self, load: float) -> float:
        """Return the threshold at a load."""
        return float(np.interp(load, self.load, self.threshold[: len(self.load)]))


def _curves(value: Any) -> Any:
    """Tell a curve from a number, so that a mistake is explained as one in a curve."""
    if isinstance(value, list | tuple):
        return tuple(_curves(each) for each in value)
    return Curve(**value) if isinstance(value, dict) else value


Threshold = Annotated[OneOrList[NonNegative | Curve], BeforeValidator(_curves)]
"""A relative difference: one for all classes or one for each; a number, or a curve of the load."""


class Corrections(Record):
    """Which beliefs follow the measurements, and when.

    Everything off is how the published experiments ran. Thresholds are relative differences; one
    may be given for each class, and may depend on the load.

    >>> Corrections(arrivals=False, rate_threshold=[0.1, 0.2]).rate_threshold
    (0.1, 0.2)
    """

    availability: bool = True
    """Plan anew when a reading of a machine's CPU availability has changed."""
    arrivals: bool = True
    """Believe in measured arrival rates."""
    rates: bool = True
    """Believe in measured execution rates."""
    overhead: bool = True
    """Take the time between jobs that no machine works for off the execution rates."""
    arrival_threshold: Threshold = 0.1
    rate_threshold: Threshold = 0.1
    every_arrivals: Count = 10
    """Look at the arrival rates after so many arrivals,"""
    every_time: Positive | None = None
    """or after so many time units."""
    arrival_safety: Positive = 1.0
    """Believe in this many times the measured arrival rates,"""
    rate_safety: Positive = 1.0
    """and in this many times the measured execution rates."""
    trust: NonNegative = 100.0
    """Jobs that the rates given at the start are worth: what is measured counts beside them."""

    def needs_load(self) -> bool:
        """Tell whether a threshold depends on the load."""
        return any(
            isinstance(each, Curve)
            for given in (self.arrival_threshold, self.rate_threshold)
            for each in (given if isinstance(given, tuple) else (given,))
        )

    def thresholds(self, name: str, classes: int, load: float) -> Floats:
        """Return the threshold of every class at a load; the last given holds for further ones."""
        given = getattr(self, name)
        values = given if isinstance(given, tuple) else (given,)
        found = [each.at(load) if isinstance(each, Curve) else each for each in values]
        return np.array([found[min(i, len(found) - 1)] for i in range(classes)])


def corrections_of(given: Any) -> Corrections:
    """Read corrections as they are given: on, off, or in detail.

    >>> corrections_of(False).rates, corrections_of({"overhead": False}).rates
    (False, True)
    """
    if isinstance(given, Corrections):
        return given
    if isinstance(given, bool):
        return Corrections(
            **dict.fromkeys(("availability", "arrivals", "rates", "overhead"), given)
        )
    if isinstance(given, dict):
        return Corrections(**given)
    raise InputError(f"corrections is {given!r}; expected true, false or a table")


@dataclass(frozen=True)
class Settings:
    """How a mapper goes about its work."""

    timeout: float = 0.0
    """A job that takes this many times what is expected is given up; 0: never."""
    on_timeout: str = "resubmit"
    corrections: Corrections = field(default_factory=Corrections)
    guessed: bool = False
    """Whether the rates at the start are a mere guess."""
    resolution: float = 0.0
    """Time units between readings of CPU availability; 0: none."""
    retries: int | None = None
    """How often a job is tried again after its process died or it timed out; None: for ever.

    None is how the published experiments ran: the machine of a job that timed out then counts as
    down until it answers."""

    def __post_init__(self) -> None:
        if self.on_timeout not in ON_TIMEOUT:
            raise InputError(f"on_timeout is {self.on_timeout!r}; expected {', '.join(ON_TIMEOUT)}")
        for what, value in (("timeout", self.timeout), ("resolution", self.resolution)):
            if not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InputError(f"{what} is {value!r}; expected a number, 0 or more")


Floats = NDArray[np.float64]
