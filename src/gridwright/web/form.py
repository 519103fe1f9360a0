"""An experiment as editable cells: its fields, its system and its machines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ..model import InputError, System
from ..testbed import Experiment, Fault, Listed
from .fields import as_number, as_text, fields_of
from .pasted_table import Pasted
from .sheet import Sheet

Place = tuple[int, int]
"""A machine by its column and its number in it: names may be typed at any time."""

TRACE = "trace"
"""The choice of failures that are listed, neither drawn nor none."""
FIELDS = {
    key: field
    for key, field in fields_of(Experiment).items()
    if field.kind != "other" and key not in ("name", "on", "jobs", "failures")
}
"""The fields of an experiment that are one cell each."""
FIRST = {key: field.text for key, field in FIELDS.items()}
FIRST |= {"policy": "lpas_dg", "failures": "generated", "iterations": ""}


@dataclass
class MachineCells:
    """The cells of one machine that its column does not have."""

    address: str = ""
    iterations: str = ""
    seconds: str = ""
    availability: str = ""
    """Empty: that of its column."""
    prediction: dict[str, Any] | None = None


@dataclass
class FaultCells:
    """A fault: when a machine is down."""

    machine: Place
    start: str
    end: str


@dataclass
class Form:
    """The cells of an experiment."""

    sheet: Sheet
    cells: dict[str, str] = field(default_factory=lambda: dict(FIRST))
    corrections: Any = True
    prediction: Any = "weekly"
    """The default for machines."""
    machines: dict[Place, MachineCells] = field(default_factory=dict)
    faults: list[FaultCells] = field(default_factory=list)
    rest: dict[str, Any] = field(default_factory=dict)
    """All other keys of the experiment file, kept unchanged."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """Make the cells of a document.

        >>> Form.of({"system": {"arrivals": [5], "rates": [[8]]}, "seed": 7}).cells["seed"]
        '7'
        """
        words = dict(document)
        form = cls(Sheet.of(words.pop("system", {})))
        words.pop("name", None)  # it has the name of its system
        for key in FIELDS:
            if key in words:
                form.cells[key] = as_text(words.pop(key))
        given = words.pop("iterations", [])
        each = given if isinstance(given, list) else [given]
        form.cells["iterations"] = ", ".join(map(as_text, each))
        form.corrections = words.pop("corrections", True)
        form._take_machines(words)
        form._take_faults(words.pop("failures", "generated"))
        form.rest = words
        return form

    def document(self) -> dict[str, Any]:
        """Return the form as the content of an experiment file."""
        words = {
            key: field.read(self.cells[key])
            for key, field in FIELDS.items()
            if self.cells[key] or field.kind in ("number", "whole")
        }
        if self.sheet.name:
            words["name"] = self.sheet.name
        if rounds := [word.strip() for word in self.cells["iterations"].split(",") if word.strip()]:
            numbers = [as_number(word) for word in rounds]
            words["iterations"] = numbers[0] if len(numbers) == 1 else numbers
        words["corrections"] = self.corrections
        return {**words, **self._machine_words(), **self.rest, "system": self._system()}

    def names(self) -> list[str]:
        """Return the name of every machine as the model has it."""
        sheet, places = self.sheet, self.sheet.machines()
        counts = [0] * len(sheet.groups)
        for column, _ in places:
            counts[column] += 1
        groups = [name or str(k) for k, name in enumerate(sheet.groups, start=1)]
        try:
            rates = [[1.0] * len(groups)]
            return list(System(arrivals=[1], rates=rates, groups=groups, counts=counts).machines)
        except InputError:  # two of one name, perhaps
            return [str(number) for number in range(1, len(places) + 1)]

    def with_names(self, words: str) -> str:
        """Name cells of the table by class and machine in a message of the model.

        >>> form = Form.of({"system": {"arrivals": [5], "rates": [[8, 3]], "classes": ["wide"]}})
        >>> form.with_names("rates, row 1, column 2 is 'x'; expected a number")
        "the rate of class wide on machine 2 is 'x'; expected a number"
        """
        sheet = self.sheet

        def name(names: Sequence[str], number: str) -> str:
            place = int(number) - 1
            return (names[place] if place < len(names) else "") or number

        def rate(found: re.Match[str]) -> str:
            row, column = name(sheet.classes, found[1]), name(sheet.groups, found[2])
            return f"the rate of class {row} on machine {column}"

        words = re.sub(r"\brates, row (\d+), column (\d+)", rate, words)
        return re.sub(
            r"\barrivals, entry (\d+)",
            lambda found: f"the arrivals of class {name(sheet.classes, found[1])}",
            words,
        )

    def at(self, name: str) -> Place | None:
        """Return the place of a machine by its name."""
        return dict(zip(self.names(), self.sheet.machines(), strict=True)).get(name)

    def said(self, place: Place) -> MachineCells:
        """Return the cells of a machine, only to be read."""
        return self.machines.get(place) or MachineCells()

    def machine(self, place: Place) -> MachineCells:
        """Return the cells of a machine, to be read or changed."""
        return self.machines.setdefault(place, MachineCells())

    def remove_machines(self, places: Sequence[Place]) -> None:
        """Remove machines with their cells; at least one machine stays."""
        for column, number in sorted(set(places), reverse=True):
            count = sum(place[0] == column for place in self.sheet.machines())
            if count > 1:
                self.sheet.counts[column] = str(count - 1)
                self._forget(lambda p, c=column, n=number: _without(p, c, n))
            else:
                self.remove_columns([column])

    def remove_columns(self, columns: Sequence[int]) -> None:
        """Remove columns with everything said of their machines; at least one column stays."""
        for column in sorted(set(columns), reverse=True):
            if len(self.sheet.groups) > 1:
                self.sheet.remove_machine(column)
                self._forget(lambda p, c=column: _without_column(p, c))

    def remove_classes(self, rows: Sequence[int]) -> None:
        """Remove classes with the iterations of their jobs; at least one class stays."""
        each = [word.strip() for word in self.cells["iterations"].split(",")]
        for row in sorted(set(rows), reverse=True):
            count = len(self.sheet.rates)
            if count > 1:
                self.sheet.remove_class(row)
                if len(each) == count:
                    del each[row]
        self.cells["iterations"] = ", ".join(each)

    def take_table(self, table: Pasted, at: Place = (0, 0), *, whole: bool = False) -> str:
        """Put a pasted table into the cells from a class and a machine on; return what was done.

        A table whose names are all known goes where they are. Else its names replace those there.
        With ``whole`` it replaces all rates, and the system gets its size.
        """
        sheet = self.sheet
        if not sheet.rates:
            raise InputError("a system of chains has no table of rates")
        rows, known_rows = _matched(table.classes, sheet.classes, at[0], len(table.rates))
        columns, known = _matched(table.machines, sheet.groups, at[1], len(table.rates[0]))
        if whole and not known_rows:
            self.remove_classes(range(len(rows), len(sheet.rates)))
        if whole and not known:
            self.remove_columns(range(len(columns), len(sheet.groups)))
        before = len(sheet.rates)
        self.grow(max(rows) + 1, max(columns) + 1)
        for i, row in zip(rows, table.rates, strict=True):
            for j, rate in zip(columns, row, strict=True):
                sheet.rates[i][j] = rate
        for cells, places, texts in (
            (sheet.classes, rows, table.classes),
            (sheet.arrivals, rows, table.arrivals),
            (sheet.groups, columns, table.machines),
            (sheet.counts, columns, table.counts),
            (sheet.availability, columns, table.availability),
        ):
            for place, text in zip(places, texts, strict=False):
                cells[place] = text
        said = table.words() + ("; put where its names are" if known_rows or known else "")
        if len(sheet.rates) > before > 0 and not table.arrivals:
            said += "; a new class has the arrivals of the last one before it"
        return said

    def grow(self, rows: int, columns: int) -> None:
        """Add classes and machines until there are so many."""
        while len(self.sheet.rates) < rows:
            self.sheet.add_class()
        while len(self.sheet.groups) < columns:
            self.sheet.add_machine()

    def list_machines(self, listed: Sequence[Listed]) -> None:
        """Make a column for each machine of a list, with its speed if the list has it."""
        if not self.sheet.rates:
            raise InputError("a system of chains has no table of machines")
        self.grow(0, len(listed))
        while len(self.sheet.groups) > len(listed):
            self.sheet.remove_machine()
        self.sheet.groups = [each.address for each in listed]
        self.sheet.counts = [""] * len(listed)
        self.machines, self.faults = {}, [f for f in self.faults if f.machine[1] == 0]
        self.faults = [f for f in self.faults if f.machine[0] < len(listed)]
        for column, each in enumerate(listed):
            if each.calibration is not None:
                cells = self.machine((column, 0))
                cells.iterations = as_text(each.calibration.iterations)
                cells.seconds = f"{each.calibration.seconds:.9g}"

    def take_faults(self, faults: Sequence[Fault]) -> None:
        """List these faults, whose machines are numbered as in the model."""
        places = self.sheet.machines()
        self.faults = [
            FaultCells(places[each.machine], f"{each.start:.6g}", f"{each.end:.6g}")
            for each in faults
        ]
        self.cells["failures"] = TRACE

    # details

    def _take_machines(self, words: dict[str, Any]) -> None:
        """Move values from the document to the cells of machines, if there is one for each."""
        places = self.sheet.machines()

        def taken(source: dict[str, Any], key: str) -> list[tuple[MachineCells, Any]]:
            values = source.get(key)
            if not isinstance(values, list) or len(values) != len(places):
                return []
            del source[key]
            return [(self.machine(p), value) for p, value in zip(places, values, strict=True)]

        shares = self.sheet.rest.get("availability", [])
        plain = isinstance(shares, list) and not any(isinstance(s, dict | list) for s in shares)
        if plain and len(places) > len(self.sheet.groups):
            for cells, share in taken(self.sheet.rest, "availability"):
                cells.availability = as_text(share)
        for cells, name in taken(words, "machines"):
            cells.address = str(name)
        for cells, speed in taken(words, "calibrations"):
            speed = speed if isinstance(speed, dict) else {}
            cells.iterations = as_text(speed.get("iterations", ""))
            cells.seconds = as_text(speed.get("seconds", ""))
        for cells, way in taken(words, "prediction"):
            cells.prediction = way if isinstance(way, dict) else {"mode": way}
        self.prediction = words.pop("prediction", "weekly")

    def _take_faults(self, given: Any) -> None:
        if not isinstance(given, list):
            self.cells["failures"] = str(given)
            return
        self.cells["failures"] = TRACE
        places = dict(zip(self.names(), self.sheet.machines(), strict=True))
        for row in given:
            if not isinstance(row, list) or len(row) != 3 or str(row[0]) not in places:
                raise InputError(
                    f"failures: {row!r:.80} is no [machine, start, end] of this system"
                )
            self.faults.append(FaultCells(places[str(row[0])], *map(as_text, row[1:])))

    def _machine_words(self) -> dict[str, Any]:
        words: dict[str, Any] = {}
        cells = [self.said(place) for place in self.sheet.machines()]
        names = self.names()
        if any(each.address for each in cells):
            words["machines"] = [e.address or n for e, n in zip(cells, names, strict=True)]
        if any(each.iterations or each.seconds for each in cells):
            words["calibrations"] = [
                {"iterations": as_number(e.iterations), "seconds": as_number(e.seconds)}
                for e in cells
            ]
        words["prediction"] = self.prediction
        if any(each.prediction for each in cells):
            words["prediction"] = [each.prediction or self.prediction for each in cells]
        words["failures"] = self.cells["failures"]
        if words["failures"] == TRACE:
            known = dict(zip(self.sheet.machines(), names, strict=True))
            words["failures"] = [
                [known[each.machine], as_number(each.start), as_number(each.end)]
                for each in self.faults
                if each.machine in known
            ]
        return words

    def _system(self) -> dict[str, Any]:
        system, places = self.sheet.document(), self.sheet.machines()
        own = [self.said(place).availability for place in places]
        if any(own):
            column = self.sheet.availability
            pairs = zip(own, places, strict=True)
            shares = (cell or column[place[0]] or "1" for cell, place in pairs)
            system["availability"] = list(map(as_number, shares))
        return system

    def _forget(self, moved: Any) -> None:
        """Move the cells of machines to their new places; drop those of removed machines."""
        found = {moved(place): cells for place, cells in self.machines.items()}
        self.machines = {place: cells for place, cells in found.items() if place is not None}
        for each in self.faults:
            each.machine = moved(each.machine)
        self.faults = [each for each in self.faults if each.machine is not None]


def _matched(names: list[str], known: list[str], start: int, count: int) -> tuple[list[int], bool]:
    """Return where names stand among known ones, and True; else so many places, and False."""
    shown = [name or str(k) for k, name in enumerate(known, start=1)]
    if names and len({*names}) == len(names) and {*names} <= {*shown}:
        return [shown.index(name) for name in names], True
    return list(range(start, start + count)), False


def _without(place: Place, column: int, number: int) -> Place | None:
    if place[0] != column or place[1] < number:
        return place
    return None if place[1] == number else (column, place[1] - 1)


def _without_column(place: Place, column: int) -> Place | None:
    return None if place[0] == column else (place[0] - (place[0] > column), place[1])
