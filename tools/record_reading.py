"""Put a reading of a table into the recorded page, without running the table as stated again.

    python tools/record_reading.py READING TABLE [--like TEXT] [--as-stated]

Many readings are compared with the policy as stated for a share of the published length
(``reproduction/reading.py``). The answers as stated are taken from ``docs/reproduction.json``, as
they are rounded there, so only the two short runs are needed. Cells of systems whose name does not
contain TEXT stay as they are. ``--as-stated`` runs nothing and records the answers as stated, for
planners that make the same plans.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gridwright import reproduction
from gridwright.allocation.planner import compile_simplex
from gridwright.catalogue import Cell
from gridwright.experiments import Store
from gridwright.reproduction import Row, label
from gridwright.reproduction.question import Answer, Question, run_of, shifted
from gridwright.reproduction.reading import printed_cell
from gridwright.reproduction.reproduce import ask as ask_anew
from gridwright.reproduction.reproduce import judgement_of
from gridwright.reproduction.verdict import words as published
from gridwright.statistics import Estimate

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"


def recorded(row: Row) -> Answer:
    """Return what a recorded row says: its mean, its half width, and whether it is stable."""
    mean, _, rest = row.ours.partition(" ± ")
    half, _, word = rest.partition(" ")
    number, width = float(mean), float(half)
    stable = {"unstable": False, "undecided": None}.get(word, True)
    return Answer(Estimate(number, number - width, number + width), stable)


def key_of(cell: Cell) -> tuple[str, ...]:
    """Identify a cell in its table; simulated and measured columns differ in what is printed."""
    return (*label(cell), published(cell), cell.get("reading", ""))


def by_key(rows: Sequence[Row]) -> dict[tuple[str, ...], Row]:
    """Return the recorded rows of a table as ``key_of`` identifies them."""
    found: dict[tuple[str, ...], Row] = {(*row[:4], row.reading): row for row in rows}
    assert len(found) == len(rows), "two rows are the same cell"
    return found


def ask(cell: Cell, row: Row, *, as_stated: bool) -> Question:
    """Ask for a cell of a reading, or by how much the reading changes a recorded answer."""
    if as_stated:
        return Question((), lambda results: recorded(row))
    if "share" not in cell:
        return ask_anew(cell)
    usual = {key: value for key, value in cell.items() if key != "settings"}
    beside = run_of(usual, "Gcmu" if cell["metric"] == "Delta_pct" else None)
    short = beside._replace(share=cell["share"])  # an improvement needs the mean of Gcmu
    return shifted(cell, Question((short, short), lambda results: recorded(row)))


def main() -> None:
    """Run what a reading needs, and write the page and its data again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reading")
    parser.add_argument("table")
    parser.add_argument("--like", default="", metavar="TEXT")
    parser.add_argument("--as-stated", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    compile_simplex()  # some readings plan at every failure, in Python
    (target,) = reproduction.choose([chosen.table])
    laboratory = reproduction.Laboratory(threads=chosen.threads, store=Store())
    section = next(s for s in reproduction.read_data().sections if s.name == target.name)
    rows, fresh = by_key(section.rows), {}
    primary = [cell for cell in target.cells if "reading" not in cell]
    stated = {printed_cell(cell): rows[key_of(cell)] for cell in primary}
    for cell in target.cells:
        words = label(cell)
        if cell.get("reading") != chosen.reading or chosen.like not in words[0]:
            continue
        row = stated[printed_cell(cell)]
        asked = ask(cell, row, as_stated=chosen.as_stated)
        found = asked.answer(tuple(laboratory.result(run) for run in asked.runs))
        judgement = judgement_of(cell, found)
        outcome = reproduction.Outcome(cell, found.ours, found.stable, judgement)
        fresh[key_of(cell)] = new = Row(
            *words,
            row.published,
            outcome.found,
            str(judgement.verdict),
            judgement.reason,
            chosen.reading,
            row.verdict,
        )
        print(*new[:6], f"({row.ours}, {row.verdict})", sep=" | ", flush=True)
    data = reproduction.read_data()  # others may have written it in the meantime
    section = next(s for s in data.sections if s.name == target.name)
    rows = by_key(section.rows) | fresh
    keys = [key_of(cell) for cell in target.cells]
    section = section._replace(rows=tuple(rows[key] for key in keys if key in rows))
    sections = [section if s.name == target.name else s for s in data.sections]
    reproduction.write_page(data._replace(sections=tuple(sections)), PAGE)


if __name__ == "__main__":
    main()
