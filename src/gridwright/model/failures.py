"""Failures: how long machines stay up, and how long a repair takes."""

from .distribution import Exponential
from .kind import AnyDistribution
from .record import OneOrList, Positive, PositiveOrInfinite, Record

__all__ = ["Failures"]


class Failures(Record):
    """Up-times and repair times of the machines. Every value may be a list, one per column.

    A mean up-time of infinity is a machine that never fails. The distributions give the shape,
    the means the length.

    >>> Failures(mean_uptime=20, mean_repair=4).mean_uptime
    20.0
    """

    mean_uptime: OneOrList[PositiveOrInfinite]
    mean_repair: OneOrList[Positive]
    uptime: OneOrList[AnyDistribution] = Exponential()
    repair: OneOrList[AnyDistribution] = Exponential()
