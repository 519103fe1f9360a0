"""QGym's systems: what its README prints for classical policies, beside runs of the same length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ..catalogue import Cell, entries, find
from ..experiments import Optimum, Result, lower_bound, optimum
from ..model import InputError
from ..statistics import prediction
from .question import Answer, Question, answered, entry_of, exactly, run_of

POLICIES = ("c-mu", "MW", "MP")
"""The printed policies that we have; MP, maximum pressure, is MaxWeight on parallel machines."""
FOREVER = 1e9
"""Time units of the last part of a profile that does not come back."""
SMALL = ("QGym-N",)
"""Systems of which the optimum can be computed."""


def benchmark_targets() -> Iterator[tuple[str, str, tuple[Cell, ...]]]:
    """Give a target for each system of QGym with printed results."""
    for entry in entries():
        printed = entry.printed.get("printed_cost", {}) if entry.source == "Q" else {}
        if printed:
            name = entry.name.removeprefix("QGym-")
            about = f"mean cost of one run of {entry.name} from empty, as QGym prints it"
            yield f"Q:{name}", about, tuple(_cells(entry, name, printed))


def _cells(entry: Any, name: str, printed: dict[str, float]) -> Iterator[Cell]:
    cell: Cell = {"src": "Q", "table": name, "system": entry.name}
    if "alpha_until_100" in entry.printed:
        before = zip(entry.printed["alpha_until_100"], entry.system.arrivals.tolist(), strict=True)
        factors = [[until / after, 1.0] for until, after in before]
        profile = {"durations": [100.0, FOREVER], "factors": factors}
        cell["changes"] = {"profile": profile}
    for policy in POLICIES:
        value = float(printed[policy])
        digits = 0 if value.is_integer() else 1
        yield {**cell, "policy": policy, "metric": "cost_mean", "value": value, "decimals": digits}
    least = ("cost_preemptive", "cost_optimum") if entry.name in SMALL else ("cost_bound",)
    for metric in least:
        yield {**cell, "metric": metric}


def _cost(cell: Cell) -> Question:
    """Ask for the mean cost of one run, with the interval for another such run."""
    run = run_of(cell)._replace(length=find(entry_of(cell)).horizon)

    def answer(results: tuple[Result, ...]) -> Answer:
        (result,) = results
        return answered(prediction(result.values("mean_cost")), result)

    return Question((run,), answer)


@cache
def _optimum(name: str) -> Optimum:
    return optimum(name, [], accuracy=1e-3)


def _least(read: Callable[[Optimum], Any]) -> Callable[[Cell], Question]:
    def least(cell: Cell) -> float:
        found = read(_optimum(entry_of(cell)))
        if found is None:
            raise InputError(f"the least mean cost of {entry_of(cell)} could not be computed")
        return float(found.mean_cost)

    return exactly(least)


QUESTIONS: dict[str, Callable[[Cell], Question]] = {
    "cost_mean": _cost,
    "cost_optimum": _least(lambda found: found.pull),
    "cost_preemptive": _least(lambda found: found.preemptive),
    "cost_bound": exactly(lambda cell: lower_bound(find(entry_of(cell)).system)),
}
