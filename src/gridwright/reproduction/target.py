"""Everything that can be reproduced: the published tables and figures, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from ..catalogue import Cell, entries, results, tables
from ..model import InputError, did_you_mean
from . import decentralised
from .chain_target import chain_targets
from .smith import other_readings

__all__ = ["Target", "choose", "targets"]


class Target(NamedTuple):
    """A table or figure, with a cell for everything that we set beside it."""

    name: str
    about: str
    cells: tuple[Cell, ...]


@cache
def targets() -> dict[str, Target]:
    """Return every target by its name.

    >>> [len(targets()[name].cells) for name in ("A:2.1", "A:Figure 3.4")]
    [34, 22]
    """
    found = {}
    for name, table in tables().items():
        source, _, own = name.partition(":")
        cells = (*results(src=source, table=own), *_drawn(name), *other_readings(name))
        found[name] = Target(name, table.about, cells)
        if name == "A:2.1":
            found |= {each.name: each for each in _other_times(found[name])}
    found |= {each[0]: Target(*each) for each in chain_targets()}
    found["LP"] = Target("LP", "worked examples of the allocation LP", tuple(_worked()))
    return found


def choose(words: Sequence[str]) -> list[Target]:
    """Return the targets that words name: all without any; a bare number or figure is A's.

    >>> [target.name for target in choose(["2.6", "Figure 3.1", "text"])]
    ['A:2.6', 'A:Figure 3.1', 'A:text', 'K:text', 'D:text', 'S:text', 'W:text']
    """
    known = targets()
    if not words:
        return list(known.values())
    chosen: dict[str, Target] = {}
    for word in words:
        if word == "text":
            chosen |= {name: known[name] for name in known if name[1:] == ":text"}
        elif word == "3.4.4":
            cells = tuple(c for c in known["A:text"].cells if c.get("section") == word)
            about = "availabilities known to LPAS_DG, or taken to be 1"
            chosen[word] = Target(word, about, cells)
        elif word in known or f"A:{word}" in known:
            name = word if word in known else f"A:{word}"
            chosen[name] = known[name]
        else:
            hint = did_you_mean(word, [*known, *(n.partition(":")[2] for n in known)])
            raise InputError(f"no table {word!r}{hint or '; reproduce --list lists them'}")
    return list(chosen.values())


def _other_times(table: Target) -> Iterator[Target]:
    """Table 2.1 once more, with execution times of more and of less variation."""
    for words, times in (
        ("deterministic", "deterministic"),
        ("hyperexponential", {"kind": "hyperexponential", "scv": 2}),
    ):
        name = f"{table.name}:{words}"
        cells = tuple(
            {
                **{key: cell[key] for key in ("system", "policy", "kbar", "metric") if key in cell},
                "src": "A",
                "table": f"2.1:{words}",
                "exec_dist": words,
                "changes": {"execution": times},
            }
            for cell in table.cells
        )
        yield Target(name, f"the systems of Table 2.1 with {words} times", cells)


def _drawn(name: str) -> Iterator[Cell]:
    """Cells for what a figure draws without printing a number."""
    cell: Cell = {"src": "A", "table": name.removeprefix("A:"), "case": 1}
    relative = {"A:Figure 3.1": "3.G1:alpha1", "A:Figure 3.2": "3.G2:alpha1"}
    relative["A:Figure 3.3"] = "3.G2:alpha2"
    if name in relative:
        system, arrival = relative[name].split(":")
        cell |= {"system": system, "arrival": arrival}
        for policy in ("FCFS", "LPAS_DG"):
            for metric in ("W_relative", "W_mean"):
                yield {**cell, "policy": policy, "metric": metric}
        yield {**cell, "policy": "Gcmu", "metric": "W_mean"}
    if name == "A:Figure 3.4":
        cell |= {"system": "3.H", "arrival": "alpha1", "metric": "Delta_pct"}
        for percent in range(0, 101, 10):
            wrong = {"assumed": {"inaccuracy": {"availability": percent / 100}}}
            for policy in ("LPAS_DG", "LPAS_DG_mod"):
                more = {"policy": policy, "inaccuracy_pct": percent, "changes": wrong}
                yield {**cell, **more}
    yield from decentralised.drawn(name)
    if name == "A:text":
        yield {
            "src": "A",
            "table": "text",
            "section": "2.4",
            "system": "2.Sharifnia",
            "policy": "Guided-LPAS",
            "metric": "condition_iii_violations",
            "constant": 100,
        }


def _worked() -> Iterator[Cell]:
    """Every λ* and δ* that a source states, entry by entry."""
    for entry in entries():
        cell: Cell = {"src": entry.source, "table": "LP", "system": entry.name, "decimals": 4}
        if entry.expected_capacity is not None:
            yield {**cell, "metric": "capacity", "value": entry.expected_capacity}
        for i, row in enumerate(entry.expected_allocation or ()):
            for j, value in enumerate(row):
                where = {"class": i + 1, "column": j + 1}
                yield {**cell, **where, "metric": "delta_entry", "value": value}
