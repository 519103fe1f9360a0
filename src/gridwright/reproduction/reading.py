"""The page of the reproduction, read again: what came of it when it was last made."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ..model import InputError
from .page import MARKS, label
from .reproduce import Reproduction
from .verdict import Verdict, tally

__all__ = ["Row", "Section", "read_page", "section_of", "shipped_page"]

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
