"""Values of a policy's parameters: checked, turned into their type, and written as words."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import grouped, interior, prices, vertex, weights
from ..model import InputError
from .view import Table

__all__ = ["IDLE", "ORDER", "PLANNERS", "checked", "checked_pairs", "of_pairs", "word"]

PLANNERS = {
    "grouped": grouped,
    "interior": interior,
    "prices": prices,
    "vertex": vertex,
    "weights": weights,
}
"""The planners that a planned policy may be given by name."""

IDLE = ("longest", "fastest", "every", "rotate", "blocking")
"""Which idle machine is asked first when a task waits: the one idle longest; the fastest for the
task's class; every one, in their order, after every event; the head of a queue of machines, which
goes to its back if it can run nothing that waits (MGST); that head alone, until it can (MGST's
first version)."""

ORDER = ("arrival", "oldest_job")
"""Who is served first where applications queue: the one that came first; the oldest job's."""

CHOICES: dict[str, Collection[str]] = {"planner": PLANNERS, "idle": IDLE, "order": ORDER}


def checked(name: str, key: str, value: Any, default: Any) -> Any:
    """Turn a value, perhaps a word of the command line, into one of the default's type."""
    if isinstance(value, np.generic):
        value = value.item()
    wrong = InputError(f"{name}: {key} is {value!r}; expected {_kind_of(key, default)}")
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise wrong
        return value
    if isinstance(default, Table):
        return value if isinstance(value, Table) else Table(value)
    if isinstance(default, IntEnum):
        choices = type(default).__members__
        if str(value) in choices:
            return choices[str(value)]
        if value in list(type(default)):
            return type(default)(value)
        raise wrong
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
        try:
            value = float(value) if isinstance(value, str) else value
        except ValueError:
            raise wrong from None
    if isinstance(default, bool) != isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong
    if isinstance(default, bool):
        return value
    if value != value or abs(value) == float("inf"):
        raise wrong
    if isinstance(default, int) and value != int(value):
        raise wrong
    return int(value) if isinstance(default, int) else float(value)


def checked_pairs(name: str, key: str, value: Any, default: Any) -> Any:
    """Turn a number, rows of numbers, or either as a word ("1 2;3 4") into plain numbers."""
    if isinstance(value, str) and (" " in value or ";" in value):
        value = [row.split() for row in value.split(";")]
    if isinstance(value, int | float | str):
        return checked(name, key, value, 1.0)
    try:
        rows = tuple(tuple(checked(name, key, each, 1.0) for each in row) for row in value)
    except TypeError:
        rows = ()
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise InputError(
            f"{name}: {key} is {value!r}; expected a number, or rows of numbers, one a class"
        )
    return rows


def of_pairs(name: str, key: str, value: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Write a value out for every class and machine."""
    given = np.array(value, dtype=float)
    if given.ndim == 2 and given.shape != shape:
        raise InputError(
            f"{name}: {key} has {given.shape[0]} rows of {given.shape[1]}; expected a row for each "
            f"of {shape[0]} classes, with a number for each of {shape[1]} machines"
        )
    return np.ascontiguousarray(np.broadcast_to(given, shape))


def _kind_of(key: str, default: Any) -> str:
    if key in CHOICES:
        return ", ".join(CHOICES[key])
    if isinstance(default, IntEnum):
        return " or ".join(type(default).__members__)
    if isinstance(default, bool):
        return "true or false"
    return "a whole number" if isinstance(default, int) else "a number"


def word(value: Any) -> str:
    """Write the value of a parameter as the command line takes it."""
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ";".join(" ".join(word(each) for each in row) for row in value)
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
