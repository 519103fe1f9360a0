"""Everything that can be reproduced: the published tables and figures, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import inf
from typing import NamedTuple

from ..catalogue import Cell, entries, results, tables
from ..model import InputError, did_you_mean
from . import decentralised
from .benchmarks import benchmark_targets
from .chains import chain_targets
from .reading import other_readings


class Target(NamedTuple):
    """A table or figure, with its cells."""

    name: str
    about: str
    cells: tuple[Cell, ...]

    @property
    def stated(self) -> Target:
        """The target in its primary reading only."""
        return self._replace(cells=tuple(cell for cell in self.cells if "reading" not in cell))


@cache
def targets() -> dict[str, Target]:
    """Return every target by its name.

    >>> [len(targets()[name].stated.cells) for name in ("A:2.1", "A:Figure 3.4")]
    [34, 22]
    """
    found = {}
    for name, table in tables().items():
        source, _, own = name.partition(":")
        printed = results(src=source, table=own)
        cells = (*printed, *_drawn(name), *_other_batches(name), *other_readings(printed))
        found[name] = Target(name, table.about, cells)
        if name == "A:2.1":
            found |= {each.name: each for each in _other_times(found[name])}
    found |= {each[0]: Target(*each) for each in (*chain_targets(), *benchmark_targets())}
    found["LP"] = Target("LP", "worked examples of the allocation LP", tuple(_worked()))
    return found


def choose(words: Sequence[str]) -> list[Target]:
    """Return the targets with these names; ``A:`` may be left out.

    Without names these are all of the theses and papers; QGym's are asked for by name (``Q:N``).

    >>> [target.name for target in choose(["2.6", "Figure 3.1", "text"])]
    ['A:2.6', 'A:Figure 3.1', 'A:text', 'K:text', 'D:text', 'S:text', 'W:text']
    """
    known = targets()
    if not words:
        return [each for name, each in known.items() if not name.startswith("Q:")]
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
    """Give Table 2.1 with execution times of more and of less variation."""
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
            for cell in table.stated.cells
        )
        yield Target(name, f"the systems of Table 2.1 with {words} times", cells)


def _drawn(name: str) -> Iterator[Cell]:
    """Give cells for curves and bars of a figure that prints no numbers."""
    cell: Cell = {"src": "A", "table": name.removeprefix("A:"), "case": 1}
    relative = {
        "A:Figure 3.1": ("3.G1", "alpha1"),
        "A:Figure 3.2": ("3.G2", "alpha1"),
        "A:Figure 3.3": ("3.G2", "alpha2"),
    }
    if name in relative:
        cell["system"], cell["arrival"] = relative[name]
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
    """Give every λ* and δ* that a source states."""
    for entry in entries():
        cell: Cell = {"src": entry.source, "table": "LP", "system": entry.name, "decimals": 4}
        if entry.expected_capacity is not None:
            yield {**cell, "metric": "capacity", "value": entry.expected_capacity}
        for i, row in enumerate(entry.expected_allocation or ()):
            for j, value in enumerate(row):
                where = {"class": i + 1, "column": j + 1}
                yield {**cell, **where, "metric": "delta_entry", "value": value}


DISCARDS = ("never", "batch", "both")
FACTORS = (1, 2)
FULL, JOINT = ("full", ("leaves", "counts")), ("joint", ("true", "false"))
"""Parameters whose published description has two readings, that of the text first."""
OWN = {"MOC": JOINT, "MECT": ("", ("",))}
"""Policies with another such parameter than ``full``, or none."""
WORDS = {
    "leaves": "full: leaves",
    "counts": "full: load counts",
    "true": "joint",
    "false": "marginal",
}
TEXT, OTHER = "full leaves, joint", "full counts, marginal"
"""The two readings of these parameters, for all policies at once."""


def _other_batches(name: str) -> Iterator[Cell]:
    """Give every printed cell of Figure 1 for each reading other than that of the text."""
    if name != "S:Figure 1":
        return
    for discard, factor in product(DISCARDS, FACTORS):
        for cell in results(src="S", table="Figure 1"):
            key, values = OWN.get(cell["policy"], FULL)
            for value in values:
                is_text = (discard, factor, value) == ("never", 1, values[0])
                if is_text or (cell["policy"] == "MECT" and discard != "never"):
                    continue  # MECT discards nothing, so the rule does not matter
                rule = [f"discard {discard}", f"factor {factor}"]
                words = [*rule, WORDS.get(value, "")]
                both = TEXT if value == values[0] else OTHER
                yield {
                    **cell,
                    "reading": ", ".join([*rule, both]),
                    "variant": ", ".join(filter(None, words)) + " (fitted)",
                    "settings": {key: value} if key else {},
                    "changes": {"deadlines": {"factor": factor, "discard": discard}},
                }


def best_reading(cells: Sequence[Cell], off: Sequence[float]) -> list[int]:
    """Return the numbers of the cells of the reading with the least total deviation."""
    found: list[int] = []
    least, policies = inf, len({cell["policy"] for cell in cells})
    for discard, factor, full, joint in product(DISCARDS, FACTORS, FULL[1], JOINT[1]):
        wanted = [k for k, cell in enumerate(cells) if _is_read(cell, discard, factor, full, joint)]
        total = sum(off[k] for k in wanted)
        if len(wanted) == policies and total < least:
            found, least = wanted, total
    return found


def _is_read(cell: Cell, discard: str, factor: int, full: str, joint: str) -> bool:
    """Tell whether a cell belongs to a reading; MECT discards nothing, so it fits every rule."""
    rule = cell.get("changes", {"deadlines": {"factor": 1, "discard": "never"}})["deadlines"]
    if cell["policy"] == "MECT":
        return bool(rule["factor"] == factor)
    text = {"joint": "true"} if cell["policy"] == "MOC" else {"full": "leaves"}
    own = {"full": full, "joint": joint, **cell.get("settings", text)}
    ways = (rule["discard"], rule["factor"], own["full"], own["joint"])
    return ways == (discard, factor, full, joint)
