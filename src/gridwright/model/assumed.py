"""What planners and policies believe about a system where that differs from the truth."""

from typing import Annotated

from pydantic import Field

from .availability import Availability
from .record import Matrix, Positive, Record

__all__ = ["Assumed", "Inaccuracy"]

Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class Inaccuracy(Record):
    """The largest relative error I of an estimate: believed = true × (1 + E), E within [−I, I]."""

    arrivals: Share = 0.0
    rates: Share = 0.0
    availability: Share = 0.0


class Assumed(Record):
    """What is believed in place of the truth. What is not given here is believed as it is.

    >>> Assumed(inaccuracy={"availability": 0.3}).inaccuracy.availability
    0.3
    """

    arrivals: tuple[Positive, ...] | None = None
    rates: Matrix | None = None
    availability: tuple[Availability, ...] | None = None
    inaccuracy: Inaccuracy = Inaccuracy()
