"""Why printed numbers and ours differ: the page that explains it, read cell by cell."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from ..model import InputError
from .reading import Row

__all__ = ["TABLES", "Explanation", "explanations"]

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
