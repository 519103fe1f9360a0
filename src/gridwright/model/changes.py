"""How the rates of a system change while it runs."""

from typing import Self

from pydantic import model_validator

from .record import Fraction, Positive, Record

__all__ = ["Changes"]


class Changes(Record):
    """Changes at exponential intervals, of which machines tell each other only when they meet.

    At every change one of the arrival rates (if they change) and execution rates (if they do),
    each as likely, is set to one of its factors times its first value; and every machine takes
    one of the availabilities, if these change.

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
    """Whether the error of an inaccurate estimate is drawn anew when its rate changes."""

    @model_validator(mode="after")
    def _something_changes(self) -> Self:
        if not (self.arrivals or self.rates or self.availability):
            raise ValueError("nothing changes; give factors for arrivals or rates, or availability")
        return self
