"""Questions of printed cells: which runs answer a cell, and how to read the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from ..allocation import Allocation, allocate
from ..catalogue import Cell, find
from ..experiments import Result
from ..model import Floats
from ..statistics import Estimate, estimate, plus, prediction, ratio
from .laboratory import Run

POLICIES = {
    "FCFS": "fcfs",
    "Gcmu": "gcmu",
    "Guided-LPAS": "guided_lpas",
    "LP-Static": "lp_static",
    "LPAS": "lpas",
    "LPAS-2/k": "lpas_2k",
    "LPAS_DG": "lpas_dg",
    "LPAS_DG_mod": "lpas_dg:planner=grouped",
    "MCT": "mct",
    "MET": "met",
    "MECT": "mect",
    "MM": "mm",
    "MMU": "mmu",
    "MOC": "moc",
    "MSD": "msd",
    "c-mu": "cmu",
    "MW": "maxweight",
    "MP": "maxweight",
}
WORSE = 10.0
"""A blank cell means unstable, or an order of magnitude worse than Gcmu: this factor."""


class Answer(NamedTuple):
    """Our number or verdict for a cell."""

    ours: Estimate | None = None
    stable: bool | None = None
    worse: bool | None = None
    """For a blank cell: whether the policy is unstable or ``WORSE`` times worse than Gcmu."""
    detail: str = ""
    """For several runs: which of them are stable."""
    undecided: bool = False
    """Whether the runs are too short to tell if they are stable; False without runs."""


def answered(ours: Estimate, *results: Result, worse: bool | None = None) -> Answer:
    """Answer with a figure of some runs; it is stable if all of them are."""
    verdicts = [result.stable for result in results]
    stable = False if False in verdicts else None if None in verdicts else True
    return Answer(ours, stable, worse, undecided=stable is None)


class Question(NamedTuple):
    """The runs that a cell needs, and how to read the answer off their results."""

    runs: tuple[Run, ...]
    answer: Callable[[tuple[Result, ...]], Answer]


def is_of_testbed(cell: Cell) -> bool:
    """Tell whether a cell is about a run on real machines, and is not simulated instead."""
    return "entry" not in cell and (cell.get("platform") == "testbed" or cell["metric"] in TESTBED)


def entry_of(cell: Cell) -> str:
    """Name the catalogue's entry that a cell is about.

    >>> entry_of({"table": "3.2", "system": "3.A", "arrival": "alpha1", "case": 5})
    '3.A:alpha1:5'
    """
    if "entry" in cell:  # another reading simulates another system
        return str(cell["entry"])
    if cell["system"] == "Wisnesky":
        setting = "text:" if cell.get("setting") == "text" else ""
        return f"Wisnesky:{setting}{cell.get('nodes', 16)}"
    if "same_parameters_as_case" in cell:
        return f"{cell['system']}:table_3_11:{cell['case']}:{cell['exec_dist']}"
    parts = [cell["system"], cell.get("arrival"), cell.get("case")]
    return ":".join(str(part) for part in parts if part is not None)


def run_of(cell: Cell, policy: str | None = None) -> Run:
    """Name the simulation that a cell is about."""
    word = policy or cell["policy"]
    name = f"kpb:k={cell['kbar']}" if word == "KPB" else POLICIES[word]
    if "settings" in cell and word == cell["policy"]:
        first, *parameters = name.split(":")
        chosen = dict(each.split("=") for each in parameters) | cell["settings"]
        name = ":".join([first, *(f"{key}={value}" for key, value in chosen.items())])
    if "constant" in cell:
        name += f":c={cell['constant']}"
    if cell.get("variant") == "all availabilities assumed 1":
        name += ":use_availability=false" if word == "LPAS_DG" else ""
    return Run(entry_of(cell), name, json.dumps(cell.get("changes", {})))


def _simple(read: Callable[[Result, Cell], Estimate]) -> Callable[[Cell], Question]:
    """Make the question whose answer is a figure of one run."""

    def question(cell: Cell) -> Question:
        if "kbar_below" in cell:
            below = range(1, int(cell["kbar_below"]))
            runs = tuple(Run(entry_of(cell), f"kpb:k={k}") for k in below)
        elif cell.get("status") == "blank":
            runs = (run_of(cell), run_of(cell, "Gcmu"))
        else:
            runs = (run_of(cell),)

        def answer(results: tuple[Result, ...]) -> Answer:
            own = read(results[0], cell)
            if "kbar_below" in cell:
                verdicts = [result.stable for result in results]
                stable = True if any(verdicts) else None if None in verdicts else False
                calm = [str(result.policy) for result in results if result.stable]
                detail = f"under {', '.join(calm)}" if calm else ""
                return Answer(None, stable, detail=detail, undecided=stable is None)
            if cell.get("status") == "blank":
                unstable = results[0].stable is False
                worse = unstable or own.mean >= WORSE * read(results[1], cell).mean
                return answered(own, results[0], worse=worse)
            return answered(own, results[0])

        return Question(runs, answer)

    return question


def one_run(cell: Cell) -> Question:
    """Ask for the response in the one run of a testbed, with the interval for another such run.

    A response of the source ends with the execution; ours ends when the scheduler knows of it.
    """
    run = run_of(cell)._replace(length=float(cell["length"]))

    def answer(results: tuple[Result, ...]) -> Answer:
        (result,) = results
        delays = result.system.delays
        late = 0.0 if delays is None else float(np.mean(delays.after))
        return answered(prediction(_figures(result, cell) - late), result)

    return Question((run,), answer)


def shifted(cell: Cell, stated: Question) -> Question:
    """Ask by how much another policy changes the answer to a cell as stated.

    Both policies run for a share of the length on the same arrivals and failures, so both are off
    by nearly the same. The difference is added to the answer as stated, and the interval counts
    the errors of both.
    """
    usual = {key: value for key, value in cell.items() if key != "settings"}
    pair = tuple(run_of(each)._replace(share=cell["share"]) for each in (cell, usual))

    def answer(results: tuple[Result, ...]) -> Answer:
        found, (own, other) = stated.answer(results[:-2]), results[-2:]
        assert found.ours is not None
        change = _figures(own, cell) - _figures(other, cell)
        if cell["metric"] == "Delta_pct":
            change *= -100 / results[1].mean_response.mean
        stable = False if own.stable is False else found.stable
        return found._replace(ours=plus(found.ours, estimate(change)), stable=stable)

    return Question((*stated.runs, *pair), answer)


def _figures(result: Result, cell: Cell) -> Floats:
    """Return the mean number in system or the mean response of a cell, in every replication."""
    if cell["metric"] == "W_class":
        return np.array([each.response[cell["class"] - 1] for each in result.replications])
    return result.values("mean_number" if cell["metric"] == "Q_mean" else "mean_response")


def compared(
    runs: tuple[Run, Run],
    figure: str,
    read: Callable[[Estimate], Estimate] = lambda share: share,
    *,
    both: bool = False,
) -> Question:
    """Ask for a figure of one run over that of another; with ``both``, both must be stable."""

    def answer(results: tuple[Result, ...]) -> Answer:
        share = ratio(results[0].values(figure), results[1].values(figure))
        return answered(read(share), *results[: 1 + both])

    return Question(runs, answer)


def saved(share: Estimate) -> Estimate:
    """Return how many percent are saved, from a ratio."""
    return Estimate(*(100 * (1 - each) for each in (share.mean, share.high, share.low)))


def _relative(cell: Cell) -> Question:
    """Ask for the mean response time of one policy over that of another."""
    runs = run_of(cell), run_of(cell, cell.get("reference_policy", "Gcmu"))
    is_range = cell["metric"] == "W_ratio_range"  # here the reference is the numerator
    return compared(runs[::-1] if is_range else runs, "mean_response", both=True)


def _more_on_time(cell: Cell) -> Question:
    """Ask how many percent more tasks are on time under one policy than under another."""
    runs = run_of(cell), run_of(cell, cell["reference_policy"])
    return compared(runs, "on_time", lambda share: Estimate(*(100 * (e - 1) for e in share)))


def exactly(value: Callable[[Cell], float]) -> Callable[[Cell], Question]:
    """Make a question that needs no simulation."""
    return lambda cell: Question((), lambda results: Answer(exact(value(cell))))


@cache
def _allocation(entry: str) -> Allocation:
    found = find(entry)
    return allocate(found.system, down=found.down)


def _capacity(cell: Cell) -> float:
    return _allocation(entry_of(cell)).capacity


def _share(cell: Cell) -> float:
    allocation = _allocation(entry_of(cell))
    machine = int(cell["machine"]) - 1 if "machine" in cell else 0
    if "column" in cell:  # of the rates: its machines are alike
        machine = int(np.flatnonzero(allocation.system.column == cell["column"] - 1)[0])
    return float(allocation.shares[cell["class"] - 1, machine])


QUESTIONS: dict[str, Callable[[Cell], Question]] = {
    "Q_mean": _simple(lambda result, cell: result.mean_number),
    "W_mean": _simple(lambda result, cell: result.mean_response),
    "W_class": _simple(lambda result, cell: result.classes[cell["class"] - 1].mean_response),
    "condition_iii_violations": _simple(lambda result, cell: exact(result.excluded)),
    "discount_pct": _simple(
        lambda result, cell: exact(
            100 * (1 - result.information.mean / len(result.system.machines))
        )
    ),
    "on_time_mean": _simple(lambda result, cell: result.figure("on_time")),
    "on_time_improvement_pct": _more_on_time,
    "Delta_pct": lambda cell: compared(
        (run_of(cell), run_of(cell, "Gcmu")), "mean_response", saved
    ),
    "W_relative": _relative,
    "W_ratio_range": _relative,
    "load_pct": exactly(lambda cell: 100 / _capacity(cell)),
    "rho": exactly(lambda cell: 1 / _capacity(cell)),
    "capacity": exactly(_capacity),
    "delta_entry": exactly(_share),
}
TESTBED = {
    "arrival_rate_observed",
    "communication_delay_seconds",
    "exec_rate_observed",
    "execution_time_inflation_pct",
    "iterations_mean_observed",
    "jobs_arrived",
    "load_with_overheads_pct",
    "max_testbed_minus_simulation_stated",
    "response_time_seconds",
    "waiting_time_seconds",
}
"""Metrics that only a run on real machines has."""


def exact(value: float) -> Estimate:
    """Return a number that has no interval."""
    return Estimate(float(value), float(value), float(value))
