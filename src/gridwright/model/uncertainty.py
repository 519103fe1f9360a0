"""What varies in a system: CPU availability, failures, changing rates, inaccurate beliefs."""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag, model_validator

from .distribution import AnyDistribution, Exponential
from .record import (
    Array,
    Fraction,
    Matrix,
    NonNegative,
    OneOrList,
    Positive,
    PositiveOrInfinite,
    Record,
    is_nested,
)


class MarkovChain(Record):
    """CPU availability that changes every ``step`` time units.

    ``states`` are shares of the CPU in (0, 1]; ``transition[k][l]`` is the probability that
    state k is followed by state l.

    >>> chain = MarkovChain(states=[1, 0.5], transition=[[0.9, 0.1], [0.3, 0.7]], step=10)
    >>> chain.stationary
    array([0.75, 0.25])
    >>> round(chain.mean, 6)
    0.875
    """

    states: tuple[Fraction, ...]
    transition: Matrix
    step: Positive

    @model_validator(mode="after")
    def _is_a_chain(self) -> Self:
        size = len(self.states)
        if not size:
            raise ValueError("states is empty; expected at least one")
        if self.transition.shape != (size, size):
            shape = "×".join(map(str, self.transition.shape))
            raise ValueError(f"transition is {shape}; expected {size}×{size}, a row per state")
        for row, total in enumerate(self.transition.sum(axis=1), start=1):
            if abs(total - 1) > 1e-9:
                raise ValueError(f"transition, row {row} sums to {total:.10g}; expected 1")
        singular = np.linalg.svd(self.transition - np.eye(size), compute_uv=False)
        if size > 1 and singular[-2] < 1e-12:
            raise ValueError("transition has parts that never reach each other; expected one part")
        return self

    @cached_property
    def stationary(self) -> NDArray[np.float64]:
        """The long-run share of time in each state."""
        size = len(self.states)
        balance = np.vstack([self.transition.T - np.eye(size), np.ones(size)])
        shares = np.linalg.lstsq(balance, np.append(np.zeros(size), 1.0), rcond=None)[0]
        return np.clip(shares, 0, 1)

    @cached_property
    def mean(self) -> float:
        """The long-run mean availability."""
        return float(np.dot(self.stationary, self.states))


Availability = Annotated[
    Annotated[Fraction, Tag("\0number")] | Annotated[MarkovChain, Tag("\0chain")],
    Discriminator(lambda value: "\0chain" if isinstance(value, dict | MarkovChain) else "\0number"),
]


class Failures(Record):
    """Up-times and repair times of the machines. Every value may be a list, one per column.

    A machine with an infinite mean up-time never fails. The distributions are scaled to the means.
    A task that is lost starts again. With ``same_work`` it has the same work then, as a real job
    has; otherwise it gets a new execution time.

    >>> Failures(mean_uptime=20, mean_repair=4).mean_uptime
    20.0
    """

    mean_uptime: Annotated[
        OneOrList[PositiveOrInfinite],
        Field(title="Mean up-time", description="Time units; empty: never fails"),
    ]
    mean_repair: Annotated[
        OneOrList[Positive], Field(title="Mean repair time", description="Time units")
    ]
    uptime: OneOrList[AnyDistribution] = Exponential()
    repair: OneOrList[AnyDistribution] = Exponential()
    same_work: Annotated[bool, Field(strict=True)] = False


class Delays(Record):
    """The delays of a real grid, in time units. A value may be a list, one per column or machine.

    A machine whose failure is not yet noticed still looks idle or busy: a task sent to it is
    stuck until the failure is noticed, or the machine comes back. A machine that fails also loses
    the task that is on its way to it and the result that is on its way back.

    >>> Delays(before=0.5, after=[0.1, 0.2]).after
    (0.1, 0.2)
    """

    before: OneOrList[NonNegative] = 0.0
    """Between sending a task and its arrival at the machine."""
    after: OneOrList[NonNegative] = 0.0
    """Between its end and the scheduler's knowing of it."""
    detection: OneOrList[NonNegative] = 0.0
    """Between a failure and the scheduler's knowing of it."""
    reporting: OneOrList[NonNegative] = 0.0
    """Between reports of CPU availability; 0: planners know its long-run mean."""
    sending: NonNegative = 0.0
    """For which the scheduler is busy with each task that it sends, one at a time (pull only)."""
    timeout: OneOrList[NonNegative] = 0.0
    """In place of ``detection``: a failure is noticed when the machine's task has taken this many
    times its expected time; 0: by ``detection`` (pull only)."""


Factors = Annotated[
    Annotated[tuple[NonNegative, ...], Tag("\0one")]
    | Annotated[tuple[tuple[NonNegative, ...], ...], Tag("\0several")],
    Discriminator(is_nested),
]


