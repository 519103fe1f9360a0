"""Chapter 4: decentralised grids, their messages, inaccurate estimates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ..allocation import allocate
from ..catalogue import Cell, find
from ..experiments import Result
from ..statistics import Estimate
from .laboratory import Run
from .question import Question, answered, compared, exactly, saved

POLICIES = {"MCT": "mct_dec", "LPAS_dec": "lpas_dec"}
FIGURES = {"A:Figure 4.2": "4.B1", "A:Figure 4.3": "4.B2", "D:Figure 1": "4.B2"}
REDRAWN = "errors drawn anew"


def is_decentralised(cell: Cell) -> bool:
    """Tell whether a cell is about a decentralised grid."""
    return bool(cell["system"] in ("4.A", "4.B1", "4.B2"))


def run_of(cell: Cell, policy: str | None = None) -> Run:
    """Name the simulation that a cell is about."""
    word = policy or cell["policy"]
    name = f"kpb_dec:k={cell['kbar']}" if word == "KPB" else POLICIES[word]
    changes: dict[str, Any] = {}
    if "inaccuracy_pct" in cell:
        most = cell["inaccuracy_pct"] / 100
        changes["assumed"] = {"inaccuracy": {"arrivals": most, "rates": most}}
    if cell.get("variant") == REDRAWN:
        own = (find(cell["system"]).parts or {})["changes"]
        changes["changes"] = {**own, "redraw_errors": True}
    return Run(cell["system"], name, json.dumps(changes))


def drawn(name: str) -> Iterator[Cell]:
    """Give cells for curves without printed numbers, and for figures that the source lacks."""
    table: Cell = {"src": name[0], "table": name[2:]}
    if name in ("A:4.1", "D:I"):
        table |= {"system": "4.A", "metric": "like_for_like_pct"}
        for k in (2, 3):
            yield {**table, "policy": "KPB", "kbar": k}
        yield {**table, "policy": "LPAS_dec"}
    if name == "A:Figure 4.1":
        for percent in range(0, 101, 10):
            at = {"system": "4.A", "inaccuracy_pct": percent, "metric": "W_mean"}
            yield {**table, **at, "policy": "LPAS_dec"}
            yield {**table, **at, "policy": "KPB", "kbar": 3}
    if name in FIGURES:
        for metric in ("W_relative", "messages_relative"):
            yield {**table, "system": FIGURES[name], "policy": "LPAS_dec", "metric": metric}
    if name == "A:text":
        table |= {"section": "4.3.2", "system": "4.A", "metric": "W_mean", "policy": "MCT"}
        for percent in (10, 30):
            yield {**table, "inaccuracy_pct": percent, "variant": REDRAWN}


def _figure(cell: Cell, read: Callable[[Result], Estimate]) -> Question:
    """Ask for a figure of one run."""
    return Question((run_of(cell),), lambda results: answered(read(results[0]), results[0]))


def _against(cell: Cell, figure: str, *read: Callable[[Estimate], Estimate]) -> Question:
    """Ask for a figure relative to that of another policy."""
    runs = run_of(cell), run_of(cell, cell.get("reference_policy", "MCT"))
    return compared(runs, figure, *read)


def _load(cell: Cell, arrivals: int, rates: int) -> float:
    """Return the load in percent if all rates are at one end of their range."""
    system = find(cell["system"]).system
    assert system.changes is not None
    many = sorted(system.changes.arrivals)[arrivals] * system.arrivals
    fast = sorted(system.changes.rates)[rates] * system.rates
    return 100 * allocate(system.replace(arrivals=many, rates=fast)).load


QUESTIONS: dict[str, Callable[[Cell], Question]] = {
    "W_mean": lambda cell: _figure(cell, lambda result: result.mean_response),
    "W_class": lambda cell: _figure(
        cell, lambda result: result.classes[cell["class"] - 1].mean_response
    ),
    "W_relative": lambda cell: _against(cell, "mean_response"),
    "W_improvement_pct": lambda cell: _against(cell, "mean_response", saved),
    "messages_relative": lambda cell: _against(cell, "messages_per_task"),
    "messages_improvement_pct": lambda cell: _against(cell, "messages_per_task", saved),
    "like_for_like_pct": lambda cell: _against(cell, "like_for_like", saved),
    "load_lowest_pct": exactly(lambda cell: _load(cell, 0, -1)),
    "load_highest_pct": exactly(lambda cell: _load(cell, -1, 0)),
}
