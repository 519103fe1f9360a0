"""An account of rows: how many there were, how many were kept, and why the others were not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LARGEST", "Account", "Skipped", "fields"]

LARGEST = 1e12
"""Numbers beyond this are mistakes: as seconds, they are more than 30,000 years."""
SHOWN = 3
"""Rows that are told of for every reason."""


def fields(count: int) -> str:
    """Write a number of fields."""
    return "1 field" if count == 1 else f"{count} fields"


@dataclass
class Skipped:
    """Rows that were left out for one reason."""

    count: int = 0
    first: list[str] = field(default_factory=list)
    """The first few of them: line and what is wrong."""


class Account:
    """Rows kept and rows left out; the two always add up to all of them.

    >>> account = Account(kept=7)
    >>> account.skip("not 18 fields", 12, "3 fields")
    >>> account.rows, account.skipped["not 18 fields"].first
    (8, ['line 12: 3 fields'])
    >>> print(account)
    8 rows: 7 kept, 1 left out
      1 × not 18 fields (line 12: 3 fields)
    """

    def __init__(self, kept: int = 0, notes: Iterable[str] = ()) -> None:
        self.kept = kept
        self.skipped: dict[str, Skipped] = {}
        self.notes = list(notes)
        """What was assumed of rows that were kept."""

    @property
    def rows(self) -> int:
        """How many there were."""
        return self.kept + sum(each.count for each in self.skipped.values())

    def skip(self, why: str, line: int, what: str = "", count: int = 1) -> None:
        """Leave a row out, or some."""
        if count <= 0:
            return
        found = self.skipped.setdefault(why, Skipped())
        found.count += count
        if len(found.first) < SHOWN and line > 0:
            found.first.append(f"line {line}: {what}" if what else f"line {line}")

    def take_over(self, other: Account) -> None:
        """Count the rows that another account left out, before those that this one did."""
        own, self.skipped = self.skipped, {}
        for skipped in (other.skipped, own):
            for why, each in skipped.items():
                found = self.skipped.setdefault(why, Skipped())
                found.count += each.count
                found.first = (found.first + each.first)[:SHOWN]
        self.notes = [*other.notes, *self.notes]

    def __str__(self) -> str:
        left = self.rows - self.kept
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        lines = [f"{rows}: {self.kept:,} kept, {left:,} left out"]
        for why, each in self.skipped.items():
            where = f" ({'; '.join(each.first)}{'; …' * (each.count > len(each.first))})"
            lines.append(f"  {each.count:,} × {why}{where if each.first else ''}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "skipped": {
                why: {"count": each.count, "first": each.first}
                for why, each in self.skipped.items()
            },
            "notes": self.notes,
        }
