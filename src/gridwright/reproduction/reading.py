"""Readings: named hypotheses of what a source did, each tried on every cell that it concerns.

The primary reading of a cell is the system and the policy as the source states them. Another
reading changes a cell in one stated way. It keeps the printed number, so that both can be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..catalogue import Cell, find, results
from .question import entry_of

IDENTITY = (
    *("src", "section", "system", "arrival", "case", "exec_dist", "platform", "policy", "kbar"),
    *("kbar_below", "reference_policy", "constant", "nodes", "etcvar", "inaccuracy_pct"),
    *("metric", "class", "machine", "column"),
)
"""The fields that all readings of a printed cell share, beside its table."""


class Reading(NamedTuple):
    """A named hypothesis of what a source did."""

    name: str
    about: str
    """What it says, and where the source says so."""
    read: Callable[[Cell], Cell | None]
    """Return a printed cell as this reading has it; None for one that it does not concern."""


POLICIES = {"LPAS_DG": "lpas_dg", "Gcmu": "gcmu", "FCFS": "fcfs"}
"""The policies of the testbed."""


def _one_run(cell: Cell) -> Cell | None:
    """Simulate the testbed's run of an experiment, in its length; None for other cells."""
    of_testbed = cell.get("platform") == "testbed" and cell["metric"] in ("W_mean", "W_class")
    if not of_testbed or cell.get("policy") not in POLICIES:
        return None
    name = f"{cell['system']}:{cell['case']}"
    return {**cell, "entry": name, "length": find(_name_as_run(cell)).horizon}


def _name_as_run(cell: Cell) -> str:
    return f"MGST-{cell['case']}-as-run:{POLICIES[cell['policy']]}"


def _as_run(cell: Cell) -> Cell | None:
    other = _one_run(cell)
    if other is None:
        return None
    return {**other, "entry": _name_as_run(cell), "settings": {"idle": "rotate"}}


def _without_sending(cell: Cell) -> Cell | None:
    other = _as_run(cell)
    if other is None:
        return None
    delays = find(other["entry"]).system.delays
    assert delays is not None
    return {**other, "changes": {"delays": {**delays.parts(), "sending": 0.0}}}


def _as_run_by(planner: str) -> Callable[[Cell], Cell | None]:
    """Make the reading of a testbed's run with another vertex."""

    def read(cell: Cell) -> Cell | None:
        other = _without_sending(cell)
        if other is None or cell["policy"] != "LPAS_DG":
            return None
        return {**other, "settings": {**other["settings"], "planner": planner}}

    return read


RESPONSES = ("W_mean", "W_class", "Delta_pct")
"""Metrics of a policy's mean responses."""
SHARE, SHARE_WITH_FAILURES = 1 / 10, 1 / 40
"""Of the published length, where a policy is compared with the usual one; with failures it plans
so often that it takes long."""
TOO_LARGE = ("3.F", "3.G1", "3.G2")
"""Systems whose LP takes too long to be solved machine by machine at every failure."""


def _vertex_by(planner: str) -> Callable[[Cell], Cell | None]:
    """Make the reading of simulated cells with another vertex."""

    def read(cell: Cell) -> Cell | None:
        simulated = cell.get("platform") != "testbed" and cell["metric"] in RESPONSES
        if not simulated or cell.get("policy") != "LPAS_DG" or cell["system"] in TOO_LARGE:
            return None
        return {**cell, "settings": {"planner": planner}, "share": _share(cell)}

    return read


def _interior(cell: Cell) -> Cell | None:
    if cell.get("policy") != "LPAS_DG_mod" or cell["metric"] not in RESPONSES:
        return None
    return {**cell, "settings": {"planner": "interior"}, "share": _share(cell)}


def _share(cell: Cell) -> float:
    """Return the share of the published length for which another planner is run."""
    return SHARE if find(entry_of(cell)).system.failures is None else SHARE_WITH_FAILURES


def _ties_at_random(cell: Cell) -> Cell | None:
    """Break ties at random where a policy of Tables 2.1 and 2.6 can meet them."""
    if cell["table"] not in ("2.1", "2.6") or cell["policy"] not in TIES:
        return None
    share = {"share": SHARE} if cell["table"] == "2.1" else {}
    return {**cell, "settings": {"tie": "random"}, **share}


