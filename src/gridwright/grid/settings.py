"""The settings of a grid: time limits, retries, and which beliefs follow measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from ..model import InputError
from ..model.record import Count, NonNegative, OneOrList, Positive, Record
from ..policies import Policy
from ..policies.kind import ON_TIMEOUT

if TYPE_CHECKING:
    from .chain import KnownChains
    from .execution_times import ExecutionTimes

OnTimeout = str | Callable[..., str]
"""One of the words, or the function of a policy that answers one."""


class Curve(Record):
    """A threshold that depends on the load: linear between the given points.

    >>> Curve(load=[0, 0.5, 1], threshold=[0.5, 0.2, 0.05]).at(0.75)
    0.125
    """

    load: tuple[NonNegative, ...] = Field(min_length=1)
    threshold: tuple[NonNegative, ...] = Field(min_length=1)

    def at(self, load: float) -> float:
        """Return the threshold at a load."""
        return float(np.interp(load, self.load, self.threshold[: len(self.load)]))


def _curves(value: Any) -> Any:
    """Read a table as a curve, so that a mistake in it is explained as one in a curve."""
    if isinstance(value, list | tuple):
        return tuple(_curves(each) for each in value)
    return Curve(**value) if isinstance(value, dict) else value


Threshold = Annotated[OneOrList[NonNegative | Curve], BeforeValidator(_curves)]
"""Relative differences, for all classes or each: numbers, or curves over the load."""


class Corrections(Record):
    """Which beliefs follow measurements, and when.

    The published experiments ran with everything off. A threshold is a relative difference. It may
    be given for each class, and may depend on the load.

    >>> Corrections(arrivals=False, rate_threshold=[0.1, 0.2]).rate_threshold
    (0.1, 0.2)
    """

    availability: bool = True
    """Make a new plan when the measured CPU availability of a machine changes."""
    arrivals: bool = True
    """Use measured arrival rates."""
    rates: bool = True
    """Use measured execution rates."""
    overhead: bool = True
    """Reduce execution rates by the time that machines lose between jobs."""
    arrival_threshold: Threshold = 0.1
    rate_threshold: Threshold = 0.1
    every_arrivals: Count = 10
    """Check the arrival rates after this many arrivals."""
    every_time: Positive | None = None
    """Check them after this many time units instead."""
    arrival_safety: Positive = 1.0
    """Multiply measured arrival rates by this factor."""
    rate_safety: Positive = 1.0
    """Multiply measured execution rates by this factor."""
    trust: NonNegative = 100.0
    """How many measured jobs the initial rates count for."""

    def needs_load(self) -> bool:
        """Tell whether a threshold depends on the load."""
        return any(
            isinstance(each, Curve)
            for given in (self.arrival_threshold, self.rate_threshold)
            for each in (given if isinstance(given, tuple) else (given,))
        )

    def thresholds(self, name: str, classes: int, load: float) -> Floats:
        """Return the threshold of each class at a load; the last one holds for later classes."""
        given = getattr(self, name)
        values = given if isinstance(given, tuple) else (given,)
        found = [each.at(load) if isinstance(each, Curve) else each for each in values]
        return np.array([found[min(i, len(found) - 1)] for i in range(classes)])


def corrections_of(given: Any) -> Corrections:
    """Return corrections given as True, False, a table or a `Corrections`.

    >>> corrections_of(False).rates, corrections_of({"overhead": False}).rates
    (False, True)
    """
    if isinstance(given, Corrections):
        return given
    if isinstance(given, bool):
        names = ("availability", "arrivals", "rates", "overhead")
        return Corrections(**dict.fromkeys(names, given))
    if isinstance(given, dict):
        return Corrections(**given)
    raise InputError(f"corrections is {given!r}; expected true, false or a table")


def on_timeout_of(given: str | None, policy: Policy, default: str) -> OnTimeout:
    """Return what a time-out does: as given, else as the policy says, else by default."""
    return given or policy.options.get("on_timeout") or default


@dataclass(frozen=True)
class Settings:
    """The settings of a mapper."""

    timeout: float = 0.0
    """A job times out when it takes this many times its expected duration; 0: never."""
    seconds: float = 0.0
    """A job times out when an attempt takes this many seconds; 0: never."""
    class_seconds: Mapping[str, float] = field(default_factory=dict)
    """The same for the jobs of some classes."""
    on_timeout: OnTimeout = "resubmit"
    corrections: Corrections = field(default_factory=Corrections)
    guessed: bool = False
    """Whether the initial rates are only a guess."""
    resolution: float = 0.0
    """Time units between measurements of CPU availability; 0: none."""
    retries: int | None = None
    """How often a job is tried again after its process died or it timed out; None: without limit.

    With None, as in the published experiments, the machine of a job that timed out counts as down
    until it answers."""
    times: ExecutionTimes | KnownChains | None = None
    """What a batch or chain policy knows of jobs."""

    def __post_init__(self) -> None:
        if not callable(self.on_timeout) and self.on_timeout not in ON_TIMEOUT:
            raise InputError(f"on_timeout is {self.on_timeout!r}; expected {', '.join(ON_TIMEOUT)}")
        limits = [(f"timeout of class {name}", s) for name, s in self.class_seconds.items()]
        for what, value in (
            ("timeout_factor", self.timeout),
            ("timeout", self.seconds),
            *limits,
            ("resolution", self.resolution),
        ):
            if not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InputError(f"{what} is {value!r}; expected a number, 0 or more")


Floats = NDArray[np.float64]
