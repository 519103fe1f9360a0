"""The reproduction as data: written by ``research reproduce``, shown by web page and report.

The data are a JSON file. The Markdown page is drawn from them and never read.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ..catalogue import Cell, cite
from ..compiler.computer import computer
from ..experiments import GPU, Store
from ..experiments.device import find_device
from ..model import InputError
from ..model.error import file_errors
from ..simulation import Pieces
from .account import PRIMARY, Account, Judged, accounts, by_reading
from .laboratory import PUBLISHED, Laboratory, Scale
from .question import entry_of, run_of
from .reading import condition, printed_cell
from .reproduce import Outcome, Reproduction, primary_verdicts
from .verdict import counted, tally

WHAT = {
    "Q_mean": "mean number",
    "W_mean": "mean response",
    "jobs_in_progress": "jobs in progress",
    "jobs_late": "jobs late",
    "jobs_ok": "jobs in time",
    "nodes_for_full_performance_stated": "nodes for full performance",
    "perf_fraction": "performance",
    "perf_max_minus_min": "performance, largest − least over etcvar",
    "time_over_estimate_sd": "actual over estimated time, standard deviation",
    "Delta_pct": "improvement over Gcmu, %",
    "W_relative": "mean response, Gcmu = 1",
    "W_ratio_range": "mean response of FCFS, LPAS_DG = 1",
    "capacity": "λ*",
    "cost_bound": "lower bound of the mean cost",
    "cost_mean": "mean cost",
    "cost_optimum": "least mean cost",
    "cost_preemptive": "least mean cost, if tasks may be interrupted",
    "condition_iii_violations": "choices excluded by condition (iii)",
    "discount_pct": "state information saved, %",
    "load_pct": "load, %",
    "messages_improvement_pct": "fewer messages, %",
    "like_for_like_pct": "fewer messages, itself never counted, %",
    "on_time_mean": "tasks on time",
    "on_time_improvement_pct": "more on time, %",
    "rho": "load",
    "W_class": "class {class}",
    "exec_rate_observed": "rate of class {class} on machine {machine}",
    "arrival_rate_observed": "arrival rate of class {class}",
}
"""The name of each metric in tables; other metrics keep their own names."""
POLICY = {"kbar": " k={}", "kbar_below": " k<{}", "constant": " C={}", "variant": ", {}"}
MORE = {"inaccuracy_pct": ", I = {} %", "nodes": ", {} nodes", "etcvar": ", etcvar {:g}"}
"""Text that follows the name of a policy, or of a metric, if a cell has these fields."""
TESTBED = ("K:", "A:3.15", "A:3.16", "A:3.17", "A:3.18")
TABLES: dict[str, tuple[str, ...]] = {
    "Push": ("A:2.",),
    "Pull": ("A:3.2", "A:3.3", "A:3.4", "A:3.5", "A:3.6", "A:3.12", "A:3.14"),
    "Other distributions": ("A:3.11",),
    "Section 3.4.4": ("A:text",),
    "Large grids": ("A:Figure 3.1", "A:Figure 3.2", "A:Figure 3.3"),
    "Inaccurate availabilities": ("A:Figure 3.4",),
    "The testbed's simulated columns": TESTBED,
    "The testbed's own columns": TESTBED,
    "Decentralised grids": ("A:4.1", "A:Figure 4", "A:text", "D:"),
    "Batches with deadlines": ("S:",),
    "In the text": ("A:text", "K:text", "D:text", "LP"),
    "Chains": ("W:",),
}
"""How a heading in differences.md begins, and how the names of the tables under it begin."""


class Row(NamedTuple):
    """A printed cell beside ours, in words."""

    system: str
    policy: str
    what: str
    published: str
    ours: str
    verdict: str
    reason: str
    reading: str = ""
    """The name of the reading; empty for the primary one."""
    primary: str = ""
    """The verdict of the same printed cell in the primary reading, if this is another one."""


class Section(NamedTuple):
    """A table or figure."""

    name: str
    about: str
    note: str
    """How long its runs are, if published runs take hours; empty if all have that length."""
    picture: str
    """The file that the figure is drawn into; empty if there is none."""
    rows: tuple[Row, ...]

    def judged(self) -> list[Judged]:
        """Return the verdict of every row, with its source and reading."""
        source = self.name.partition(":")[0]
        return [Judged(source, row.reading, row.verdict, row.primary) for row in self.rows]

    def summary(self) -> dict[str, int]:
        """Count the verdicts of the primary reading."""
        return tally(row.verdict for row in self.rows if not row.reading)

    @property
    def sentence(self) -> str:
        """What the table is, its source, and how many cells agree in the primary reading."""
        source = self.name.partition(":")[0]
        cited = f" ({cite(source)})" if source in "AKSDWQ" else ""
        about = f"{self.about[0].upper()}{self.about[1:]}{cited}."
        counts = {name: count for name, count in self.summary().items() if count}
        return f"{about} {counted(counts)}." if counts else about

    @property
    def readings(self) -> str:
        """How many cells agree in each other reading, in words; empty if there is none."""
        found = by_reading(self.judged())
        return "; ".join(
            f"{name}: {counted({word: count for word, count in counts.items() if count})}"
            for name, counts in found.items()
            if name != PRIMARY
        )

    def as_json(self) -> dict[str, Any]:
        """Return the table as the REST API shows it."""
        rows = [row._asdict() for row in self.rows]
        about = {"name": self.name, "about": self.sentence, "summary": self.summary()}
        return {**about, "readings": by_reading(self.judged()), "rows": rows}


class ReproductionData(NamedTuple):
    """Everything that was reproduced, and how."""

    scale: str
    share: float
    """Of the published length."""
    seed: int
    work: str
    """How much was simulated."""
    made: str
    """The date, the version and the computer."""
    sections: tuple[Section, ...]

    def summary(self) -> dict[str, int]:
        """Count the verdicts of all tables in the primary reading."""
        return tally(row.verdict for each in self.sections for row in each.rows if not row.reading)

    def accounts(self) -> list[Account]:
        """Return how many cells of every source agree under each of its readings."""
        return accounts(cell for section in self.sections for cell in section.judged())

    @property
    def settings(self) -> str:
        """How, when and where the tables were reproduced, in one line."""
        return f"Scale: {self.scale}, seed {self.seed}. Made: {self.made}."

    def updated(self, newer: ReproductionData) -> ReproductionData:
        """Return these data with the tables that newer ones have."""
        tables = {each.name: each for each in newer.sections}
        kept = {each.name: tables.pop(each.name, each) for each in self.sections}
        sections = (*kept.values(), *tables.values())
        names = ", ".join(each.name for each in newer.sections)
        is_short = any("of the published length" in each.note for each in sections)
        scale = newer.scale
        if is_short and scale != self.scale:
            scale = f"{self.scale}; {names}: {newer.scale}"
        return self._replace(
            scale=scale,
            work=f"{self.work}; {names}: {newer.work}",
            made=f"{self.made}; {names}: {newer.made}",
            sections=sections,
        )

    def write(self, path: Path) -> None:
        """Write the data as JSON, a line for each row."""
        head = {key: value for key, value in self._asdict().items() if key != "sections"}
        lines = []
        for section in self.sections:
            about = _json({k: v for k, v in section._asdict().items() if k != "rows"})
            rows = ",\n".join(_json(row) for row in section.rows)
            lines.append(f'{about[:-1]}, "rows": [\n{rows}\n]}}')
        text = f'{_json(head)[:-1]}, "sections": [\n' + ",\n".join(lines) + "\n]}\n"
        with file_errors(path, "written"):
            path.write_text(text, encoding="utf-8")


def read_data(path: Path | None = None) -> ReproductionData:
    """Read data that ``research reproduce`` has written; by default the shipped ones."""
    path = path or shipped("reproduction.json")
    try:
        found = json.loads(path.read_text("utf-8"))
        sections = [
            Section(**{**each, "rows": tuple(Row(*row) for row in each["rows"])})
            for each in found.pop("sections")
        ]
        return ReproductionData(**found, sections=tuple(sections))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def data_of(found: Sequence[Reproduction], laboratory: Laboratory) -> ReproductionData:
    """Return everything that was reproduced as data."""
    primary = primary_verdicts(found)
    today = datetime.now(UTC).date().isoformat()
    return ReproductionData(
        scale=str(laboratory.scale),
        share=laboratory.scale.share,
        seed=laboratory.seed,
        work=laboratory.work(),
        made=f"{today} by gridwright {version('gridwright')} with Python "
        f"{platform.python_version()} on {computer()}{_gpu(laboratory)}{_elsewhere(laboratory)}",
        sections=tuple(section_of(each, laboratory, primary) for each in found),
    )


def _gpu(laboratory: Laboratory) -> str:
    """Name the GPU, if runs were made on one."""
    return f" and {find_device().name}" if laboratory.on == GPU else ""


def _elsewhere(laboratory: Laboratory) -> str:
    """Say that results may be of other computers, if they may."""
    is_open = isinstance(laboratory.store, Store) and laboratory.store.anywhere
    return ", with kept results of the same code on other computers" if is_open else ""


def section_of(
    found: Reproduction,
    laboratory: Laboratory,
    primary: Mapping[tuple[object, ...], str] | None = None,
) -> Section:
    """Return a table that was reproduced as data; ``primary`` has the verdicts of all tables."""
    primary = primary_verdicts([found]) if primary is None else primary
    rows = [
        Row(
            *label(outcome.cell),
            outcome.published,
            outcome.found,
            str(outcome.judgement.verdict),
            outcome.judgement.reason,
            outcome.reading,
            primary.get(printed_cell(outcome.cell), "") if outcome.reading else "",
        )
        for outcome in found.outcomes
    ]
    note = lengths(found, laboratory)
    return Section(found.target.name, found.target.about, note, found.picture, tuple(rows))


def label(cell: Cell) -> tuple[str, str, str]:
    """Return the system, the policy and the figure that a cell is about, in words."""
    metric = str(cell["metric"])
    what = WHAT.get(metric, metric.replace("_", " ")).format_map(cell)
    if metric in ("W_relative", "messages_relative") and cell["system"][0] == "4":
        what = f"{'messages' if 'messages' in metric else 'mean response'}, MCT = 1"
    if metric == "delta_entry":
        place = "column" if "column" in cell else "machine"
        what = f"δ* of class {cell['class']}, {place} {cell.get(place)}"
    policy = str(cell.get("policy", "")) + _said(cell, POLICY)
    if "reading" in cell and cell.get("variant") == condition(cell):
        policy += f", {cell['reading']}"
    return entry_of(cell), policy.removeprefix(", "), what + _said(cell, MORE)


def _said(cell: Cell, words: dict[str, str]) -> str:
    return "".join(text.format(cell[key]) for key, text in words.items() if key in cell)


def lengths(found: Reproduction, laboratory: Laboratory) -> str:
    """Say how long the runs of a table are, of those systems whose published runs take hours."""
    scale = laboratory.scale
    own = [o for o in found.outcomes if o.ours and PUBLISHED.extra(entry_of(o.cell)) < 1]
    short = [each for each in own if scale.extra(entry_of(each.cell)) < 1]
    long = [each for each in own if scale.extra(entry_of(each.cell)) == scale.share == 1]
    return " ".join(filter(None, [_shortened(short, scale), *_unshortened(long, laboratory)]))


def _shortened(short: Sequence[Outcome], scale: Scale) -> str:
    systems = sorted({str(each.cell["system"]) for each in short})
    shares = {scale.share * scale.extra(name) for name in systems}
    if not shares:
        return ""
    words = f"Runs of {', '.join(systems)} are 1/{1 / min(shares):g} of the published length"
    return f"{words}{_precision(short)}."


def _unshortened(long: Sequence[Outcome], laboratory: Laboratory) -> Iterator[str]:
    cuts = [_cut_of(each.cell, laboratory) for each in long]
    for cut in dict.fromkeys(cuts):
        some, others = (
            [each for each, own in zip(long, cuts, strict=True) if (own == cut) == is_so]
            for is_so in (True, False)
        )
        words = f"Runs of {_named(some, {each.cell['system'] for each in others})}"
        words += " have the published length"
        made = "" if cut is None else f", put together from {cut}"
        yield f"{words}{made}{_precision(some)}."


def _named(some: Sequence[Outcome], elsewhere: Collection[object]) -> str:
    """Name the systems of some cells, and the policies of those that are elsewhere too."""
    names = {
        f"{entry_of(cell)} under {cell['policy']}"
        if cell["system"] in elsewhere
        else str(cell["system"])
        for cell, *_ in some
    }
    return ", ".join(sorted(names))


def _cut_of(cell: Cell, laboratory: Laboratory) -> Pieces | None:
    """Return how the run of a cell was cut; None if it was not."""
    is_cut = laboratory.scale.pieces_of(entry_of(cell)) is not None
    return laboratory.cut_of(run_of(cell)) if is_cut else None


def _precision(some: Sequence[Outcome]) -> str:
    widths = [
        100 * each.ours.half_width / abs(each.ours.mean)
        for each in some
        if each.ours is not None and each.cell["metric"] == "W_mean" and each.ours.mean
    ]
    if not widths:
        return ""
    return f"; half widths of the mean response are {max(widths):.2g} % of it or less"


class Explanation(NamedTuple):
    """Why the cells of a table differ from ours."""

    title: str
    text: str


def explanations(table: str, row: Row) -> list[Explanation]:
    """Return what differences.md says about the system of a cell, or else about its table.

    >>> sections = {section.name: section for section in read_data().sections}
    >>> row = next(row for row in sections["A:2.1"].rows if row.verdict == "differs")
    >>> explanations("A:2.1", row)[0].text[:18]
    '**2.B under LPAS.*'
    """
    found = []
    for title, parts in _explained():
        begin, _, _ = title.partition(":")
        if any(table.startswith(name) for name in TABLES.get(begin, ())):
            system = re.compile(rf"(?<![\w.]){re.escape(row.system.split(':')[0])}(?![\w.]*\w)")
            own = [part for part in parts if system.search(part)]
            found.append((bool(own), Explanation(title, "\n\n".join(own or parts))))
    chosen = [each for is_own, each in found if is_own]
    return chosen or [each for _, each in found]


@cache
def _explained() -> list[tuple[str, list[str]]]:
    """Return the headings of differences.md, each with its paragraphs and list items."""
    _, *sections = shipped("differences.md").read_text("utf-8").split("\n## ")
    found = []
    for section in sections:
        title, _, text = section.partition("\n")
        parts = re.split(r"\n\s*\n|\n(?=- )", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text))
        plain = [" ".join(part.split()).removeprefix("- ") for part in parts]
        found.append((title.strip(), [part for part in plain if part]))
    return found


def shipped(name: str) -> Path:
    """Find a file or folder of the docs: in the package, or beside its source code."""
    package = Path(str(files("gridwright")))
    for path in (package / "docs" / name, package.parents[1] / "docs" / name):
        if path.exists():
            return path
    raise InputError(f"{name} is not part of this installation; reinstall gridwright")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
