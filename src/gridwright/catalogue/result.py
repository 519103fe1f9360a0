"""Every printed result, one cell at a time."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["Cell", "results", "results_of"]

Cell = dict[str, Any]
"""One printed cell; ``published/README.md`` tells what its fields mean."""


def results(**wanted: Any) -> list[Cell]:
    """List the printed cells whose fields have the wanted values.

    >>> (cell,) = results(src="A", table="2.1", system="2.B", policy="LPAS")
    >>> cell["metric"], cell["lo"], cell["hi"]
    ('Q_mean', 5.21, 5.26)
    """
    return [
        dict(cell)
        for cell in _cells()
        if all(cell.get(field) == value for field, value in wanted.items())
    ]


def results_of(name: str) -> list[Cell]:
    """List the printed cells of an entry of the catalogue.

    >>> len(results_of("3.A:alpha1:5")), len(results_of("MGST.HiHi:2"))
    (12, 101)
    """
    system, *case = name.split(":")
    match case:
        case [arrival, number]:
            wanted = {"arrival": arrival, "case": int(number)}
            found = [cell for cell in results(system=system) if cell["table"] != "3.11"]
        case [number]:
            wanted = {"case": int(number)}
            found = results(system=system)
        case [_, number, times]:
            wanted = {"case": int(number), "exec_dist": times}
            found = results(system=system, table="3.11")
        case _:
            wanted, found = {}, results(system=system)
    return [cell for cell in found if {**wanted, **cell} == {**cell, **wanted}]


@cache
def _cells() -> tuple[Cell, ...]:
    text = (files(__package__) / "results.jsonl").read_text("utf-8")
    return tuple(json.loads(line) for line in text.splitlines())
