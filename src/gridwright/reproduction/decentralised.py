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
from .question import Answer, Question, answered, compared, exact, saved

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


def _figure(read: Callable[[Result, Cell], Estimate]) -> Callable[[Cell], Question]:
    """Make the question whose answer is a figure of one run."""

    def question(cell: Cell) -> Question:
        return Question(
            (run_of(cell),), lambda results: answered(read(results[0], cell), results[0])
        )

    return question


def _against(figure: str, *, is_saved: bool) -> Callable[[Cell], Question]:
    """Make the question for a figure relative to another policy's, or for the percent saved."""

    def question(cell: Cell) -> Question:
        runs = run_of(cell), run_of(cell, cell.get("reference_policy", "MCT"))
        return compared(runs, figure, saved) if is_saved else compared(runs, figure)

    return question


def _corner(arrivals: int, rates: int) -> Callable[[Cell], Question]:
    """Make the question for the load where all rates are at one end of their range."""

    def question(cell: Cell) -> Question:
        system = find(cell["system"]).system
        assert system.changes is not None
        many = sorted(system.changes.arrivals)[arrivals] * system.arrivals
        fast = sorted(system.changes.rates)[rates] * system.rates
        load = 100 * allocate(system.replace(arrivals=many, rates=fast)).load
        return Question((), lambda results: Answer(exact(load)))

    return question


QUESTIONS: dict[str, Callable[[Cell], Question]] = {
    "W_mean": _figure(lambda result, cell: result.mean_response),
    "W_class": _figure(lambda result, cell: result.classes[cell["class"] - 1].mean_response),
    "W_relative": _against("mean_response", is_saved=False),
    "W_improvement_pct": _against("mean_response", is_saved=True),
    "messages_relative": _against("messages_per_task", is_saved=False),
    "messages_improvement_pct": _against("messages_per_task", is_saved=True),
    "like_for_like_pct": _against("like_for_like", is_saved=True),
    "load_lowest_pct": _corner(0, -1),
    "load_highest_pct": _corner(-1, 0),
}
