"""The printed results, cell by cell, and what is known to be wrong in them."""

import json
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

Cell = dict[str, Any]
"""One printed cell; ``published/README.md`` explains its fields."""


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
    if system.endswith("-as-run"):  # how an experiment ran, of which the results are elsewhere
        return []
    if system == "Wisnesky":  # a case is a number of nodes, in either setting
        nodes = int(case[-1]) if case else None
        cells = results(system=system)
        return [cell for cell in cells if nodes is None or cell.get("nodes", nodes) == nodes]
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


class Table(NamedTuple):
    """A published table or figure."""

    name: str
    """The key of its source and its own name: ``A:2.1``, ``K:7.2``, ``A:text``."""
    about: str
    decimals: int
    """How many decimals are printed."""


class Remark(NamedTuple):
    """A note on a printed cell that is wrong, or that the model does not reproduce."""

    kind: str
    """``erratum``: it contradicts its own source; ``difference``: it is not reproduced."""
    text: str


class Erratum(NamedTuple):
    """A mistake in a source."""

    source: str
    """Its key: A, K, S, D or W."""
    text: str


@cache
def errata() -> tuple[Erratum, ...]:
    """Return the known mistakes in the sources.

    >>> errata()[0].source
    'A'
    """
    found = tomllib.loads((files(__package__) / "errata.toml").read_text("utf-8"))
    return tuple(Erratum(**each) for each in found["erratum"])


@cache
def tables() -> dict[str, Table]:
    """Return every published table and figure by its name.

    >>> tables()["A:2.6"].about
    'mean number of tasks in the system for 2.C2, 95 percent confidence intervals'
    """
    found = tomllib.loads((files(__package__) / "tables.toml").read_text("utf-8"))
    return {
        name: Table(name, each["about"], each.get("decimals", 2)) for name, each in found.items()
    }


def remarks_on(cell: Cell) -> list[Remark]:
    """Return the notes on a cell.

    >>> (cell,) = results(table="2.1", system="2.B", policy="LPAS")
    >>> remarks_on(cell)[0].kind
    'difference'
    """
    return [remark for wanted, remark in _remarks() if wanted.items() <= cell.items()]


@cache
def _remarks() -> tuple[tuple[dict[str, Any], Remark], ...]:
    found = tomllib.loads((files(__package__) / "remarks.toml").read_text("utf-8"))
    return tuple((each["cells"], Remark(each["kind"], each["text"])) for each in found["remark"])


@cache
def _cells() -> tuple[Cell, ...]:
    text = (files(__package__) / "results.jsonl").read_text("utf-8")
    return tuple(json.loads(line) for line in text.splitlines())
