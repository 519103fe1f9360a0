"""Put a reading of a table into the recorded page, without running the table as stated again.

    python tools/record_reading.py READING TABLE [--like TEXT]

Many readings are compared with the policy as stated for a share of the published length
(``reproduction/reading.py``). The answers as stated are taken from ``docs/reproduction.json``, as
they are rounded there, so only the two short runs are needed. Cells of systems whose name does not
contain TEXT stay as they are.
"""

import argparse
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
from gridwright.statistics import Estimate

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"


def recorded(row: Row) -> Answer:
    """Return what a recorded row says: its mean, its half width, and whether it is stable."""
    mean, _, rest = row.ours.partition(" ± ")
    half, _, word = rest.partition(" ")
    number, width = float(mean), float(half)
    stable = {"unstable": False, "undecided": None}.get(word, True)
    return Answer(Estimate(number, number - width, number + width), stable)


def ask(cell: Cell, row: Row) -> Question:
    """Ask for a cell of a reading, or by how much the reading changes a recorded answer."""
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
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    compile_simplex()  # some readings plan at every failure, in Python
    (target,) = reproduction.choose([chosen.table])
    laboratory = reproduction.Laboratory(threads=chosen.threads, store=Store())
    section = next(s for s in reproduction.read_data().sections if s.name == target.name)
    rows, fresh = {(*row[:3], row.reading): row for row in section.rows}, {}
    primary = [cell for cell in target.cells if "reading" not in cell]
    stated = {printed_cell(cell): rows[*label(cell), ""] for cell in primary}
    for cell in target.cells:
        words = label(cell)
        if cell.get("reading") != chosen.reading or chosen.like not in words[0]:
            continue
        row = stated[printed_cell(cell)]
        asked = ask(cell, row)
        found = asked.answer(tuple(laboratory.result(run) for run in asked.runs))
        judgement = judgement_of(cell, found)
        outcome = reproduction.Outcome(cell, found.ours, found.stable, judgement)
        fresh[*words, chosen.reading] = new = Row(
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
    rows = {(*row[:3], row.reading): row for row in section.rows} | fresh
    keys = [(*label(cell), cell.get("reading", "")) for cell in target.cells]
    section = section._replace(rows=tuple(rows[key] for key in keys if key in rows))
    sections = [section if s.name == target.name else s for s in data.sections]
    reproduction.write_page(data._replace(sections=tuple(sections)), PAGE)


if __name__ == "__main__":
    main()
