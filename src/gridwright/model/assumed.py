"""What planners and policies believe about a system where that differs from the truth."""

from typing import Annotated, Any

from pydantic import Field

from .availability import Availability
from .kind import AnyDistribution
from .record import Matrix, OneOrList, Positive, Record

__all__ = ["Assumed", "Inaccuracy"]

Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class Inaccuracy(Record):
    """The largest relative error I of an estimate: believed = true × (1 + E), E within [−I, I]."""

    arrivals: Share = 0.0
    rates: Share = 0.0
    availability: Share = 0.0


class Assumed(Record):
    """What is believed in place of the truth. What is not given here is believed as it is.

    Of the pmfs of execution times it may be believed that they have another shape (``execution``),
    are so many times as long (``scale``), or so many time units longer (``shift``).

    >>> Assumed(inaccuracy={"availability": 0.3}).inaccuracy.availability
    0.3
    """

    arrivals: tuple[Positive, ...] | None = None
    rates: Matrix | None = None
    availability: tuple[Availability, ...] | None = None
    inaccuracy: Inaccuracy = Inaccuracy()
    execution: OneOrList[AnyDistribution] | None = None
    scale: Positive = 1.0
    shift: Annotated[float, Field(strict=True, allow_inf_nan=False)] = 0.0

    def stated(self) -> dict[str, Any]:
        """Return the parts of a system that are believed to be others."""
        kept = ("arrivals", "rates", "availability", "execution")
        return {key: self.parts()[key] for key in kept if self.parts()[key] is not None}