class Profile(Record):
    """Arrival rates that change: a cycle of periods, each with a factor of the rates.

    ``durations`` are those of the periods; the first follows the last. ``factors`` has a number for
    each period, or a row of such numbers for each class. If the profile is ``random``, durations
    are exponential with these means, drawn for each class by itself: bursts.

    >>> day = Profile(durations=[8, 16], factors=[0.5, 2])
    >>> day.rows(3).shape, day.means(1)
    ((3, 2), array([1.5]))
    """

    durations: tuple[Positive, ...]
    factors: Annotated[NDArray[np.float64], Array(Factors)]
    random: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _periods_fit(self) -> Self:
        periods, rows = len(self.durations), np.atleast_2d(self.factors)
        if not periods:
            raise ValueError("durations is empty; expected at least one")
        if rows.shape[1] != periods:
            raise ValueError(
                f"factors has {rows.shape[1]} columns; expected {periods}, one per duration"
            )
        if not rows.any(axis=1).all():
            raise ValueError("factors of a class are all 0; expected one > 0")
        return self

    def rows(self, classes: int) -> NDArray[np.float64]:
        """Return the factors [class, period]."""
        return np.broadcast_to(np.atleast_2d(self.factors), (classes, len(self.durations)))

    def means(self, classes: int) -> NDArray[np.float64]:
        """Return the long-run mean factor of each class."""
        return np.asarray(np.average(self.rows(classes), axis=1, weights=self.durations))


class Changes(Record):
    """Changes at exponential intervals. A machine hears of others' changes only when they talk.

    At every change, one arrival or execution rate that can change, each equally likely, becomes one
    of its factors × its first value; and every machine takes one of the availabilities, if given.

    >>> Changes(mean_interval=20, rates=[1, 1.05, 1.15]).rates
    (1.0, 1.05, 1.15)
    """

    mean_interval: Positive
    arrivals: tuple[Positive, ...] = ()
    """Factors of an arrival rate at a machine."""
    rates: tuple[Positive, ...] = ()
    """Factors of an execution rate."""
    availability: tuple[Fraction, ...] = ()
    """Shares of the CPU."""
    redraw_errors: bool = False
    """Whether the error of an inaccurate estimate is drawn again when its rate changes."""

    @model_validator(mode="after")
    def _something_changes(self) -> Self:
        if not (self.arrivals or self.rates or self.availability):
            raise ValueError("nothing changes; give factors for arrivals or rates, or availability")
        return self


Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class DecentralisedTables(Record):
    """The part of a system that only decentralised policies understand, beside its arrivals."""

    changes: Changes | None = None


class Inaccuracy(Record):
    """The largest relative error I of an estimate: believed = true × (1 + E), E within [−I, I]."""

    arrivals: Share = 0.0
    rates: Share = 0.0
    availability: Share = 0.0


class MeasuredArrivals(Record):
    """Arrival rates as they are counted over windows of ``measured_over`` time units."""

    measured_over: Positive


PRESENT: Literal["present"] = "present"


def _form(value: Any) -> str:
    if isinstance(value, str):
        return "\0word"
    return "\0measured" if isinstance(value, dict | MeasuredArrivals) else "\0rates"


BelievedArrivals = Annotated[
    Annotated[tuple[Positive, ...], Tag("\0rates")]
    | Annotated[Literal["present"], Tag("\0word")]
    | Annotated[MeasuredArrivals, Tag("\0measured")],
    Discriminator(_form),
]


class Assumed(Record):
    """Beliefs of planners and policies that differ from the truth.

    Of arrival rates that change (``profile``) they believe the means, unless ``arrivals`` is
    ``"present"``: then they always know the present rates. With ``{"measured_over": 20}`` they
    believe the means at first, and after every 20 time units the rates that were counted in these.

    Execution times may be believed to have another distribution (``execution``), to be multiplied
    by a factor (``scale``), or to be longer by some time units (``shift``).

    >>> Assumed(inaccuracy={"availability": 0.3}).inaccuracy.availability
    0.3
    """

    arrivals: BelievedArrivals | None = None
    rates: Matrix | None = None
    availability: tuple[Availability, ...] | None = None
    inaccuracy: Inaccuracy = Inaccuracy()
    execution: OneOrList[AnyDistribution] | None = None
    scale: Positive = 1.0
    shift: Annotated[float, Field(strict=True, allow_inf_nan=False)] = 0.0

    def stated(self) -> dict[str, Any]:
        """Return the parts of a system that are replaced by beliefs."""
        kept = ("arrivals", "rates", "availability", "execution")
        parts = self.parts()
        if isinstance(self.arrivals, str | MeasuredArrivals):  # these are not known beforehand
            parts["arrivals"] = None
        return {key: parts[key] for key in kept if parts[key] is not None}
