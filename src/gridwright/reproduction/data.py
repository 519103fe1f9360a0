"""The page of the reproduction, read again: what came of it when it was last made."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ..model import InputError
from .page import MARKS, label
from .reproduce import Reproduction
from .verdict import Verdict, tally

__all__ = [
    "TABLES",
    "Explanation",
    "Row",
    "Section",
    "explanations",
    "read_page",
    "section_of",
    "shipped_page",
]

WORDS = {mark: verdict for verdict, mark in MARKS.items()}


class Row(NamedTuple):
    """A printed cell beside ours, as the page shows them."""

    system: str
    policy: str
    what: str
    published: str
    ours: str
    verdict: str
    reason: str


class Section(NamedTuple):
    """A table or figure of the page."""

    name: str
    about: str
    rows: tuple[Row, ...]

    def summary(self) -> dict[str, int]:
        """Count the verdicts."""
        return tally(row.verdict for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the table with all its rows."""
        rows = [row._asdict() for row in self.rows]
        return {"name": self.name, "about": self.about, "summary": self.summary(), "rows": rows}


def section_of(found: Reproduction) -> Section:
    """Lay out a table that was just reproduced as the page would."""
    rows = [
        Row(
            *label(outcome.cell),
            outcome.published,
            outcome.found,
            str(outcome.judgement.verdict),
            outcome.judgement.reason,
        )
        for outcome in found.outcomes
    ]
    return Section(found.target.name, found.target.about, tuple(rows))


def shipped_page() -> Path:
    """Return the page that was made last: in the package, or in the docs beside its sources."""
    package = Path(str(files("gridwright")))
    places = (package / "reproduction.md", package.parents[1] / "docs" / "reproduction.md")
    for path in places:
        if path.is_file():
            return path
    raise InputError("the page of the reproduction is not there: 'gridwright reproduce' makes it")


def read_page(path: Path | None = None) -> tuple[str, list[Section]]:
    """Read a page: at which scale it was made, and its tables."""
    try:
        text = (path or shipped_page()).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    head, *parts = text.split("\n## ")
    lines = [line.removeprefix("- ").replace("**", "") for line in head.splitlines()]
    made = [line for line in lines if line.startswith(("Scale:", "Made:"))]
    return " ".join(made), [_section(part) for part in parts]


def _section(part: str) -> Section:
    name, *lines = part.splitlines()
    about = next((line for line in lines if line.strip()), "")
    rows = [_row(line) for line in lines if line.startswith("| ") and line != HEAD]
    return Section(name.strip(), about, tuple(rows))


HEAD = "| system | policy | what | published | ours | |"


def _row(line: str) -> Row:
    system, policy, what, published, ours, last = (
        cell.strip() for cell in line[1:].rstrip().removesuffix("|").split("|", 5)
    )
    mark, _, reason = last.partition(" ")
    verdict = WORDS.get(mark, Verdict.not_run)
    return Row(system, policy, what, published, ours, str(verdict), reason)


MGST = ("K:", "A:3.15", "A:3.16", "A:3.17", "A:3.18")
TABLES: dict[str, tuple[str, ...]] = {
    "Push": ("A:2.",),
    "Pull": ("A:3.2", "A:3.3", "A:3.4", "A:3.5", "A:3.6", "A:3.12", "A:3.14"),
    "Other distributions": ("A:3.11",),
    "Section 3.4.4": ("A:text",),
    "Large grids": ("A:Figure 3.1", "A:Figure 3.2", "A:Figure 3.3"),
    "Inaccurate availabilities": ("A:Figure 3.4",),
    "The testbed's simulated columns": MGST,
    "The testbed's own columns": MGST,
    "Decentralised grids": ("A:4.1", "A:Figure 4", "A:text", "D:"),
    "Batches with deadlines": ("S:",),
    "In the text": ("A:text", "K:text", "D:text", "LP"),
    "Chains": ("W:",),
}
"""Which tables a section of the page is about: how its heading begins, and how their names do."""


class Explanation(NamedTuple):
    """What the page says of a table, or of one of its systems."""

    title: str
    text: str


def explanations(table: str, row: Row) -> list[Explanation]:
    """Return what is known of a cell: what its system is said of, or all that its table is.

    >>> from gridwright.reproduction import read_page
    >>> page = {section.name: section for section in read_page()[1]}
    >>> row = next(row for row in page["A:2.1"].rows if row.verdict == "differs")
    >>> explanations("A:2.1", row)[0].text[:18]
    '**2.B under LPAS.*'
    """
    found = []
    for title, parts in _sections():
        begin, _, _ = title.partition(":")
        if any(table.startswith(name) for name in TABLES.get(begin, ())):
            system = re.compile(rf"(?<![\w.]){re.escape(row.system.split(':')[0])}(?![\w.]*\w)")
            own = [part for part in parts if system.search(part)]
            found.append((bool(own), Explanation(title, "\n\n".join(own or parts))))
    chosen = [each for is_own, each in found if is_own]
    return chosen or [each for _, each in found]


@cache
def _sections() -> list[tuple[str, list[str]]]:
    """Return the page: headings, and under each its paragraphs and points."""
    _, *sections = _shipped().read_text("utf-8").split("\n## ")
    found = []
    for section in sections:
        title, _, text = section.partition("\n")
        parts = re.split(r"\n\s*\n|\n(?=- )", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text))
        plain = [" ".join(part.split()).removeprefix("- ") for part in parts]
        found.append((title.strip(), [part for part in plain if part]))
    return found


def _shipped() -> Path:
    package = Path(str(files("gridwright")))
    places = (package / "differences.md", package.parents[1] / "docs" / "differences.md")
    for path in places:
        if path.is_file():
            return path
    raise InputError("the page that explains the differences is not there")
