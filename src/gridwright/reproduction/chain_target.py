"""Further targets about chains: other ways to draw templates, other readings, the text's setting.

None of them is the answer; they stand side by side. What was chosen by looking at the printed
numbers is said to be fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalogue import Cell, results
from .chain_question import methods

__all__ = ["chain_targets"]

FITTED = {"calibrated": "calibrated, fitted", "entrywise": "entrywise, fitted"}
TEXT = "text: each template on its own, 10,000 ticks"
READINGS = ("printed", "halved", "mixture")
HIGH, LOW = 1.0, 0.0
"""etcvar of what is drawn as high and as low perturbation."""
FIGURES = {"2": ("II", "FCFS"), "3": ("III", "RR"), "4": ("IV", "MCT")}


def chain_targets() -> Iterator[tuple[str, str, tuple[Cell, ...]]]:
    """Give name, description and cells of every further target.

    >>> names = [name for name, _, _ in chain_targets()]
    >>> [name for name in names if name.startswith("W:IV")]
    ['W:IV:calibrated', 'W:IV:entrywise', 'W:IV:text']
    """
    for table in ("II", "III", "IV", "text"):
        for method, words in FITTED.items():
            more = {"variant": words, "changes": methods(method)}
            yield _again(table, method, f"templates drawn anew: {words}", more)
        if table != "text":
            more = {"variant": TEXT, "setting": "text"}
            yield _again(table, "text", "as the text has it, each template on its own", more)
    for reading in READINGS[1:]:
        more = {"variant": f"{reading} reading", "reading": reading}
        yield _again("V", reading, f"perturbation in the {reading} reading", more)
    more = {"variant": FITTED["calibrated"], "changes": methods("calibrated")}
    yield _again("V", "calibrated", f"templates drawn anew: {FITTED['calibrated']}", more)
    for number, (table, policy) in FIGURES.items():
        cells = tuple(_drawn(number, table))
        yield f"W:Figure {number}", f"performance of {policy} by number of nodes", cells
    for number, words, etcvar in (("5", "high", HIGH), ("6", "low", LOW)):
        cells = tuple(
            {
                "src": "W",
                "table": f"Figure {number}",
                "system": "Wisnesky",
                "variant": f"{reading} reading",
                "reading": reading,
                "etcvar": etcvar,
                "metric": "time_over_estimate_sd",
            }
            for reading in READINGS
        )
        yield f"W:Figure {number}", f"actual over estimated times, {words} perturbation", cells


def _again(
    table: str, word: str, about: str, more: dict[str, Any]
) -> tuple[str, str, tuple[Cell, ...]]:
    cells = tuple(
        {**{k: v for k, v in cell.items() if k != "note"}, "table": f"{table}:{word}", **more}
        for cell in results(src="W", table=table)
    )
    return (
        f"W:{table}:{word}",
        f"Table {table} once more; {about}".replace("Table text", "text"),
        cells,
    )


def _drawn(number: str, table: str) -> Iterator[Cell]:
    """Give the performances of a table once more, under every way to draw templates."""
    for cell in results(src="W", table=table, metric="perf_fraction"):
        again = {**cell, "table": f"{table}:Figure {number}"}
        yield {**again, "variant": "as printed"}
        for method, words in FITTED.items():
            yield {**again, "variant": words, "changes": methods(method)}
        yield {**again, "variant": TEXT, "setting": "text"}
