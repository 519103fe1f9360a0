"""A matrix [class, machine] as a table that fits a terminal."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from ..model import System
from .output import number, table

__all__ = ["matrix"]

MANY = 10
"""With more columns than this, the longer side of the matrix goes down the page."""

Floats = NDArray[np.float64]


def matrix(system: System, values: Floats, form: str) -> Table:
    """Lay a matrix out; like neighbours of a group share a column, zeros are quiet dots."""
    runs = list(_runs(system, values))
    names = [escape(_span(system, first, last)) for first, last in runs]
    columns = values[:, [first for first, _ in runs]]
    classes = [
        f"{escape(name)} ({rate:g}/t)"
        for name, rate in zip(system.classes, system.arrival_rates, strict=True)
    ]
    if len(runs) <= max(len(classes), MANY):
        result = table("class (arrivals)", *(f">{name}" for name in names))
        for name, row in zip(classes, columns, strict=True):
            result.add_row(name, *(number(value, form) for value in row))
    else:
        result = table("machine", *(f">{name}" for name in classes))
        for name, row in zip(names, columns.T, strict=True):
            result.add_row(name, *(number(value, form) for value in row))
    return result


def _runs(system: System, values: Floats) -> Iterator[tuple[int, int]]:
    """Give the first and last machine of every run of equal columns in a group."""
    first = 0
    for j in range(1, len(system.machines) + 1):
        last = j == len(system.machines)
        if (
            last
            or system.column[j] != system.column[first]
            or (values[:, j] != values[:, first]).any()
        ):
            yield first, j - 1
            first = j


def _span(system: System, first: int, last: int) -> str:
    if first == last:
        return system.machines[first]
    return f"{system.machines[first]} … {system.machines[last].rpartition('.')[2]}"
