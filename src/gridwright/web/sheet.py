"""A system as editable cells: texts that need not be valid yet."""

from dataclasses import dataclass, field
from typing import Any, Self

from .fields import as_number, as_text, as_whole

MEANS = ("mean_uptime", "mean_repair")
MOST_ALIKE = 10_000
CHAINS = {"template", "templates", "random_templates"}
"""Keys of systems whose jobs are chains; these have no table of rates."""


@dataclass
class Sheet:
    """The cells of a system: a row for each class, a column for each machine or group."""

    name: str = ""
    classes: list[str] = field(default_factory=list)
    arrivals: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    availability: list[str] = field(default_factory=list)
    rates: list[list[str]] = field(default_factory=list)
    believed: list[list[str]] = field(default_factory=list)
    """The assumed rates; empty cells: the real ones."""
    means: dict[str, str] = field(default_factory=lambda: dict.fromkeys(MEANS, ""))
    """Mean up-time and mean repair time."""
    rest: dict[str, Any] = field(default_factory=dict)
    """All other keys of the system file, kept unchanged."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """Make the cells of a document.

        >>> Sheet.of({"arrivals": [5, 8], "rates": [[8, 3], [4, 10]]}).rates
        [['8', '3'], ['4', '10']]
        """
        words = dict(document)
        if "rates" not in words and CHAINS & set(words):
            return cls(name=str(words.pop("name", "")), rest=words)
        rates = _rows(words.pop("rates", None)) or [[""]]
        width = max(map(len, rates))
        sheet = cls(
            name=str(words.pop("name", "")),
            classes=_names(words, "classes", len(rates)),
            groups=_names(words, "groups", width),
            rates=[[*row, *[""] * (width - len(row))] for row in rates],
        )
        sheet.arrivals = _cells(words, "arrivals", len(rates))
        _join_slots(words, width)
        sheet.counts = _cells(words, "counts", width)
        sheet.availability = _cells(words, "availability", width)
        sheet.believed = [[""] * width for _ in rates]
        assumed = words.get("assumed")
        if isinstance(assumed, dict) and "rates" in assumed:
            stated = _rows(assumed["rates"])
            if [len(row) for row in stated] == [width] * len(rates):
                sheet.believed = stated
                del words["assumed"]
                if rest := {key: assumed[key] for key in assumed if key != "rates"}:
                    words["assumed"] = rest
        failures = words.get("failures")
        plain = isinstance(failures, dict) and not any(map(_is_nested, failures.values()))
        if failures and plain and set(failures) <= set(MEANS):
            sheet.means |= {key: as_text(value) for key, value in failures.items()}
            del words["failures"]
        sheet.rest = words
        return sheet

    def document(self) -> dict[str, Any]:
        """Return the content of a system file; a cell that is not a number stays a text.

        >>> Sheet.of({"arrivals": [5], "rates": [["x"]]}).document()
        {'rates': [['x']], 'arrivals': [5.0]}
        """
        if not self.rates:
            return {"name": self.name, **self.rest}
        words: dict[str, Any] = {"rates": [[as_number(cell) for cell in row] for row in self.rates]}
        if self.name:
            words["name"] = self.name
        if "arrivals" not in self.rest:
            words["arrivals"] = [as_number(cell) for cell in self.arrivals]
        for key, cells in (("classes", self.classes), ("groups", self.groups)):
            if any(cells):
                words[key] = [cell or str(k) for k, cell in enumerate(cells, start=1)]
        if any(self.counts):
            words["counts"] = [as_whole(cell or "1") for cell in self.counts]
        if any(self.availability):
            words["availability"] = [as_number(cell or "1") for cell in self.availability]
        if any(self.means.values()):
            words["failures"] = {key: as_number(cell) for key, cell in self.means.items() if cell}
        if any(map(any, self.believed)):
            rest = self.rest.get("assumed", {})
            return {**words, **self.rest, "assumed": {**rest, "rates": self._beliefs()}}
        return {**words, **self.rest}

    def _beliefs(self) -> list[list[Any]]:
        return [
            [as_number(cell or true) for cell, true in zip(row, rates, strict=True)]
            for row, rates in zip(self.believed, self.rates, strict=True)
        ]

    def machines(self) -> list[tuple[int, int]]:
        """Return the column of every machine, and its number in it.

        >>> Sheet.of({"rates": [[8, 3]], "counts": [1, 2]}).machines()
        [(0, 0), (1, 0), (1, 1)]
        """
        counts = [as_whole(cell or "1") for cell in self.counts]
        sure = [n if isinstance(n, int) and 1 <= n <= MOST_ALIKE else 1 for n in counts]
        return [(column, number) for column, n in enumerate(sure) for number in range(n)]

    def add_class(self) -> None:
        """Add a row like the last."""
        if not self.rates:
            return
        self.classes.append("")
        self.arrivals.append(self.arrivals[-1] if self.arrivals else "1")
        self.rates.append(list(self.rates[-1]))
        self.believed.append([""] * len(self.groups))

    def add_machine(self) -> None:
        """Add a column like the last."""
        if not self.rates:
            return
        self.groups.append("")
        self.counts.append("")
        self.availability.append("")
        for row in self.rates:
            row.append(row[-1])
        for row in self.believed:
            row.append("")

    def remove_class(self, row: int = -1) -> None:
        """Remove a row, by default the last, unless it is the only one."""
        if len(self.rates) > 1:
            for cells in (self.classes, self.arrivals, self.rates, self.believed):
                del cells[row]

    def remove_machine(self, column: int = -1) -> None:
        """Remove a column, by default the last, unless it is the only one."""
        if len(self.groups) > 1:
            rows = (*self.rates, *self.believed)
            for cells in (self.groups, self.counts, self.availability, *rows):
                del cells[column]


def _rows(value: Any) -> list[list[str]]:
    rows = value if isinstance(value, list) else []
    return [[as_text(cell) for cell in row] for row in rows if isinstance(row, list) and row]


def _join_slots(words: dict[str, Any], width: int) -> None:
    """Count the slots of a document as machines, for which the form has cells.

    >>> words = {"slots": 2, "counts": [1, 3]}
    >>> _join_slots(words, 2)
    >>> words
    {'counts': [2, 6]}
    """
    slots, counts = words.get("slots"), words.get("counts", [1] * width)
    each = slots if isinstance(slots, list) else [slots] * width
    sure = isinstance(counts, list) and len(each) == len(counts) == width
    if sure and all(isinstance(number, int) and number > 0 for number in (*each, *counts)):
        del words["slots"]
        words["counts"] = [count * own for count, own in zip(counts, each, strict=True)]


def _cells(words: dict[str, Any], key: str, length: int) -> list[str]:
    """Move numbers from a document to cells if there is one for each; else leave them."""
    value = words.get(key)
    if isinstance(value, list) and len(value) == length and not any(map(_is_nested, value)):
        del words[key]
        return [as_text(each) for each in value]
    return [""] * length


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | dict)


def _names(words: dict[str, Any], key: str, length: int) -> list[str]:
    """Move names from a document to cells; leave them if there are more names than cells.

    A name that is the number of its place is an empty cell: the document has numbers for those.
    """
    value = words.get(key)
    if isinstance(value, list) and len(value) > length:
        return [""] * length  # the model then reports them
    words.pop(key, None)
    given = value if isinstance(value, list) else []
    names = ["" if str(each) == str(k) else str(each) for k, each in enumerate(given, start=1)]
    return [*names, *[""] * (length - len(names))]
