"""What a calibration has found out: points, and the lines through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..statistics import Line, line
from .adjuster import Calibration
from .machines import Listed

__all__ = ["Calibrations", "Measured", "Point", "calibration_of"]


@dataclass(frozen=True)
class Point:
    """Jobs that were alike, and the seconds that each took."""

    at: float
    """Iterations, or an availability."""
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the seconds.

        The quickest would lie better on a line, but rates are means, and the share of time that a
        computer has for other things is part of them.
        """
        return sum(self.seconds) / len(self.seconds)


@dataclass(frozen=True)
class Measured:
    """What was found out about a machine."""

    machine: str
    lengths: tuple[Point, ...]
    """Jobs of several lengths, in iterations."""
    availabilities: tuple[Point, ...]
    """Jobs of one length, stretched as the adjuster does for an availability."""
    imposed: float
    """Their rate, in jobs a second, if the whole CPU were there."""

    @property
    def time_line(self) -> Line:
        """Seconds against iterations."""
        return line([p.at for p in self.lengths], [p.mean for p in self.lengths])

    @property
    def rate_line(self) -> Line:
        """Jobs a second against the imposed availability."""
        points = self.availabilities
        return line([p.at for p in points], [1 / p.mean for p in points])

    @property
    def calibration(self) -> Calibration:
        """The longest job, and the seconds that the line gives it."""
        return calibration_of(self.lengths)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        calibration = self.calibration
        return {
            "machine": self.machine,
            "iterations": calibration.iterations,
            "seconds": calibration.seconds,
            "per_second": calibration.per_second,
            "time": {
                **self.time_line._asdict(),
                "points": [{"iterations": p.at, "seconds": list(p.seconds)} for p in self.lengths],
            },
            "rate": {
                **self.rate_line._asdict(),
                "imposed": self.imposed,
                "points": [
                    {"availability": p.at, "seconds": list(p.seconds), "rate": 1 / p.mean}
                    for p in self.availabilities
                ],
            },
        }


@dataclass(frozen=True)
class Calibrations:
    """What was found out about all machines."""

    machines: tuple[Measured, ...]
    repeats: int

    def calibrations(self) -> tuple[Calibration, ...]:
        """Return what an adjuster needs, in the order of the machines."""
        return tuple(each.calibration for each in self.machines)

    def listed(self) -> tuple[Listed, ...]:
        """Return the machines as a machine list has them."""
        return tuple(Listed(m.machine, None, m.calibration) for m in self.machines)

    def rows(self) -> list[list[Any]]:
        """Return a row for every job: machine, what was varied, its value, repeat, seconds."""
        return [
            [each.machine, what, point.at, repeat, seconds]
            for each in self.machines
            for what, points in (
                ("iterations", each.lengths),
                ("availability", each.availabilities),
            )
            for point in points
            for repeat, seconds in enumerate(point.seconds, start=1)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"repeats": self.repeats, "machines": [each.as_json() for each in self.machines]}


def calibration_of(lengths: Sequence[Point]) -> Calibration:
    """Return the longest job, and the seconds that the line through all gives it."""
    fitted = line([p.at for p in lengths], [p.mean for p in lengths])
    last = lengths[-1]
    seconds = fitted.at(last.at)
    # where noise has bent the line below the ground, the job itself is the better witness
    return Calibration(iterations=last.at, seconds=seconds if seconds > 0 else last.mean)
