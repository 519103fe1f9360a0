"""Questions of the printed cells about chains.

A printed row is one run of several bodies, without an interval. We compare it with the mean of
several such runs and the prediction interval of one more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import exp, pi, sqrt
from typing import Any

import numpy as np

from ..catalogue import Cell, find, results
from ..experiments import Result
from ..model import Floats
from ..statistics import Estimate, prediction
from .laboratory import Run
from .question import Answer, Question, entry_of, exact

BODIES = {"II": 10, "III": 10, "IV": 10, "V": 3, "text": 10}
"""Bodies of a printed run, by table."""
STEPS = tuple(round(0.1 * k, 1) for k in range(11))
"""The values of etcvar that were simulated; every second one is printed."""
FULL_PERFORMANCE = 0.995
"""The least performance that is rounded to 1."""
POLICIES = {"FCFS": "chain_fcfs", "RR": "chain_rr", "MCT": "chain_mct"}
COUNTS = {"jobs_ok": "ok", "jobs_late": "late", "jobs_in_progress": "in_progress"}
NORMAL_VARIANCE = 1 - 2 * exp(-0.5) / sqrt(2 * pi) / 0.6826894921370859
"""The variance of the standard normal distribution within (−1, 1)."""


def methods(method: str) -> dict[str, Any]:
    """Return the changes to the published system for a method to draw templates.

    >>> methods("calibrated")["random_templates"]["method"]
    'calibrated'
    """
    drawn = find("Wisnesky:16").system.random_templates
    assert drawn is not None
    return {"random_templates": {**drawn.parts(), "method": method}}


def _run(cell: Cell, nodes: int | None = None, etcvar: float | None = None) -> Run:
    changes = dict(cell.get("changes", {}))
    if etcvar is not None:
        formula = cell.get("formula", "printed")
        changes["perturbation"] = {"reading": formula, "variation": etcvar}
    system = entry_of(cell if nodes is None else {**cell, "nodes": nodes})
    policy = POLICIES[cell["policy"]]
    return Run(system, policy, json.dumps(changes), BODIES[cell["table"].partition(":")[0]])


def _runs(result: Result, name: str, bodies: int) -> Floats:
    """Return a figure of every body, a row for each run."""
    values = result.values(name)
    return values[: len(values) // bodies * bodies].reshape(-1, bodies)


def _count(cell: Cell) -> Question:
    run, name = _run(cell), COUNTS[cell["metric"]]
    return Question(
        (run,), lambda found: Answer(prediction(_runs(found[0], name, run.bodies).sum(axis=1)))
    )


def _performance(cell: Cell) -> Question:
    run = _run(cell, etcvar=cell.get("etcvar"))
    if "etcvar" in cell:
        return Question((run,), lambda found: Answer(prediction(_averaged(found[0], run))))

    def answer(results: tuple[Result, ...]) -> Answer:
        ok, late = (_runs(results[0], name, run.bodies).sum(axis=1) for name in ("ok", "late"))
        done = ok + late
        return Answer(prediction(np.divide(ok, done, out=np.zeros_like(ok), where=done > 0)))

    return Question((run,), answer)


def _averaged(result: Result, run: Run) -> Floats:
    return _runs(result, "performance", run.bodies).mean(axis=1)


def _spread(cell: Cell) -> Question:
    """Ask for the largest minus the least performance over all perturbations."""
    runs = tuple(_run(cell, etcvar=v) for v in STEPS)

    def answer(results: tuple[Result, ...]) -> Answer:
        found = np.array([_averaged(r, run) for r, run in zip(results, runs, strict=True)])
        return Answer(prediction(found.max(axis=0) - found.min(axis=0)))

    return Question(runs, answer)


def _nodes_needed(cell: Cell) -> Question:
    """Ask for the fewest published nodes with full performance.

    The interval starts at the largest number of nodes that is too few.
    """
    sizes = find("Wisnesky:16").printed["nodes"]
    runs = tuple(_run(cell, nodes=nodes) for nodes in sizes)

    def answer(results: tuple[Result, ...]) -> Answer:
        pairs = [(result.values("ok").sum(), result.values("late").sum()) for result in results]
        full = [ok / max(ok + late, 1) >= FULL_PERFORMANCE for ok, late in pairs]
        most = max((n for n, is_full in zip(sizes, full, strict=True) if not is_full), default=0)
        enough = [nodes for nodes in sizes if nodes > most]
        if not enough:
            return Answer(Estimate(most, most, np.inf))  # more than were published
        return Answer(Estimate(enough[0], most, enough[0]))

    return Question(runs, answer)


def _deviation(cell: Cell) -> Question:
    """Ask for the standard deviation of actual over estimated times, which is exact."""
    v = float(cell["etcvar"])
    g, u = (1 - v) ** 2 * NORMAL_VARIANCE, v**2 / 3
    variance = {"printed": (v**2 * g + u) / 4, "halved": (g + u) / 4, "mixture": g + u}
    return Question((), lambda results: Answer(exact(sqrt(variance[cell["formula"]]))))


QUESTIONS: dict[str, Callable[[Cell], Question]] = {
    **dict.fromkeys(COUNTS, _count),
    "perf_fraction": _performance,
    "perf_max_minus_min": _spread,
    "nodes_for_full_performance_stated": _nodes_needed,
    "time_over_estimate_sd": _deviation,
}


FITTED = {"calibrated": "calibrated, fitted", "entrywise": "entrywise, fitted"}
TEXT = "text: each template on its own, 10,000 ticks"
FORMULAS = ("printed", "halved", "mixture")
"""How the printed formula of perturbed times may be read."""
DRAWN = "in a figure"
"""The reading of cells that a figure shows again."""
HIGH, LOW = 1.0, 0.0
"""etcvar of the figures with high and with low perturbation."""
FIGURES = {"2": ("II", "FCFS"), "3": ("III", "RR"), "4": ("IV", "MCT")}


def chain_targets() -> Iterator[tuple[str, str, tuple[Cell, ...]]]:
    """Give name, description and cells of the targets with other settings than printed.

    >>> names = [name for name, _, _ in chain_targets()]
    >>> [name for name in names if name.startswith("W:IV")]
    ['W:IV:calibrated', 'W:IV:entrywise', 'W:IV:text']
    """
    for table in ("II", "III", "IV", "text"):
        for method, words in FITTED.items():
            more = {"reading": words, "variant": words, "changes": methods(method)}
            yield _again(table, method, f"templates drawn anew: {words}", more)
    for table in ("II", "III", "IV", "V", "text"):
        more = {"reading": TEXT, "variant": TEXT, "setting": "text"}
        yield _again(table, "text", "as the text has it, each template on its own", more)
    for formula in FORMULAS[1:]:
        words = f"{formula} reading"
        more = {"reading": words, "variant": words, "formula": formula}
        yield _again("V", formula, f"perturbation in the {words}", more)
    words = FITTED["calibrated"]
    more = {"reading": words, "variant": words, "changes": methods("calibrated")}
    yield _again("V", "calibrated", f"templates drawn anew: {words}", more)
    for number, (table, policy) in FIGURES.items():
        cells = tuple(_drawn(number, table))
        yield f"W:Figure {number}", f"performance of {policy} by number of nodes", cells
    for number, words, etcvar in (("5", "high", HIGH), ("6", "low", LOW)):
        cells = tuple(
            {
                "src": "W",
                "table": f"Figure {number}",
                "system": "Wisnesky",
                "variant": f"{formula} reading",
                "formula": formula,
                "etcvar": etcvar,
                "metric": "time_over_estimate_sd",
            }
            for formula in FORMULAS
        )
        yield f"W:Figure {number}", f"actual over estimated times, {words} perturbation", cells


def _again(
    table: str, word: str, about: str, more: dict[str, Any]
) -> tuple[str, str, tuple[Cell, ...]]:
    cells = tuple(
        {**{k: v for k, v in cell.items() if k != "note"}, "table": f"{table}:{word}", **more}
        for cell in results(src="W", table=table)
    )
    name = table if table == "text" else f"Table {table}"
    return f"W:{table}:{word}", f"{name} once more; {about}", cells


def _drawn(number: str, table: str) -> Iterator[Cell]:
    """Give the performances of a table for every method to draw templates."""
    for cell in results(src="W", table=table, metric="perf_fraction"):
        again = {**cell, "table": f"{table}:Figure {number}", "reading": DRAWN}
        yield {**again, "variant": "as printed"}
        for method, words in FITTED.items():
            yield {**again, "variant": words, "changes": methods(method)}
        yield {**again, "variant": TEXT, "setting": "text"}
