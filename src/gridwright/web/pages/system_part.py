"""The system as a table: a row for each class, a column for each machine or group."""

from collections.abc import Callable
from typing import Any

from nicegui import ui

from ...model import InputError
from ..sheet import Sheet
from .cell_table import HEADS, LEFT, CellTable, Spot
from .cells import Cells, Part, Step

WIDEST = 400
"""Columns beyond which a system is edited as a file."""
LONGEST = 400
"""Rows beyond which it is."""
ROWS = ("groups", "counts", "availability")
"""The lists of a sheet above its classes, in the order of the table."""
MOST_MESSAGES = 3


class SystemPart(Part):
    """Names, counts, availabilities, arrivals and rates."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.name = ui.column().classes("gap-2 max-w-full")
        self.table = CellTable(self._edit, self._paste).classes("max-w-full")
        self.wrong = ui.label().classes("text-negative gw-steady").props("role=alert")
        self.words = ui.label().classes("gw-quiet")
        with ui.row().classes("gap-2"):
            for label, change in (
                ("Add class", Sheet.add_class),
                ("Remove class", Sheet.remove_class),
                ("Add machine", Sheet.add_machine),
                ("Remove machine", Sheet.remove_machine),
            ):
                ui.button(label, on_click=lambda change=change: self._change(change)).props(
                    "outline dense"
                )

    def lay_out(self) -> None:
        """Draw the cells."""
        sheet = self.cells.form.sheet
        self.name.clear()
        with self.name:
            self.cells.field("Name of the system", sheet.name, lambda v: setattr(sheet, "name", v))
        rows, columns = len(sheet.rates), len(sheet.groups)
        fits = 0 < rows <= LONGEST and columns <= WIDEST
        self.table.set_visibility(fits)
        words = [f"Also in the file, and kept: {', '.join(sheet.rest)}"] if sheet.rest else []
        if not rows:
            words.insert(0, "Systems of chains have no table here: import a file.")
        elif not fits:
            words.insert(0, f"{rows} rows and {columns} columns are too many: import a file.")
        else:
            self.table.show(_texts(sheet))
        self.words.text = " ".join(words)

    def places(self) -> set[Step]:
        """Return the places of all cells."""
        sheet = self.cells.form.sheet
        rows, columns = range(len(sheet.rates)), range(len(sheet.groups))
        return {
            *(("system", key, j) for key in ROWS for j in columns),
            *(("system", key, i) for key in ("classes", "arrivals") for i in rows),
            *(("system", "rates", i, j) for i in rows for j in columns),
        }

    def show_mistakes(self, words: dict[Step, str]) -> None:
        """Mark the cells with mistakes, and say below the table what they are."""
        places = self.places() if words else set()
        own = {place: said for place, said in words.items() if place in places}
        self.table.mark_wrong({_spot(place): said for place, said in own.items()})
        said = list(own.values())
        more = " …" if len(said) > MOST_MESSAGES else ""
        self.wrong.text = "; ".join(said[:MOST_MESSAGES]) + more

    def _edit(self, spot: Spot, text: str) -> None:
        self.cells.remember()
        _put(self.cells.form.sheet, spot, text)
        self.cells.check()

    def _paste(self, spot: Spot, block: list[list[str]]) -> None:
        """Put a block of cells into the table, which grows if the block is larger."""

        def change() -> None:
            sheet = self.cells.form.sheet
            rows, columns = spot[0] + len(block), spot[1] + max(map(len, block))
            if rows - HEADS > LONGEST or columns - LEFT > WIDEST:
                raise InputError(f"expected at most {LONGEST} classes and {WIDEST} machines")
            while len(sheet.rates) < rows - HEADS:
                sheet.add_class()
            while len(sheet.groups) < columns - LEFT:
                sheet.add_machine()
            for r, line in enumerate(block, start=spot[0]):
                for c, text in enumerate(line, start=spot[1]):
                    _put(sheet, (r, c), text)

        self.cells.act(change)

    def _change(self, change: Callable[[Sheet], None]) -> None:
        self.cells.act(lambda: change(self.cells.form.sheet))


def _texts(sheet: Sheet) -> list[list[str]]:
    """Return the texts of the table."""
    pairs = zip(sheet.classes, sheet.arrivals, sheet.rates, strict=True)
    return [
        *(["", "", *getattr(sheet, key)] for key in ROWS),
        *([name, arrivals, *rates] for name, arrivals, rates in pairs),
    ]


def _put(sheet: Sheet, spot: Spot, text: str) -> None:
    """Put a text into the cell of a sheet that the table shows there; nothing if it has none."""
    row, column = spot
    if row >= HEADS:
        i = row - HEADS
        left = (sheet.classes, sheet.arrivals)
        if column < LEFT:
            left[column][i] = text
        else:
            sheet.rates[i][column - LEFT] = text
    elif column >= LEFT:
        getattr(sheet, ROWS[row])[column - LEFT] = text


def _spot(place: Step) -> Spot:
    """Return where the table shows a place of the document."""
    _, key, *numbers = place
    indices: list[Any] = numbers
    if key == "rates":
        return HEADS + indices[0], LEFT + indices[1]
    if key in ROWS:
        return ROWS.index(str(key)), LEFT + indices[0]
    return HEADS + indices[0], ("classes", "arrivals").index(str(key))
