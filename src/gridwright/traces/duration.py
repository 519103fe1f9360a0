"""Stretches of time in words: 90, 15m, 6h, 2d."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..model import InputError
from .trace_file import LARGEST

__all__ = ["check_scale", "in_words", "moment", "seconds"]

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
STRETCH = re.compile(r"(\d+(?:\.\d*)?)\s*([a-z]*)")


def seconds(text: str) -> float:
    """Return the seconds of a stretch of time.

    >>> seconds("90"), seconds("1.5h"), seconds("2d")
    (90.0, 5400.0, 172800.0)
    """
    match = STRETCH.fullmatch(text.strip().lower())
    if match is None or match[2] not in UNITS or len(match[1]) > 15:
        raise InputError(f"{text!r} is no stretch of time; expected one such as 90, 15m, 6h or 2d")
    return float(match[1]) * UNITS[match[2]]


def moment(text: str, start: float) -> float:
    """Return a moment: so long after a start, or a date.

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
            f"{text!r} is no moment; expected a date such as 2005-11-21, or a stretch of time "
            "since the start, such as 6h or 2d"
        ) from None


def check_scale(what: str, scale: float) -> None:
    """Refuse a number that no times can be multiplied by."""
    if not 1 / LARGEST <= scale <= LARGEST:
        limits = f"{1 / LARGEST:g} to {LARGEST:g}"
        raise InputError(f"{what} is {scale:g}; expected a number from {limits}")


def in_words(time: float) -> str:
    """Write a stretch of time for people.

    >>> in_words(0.5), in_words(42), in_words(600), in_words(5400), in_words(172800)
    ('0.5 s', '42 s', '10 min', '1.5 h', '2 d')
    """
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if time >= (1 if unit == "h" else 2) * size:
            return f"{time / size:.3g} {unit}"
    return f"{time:.3g} s"