TIES = ("MCT", "KPB", "LPAS", "LPAS-2/k")
READINGS: tuple[Reading, ...] = (
    Reading(
        "ties at random",
        "machines where a task would end at the same time are equally likely, in all rows of "
        "Tables 2.1 and 2.6; the source breaks ties arbitrarily, and names the smallest index as "
        "one way (A, section 2.1)",
        _ties_at_random,
    ),
    Reading(
        "model, one run",
        "the testbed's columns from the model of its simulated columns, but with the interval for "
        "a single run as long as the testbed's",
        _one_run,
    ),
    Reading(
        "as run",
        "the testbed's columns from `MGST-n-as-run`: nearly constant job lengths, the observed "
        "execution rates, delays before, after and between jobs, failures found by time-out; the "
        "interval for a single run as long as the testbed's (K, pages 54 to 117; "
        "`published/as_run.toml`)",
        _as_run,
    ),
    Reading(
        "as run, sending takes no time",
        "the same without the second that the mapper takes to send each job (K, Figure B.8)",
        _without_sending,
    ),
    Reading(
        "as run, sending takes no time, vertex by Dantzig's rule",
        "the same for LPAS_DG with `planner=dantzig`; K does not name its solver",
        _as_run_by("dantzig"),
    ),
    Reading(
        "as run, sending takes no time, vertex by the dual LP",
        "the same for LPAS_DG with `planner=dual`",
        _as_run_by("dual"),
    ),
    Reading(
        "interior point",
        "the modified LPAS_DG with the solution of an interior-point method (`planner=interior`), "
        "as the source has it (A, section 3.4.6: the barrier method of CPLEX), in place of equal "
        "shares in groups of equal machines (`planner=grouped`)",
        _interior,
    ),
    Reading(
        "vertex by Dantzig's rule",
        "LPAS_DG with the optimal vertex that the textbook's simplex method finds, the last of "
        "equal gains first (`planner=dantzig`; A, section 3.3, has a vertex and does not say "
        "which); all simulated cells but those of 3.F and 3.G, which are too large for it",
        _vertex_by("dantzig"),
    ),
    Reading(
        "vertex by the dual LP",
        "LPAS_DG with the optimal vertex that the simplex method with steepest-edge pricing finds "
        "on the dual LP (`planner=dual`); the same cells",
        _vertex_by("dual"),
    ),
)
"""Readings that are tried on every table; those of single figures are beside their targets."""
ADOPTED: dict[str, tuple[str, ...]] = {
    "A": ("as run, sending takes no time", "vertex by the dual LP"),
    "K": ("as run, sending takes no time", "vertex by the dual LP"),
    "W": ("calibrated, fitted",),
    "S": ("discard both, factor 2, full counts, marginal",),
}
"""The readings that we take for each source; those of one source concern different cells."""
FITTED = ("W", "S")
"""The sources whose adopted reading was fitted to the printed numbers, for all of its cells."""


def other_readings(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Give printed cells again under every other reading that concerns them."""
    printed = list(cells)
    for reading in READINGS:
        for cell in printed:
            other = reading.read(cell)
            if other is not None:
                yield {**other, "reading": reading.name}


def printed_cell(cell: Cell) -> tuple[object, ...]:
    """Identify the printed cell that a cell stands for, whatever its reading.

    >>> cell = {"src": "W", "table": "II", "metric": "jobs_ok", "nodes": 4}
    >>> printed_cell(cell) == printed_cell({**cell, "table": "II:text", "reading": "text"})
    True
    """
    name, _, word = str(cell["table"]).partition(":")
    table = cell["table"] if word.startswith("Figure") else name
    return (table, condition(cell), *(cell.get(field) for field in IDENTITY))


def condition(cell: Cell) -> str | None:
    """Return the variant that the source prints of a cell; None for one that only a reading has."""
    variant = cell.get("variant")
    return variant if variant in _printed_variants() else None


@cache
def _printed_variants() -> set[str]:
    return {cell["variant"] for cell in results() if "variant" in cell}
