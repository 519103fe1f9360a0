"""Durations and moments as people write them: 90, 15m, 6h, 2d, 2005-11-21."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..model import InputError
from .trace_file import LARGEST

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
DURATION = re.compile(r"(\d+(?:\.\d*)?)\s*([a-z]*)")


def seconds(text: str) -> float:
    """Return the seconds of a duration.

    >>> seconds("90"), seconds("1.5h"), seconds("2d")
    (90.0, 5400.0, 172800.0)
    """
    match = DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in UNITS or len(match[1]) > 15:
        raise InputError(f"{text!r} must be a duration, for example 90, 15m, 6h or 2d")
    return float(match[1]) * UNITS[match[2]]


def moment(text: str, start: float) -> float:
    """Return a moment in seconds: a duration after a start, or a date.

    >>> moment("1h", 100.0), moment("1970-01-02", 0.0), moment("1970-01-01T01:00", 0.0)
    (3700.0, 86400.0, 3600.0)
    """
    try:
        if "-" in text:
            date = datetime.fromisoformat(text.strip())
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        return start + seconds(text)
    except (InputError, ValueError, OverflowError):
        raise InputError(
            f"{text!r} must be a date such as 2005-11-21, or a duration since the start such as 6h "
            "or 2d"
        ) from None


def check_scale(what: str, scale: float) -> None:
    """Refuse a factor for times that is not a usual positive number."""
    if not 1 / LARGEST <= scale <= LARGEST:
        limits = f"{1 / LARGEST:g} to {LARGEST:g}"
        raise InputError(f"{what} is {scale:g}; expected a number from {limits}")


def in_words(time: float) -> str:
    """Write a duration for people.

    >>> in_words(0.5), in_words(42), in_words(600), in_words(5400), in_words(172800)
    ('0.5 s', '42 s', '10 min', '1.5 h', '2 d')
    """
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if time >= (1 if unit == "h" else 2) * size:
            return f"{time / size:.3g} {unit}"
    return f"{time:.3g} s"
