"""The system as a table: a row for each class, a column for each machine or group."""

from collections.abc import Callable

from nicegui import ui

from ..sheet import Sheet
from .cells import Cells, Part, Step
from .frame import column_head, table_row

WIDEST = 60
"""Columns beyond which a system is edited as a file."""
LONGEST = 60
"""Rows beyond which it is."""


class SystemPart(Part):
    """Names, counts, availabilities, arrivals and rates."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.place = ui.column().classes("gap-2 max-w-full")
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
        self.place.clear()
        self.inputs = {}
        with self.place:
            self.cells.field("Name of the system", sheet.name, lambda v: setattr(sheet, "name", v))
            if not sheet.rates:
                ui.label("Systems of chains have no table here: import a file.")
            elif len(sheet.groups) > WIDEST or len(sheet.rates) > LONGEST:
                size = f"{len(sheet.rates)} rows and {len(sheet.groups)} columns"
                ui.label(f"{size} are too many to type: import a file.")
            else:
                self._table(sheet)
            if sheet.rest:
                ui.label(f"Also in the file, and kept: {', '.join(sheet.rest)}").classes("gw-quiet")

    def _table(self, sheet: Sheet) -> None:
        columns = range(len(sheet.groups))
        with ui.element("div").classes("gw-scroll"), ui.element("table").classes("gw"):
            for name, what, cells, key, hint in (
                ("Machine or group", "Name", sheet.groups, "groups", ""),
                ("How many", "Count", sheet.counts, "counts", "1"),
                ("Availability", "Availability", sheet.availability, "availability", "1"),
            ):
                with table_row(name, ""):
                    for j in columns:
                        label, shown = f"{what} of machine {j + 1}", hint or str(j + 1)
                        self._cell(label, cells, j, (key, j), shown)
            with table_row("Class", "Arrivals"):
                for j in columns:
                    column_head(f"rate on {sheet.groups[j] or j + 1}")
            for i, rates in enumerate(sheet.rates):
                number = str(i + 1)
                with ui.element("tr"):
                    self._cell(f"Name of class {number}", sheet.classes, i, ("classes", i), number)
                    self._cell(f"Arrivals of class {number}", sheet.arrivals, i, ("arrivals", i))
                    for j in columns:
                        label = f"Rate of class {number} on machine {j + 1}"
                        self._cell(label, rates, j, ("rates", i, j))

    def _cell(self, label: str, cells: list[str], number: int, place: Step, hint: str = "") -> None:
        def put(value: str) -> None:
            cells[number] = value

        with ui.element("td"):
            made = self.cells.field(label, cells[number], put, cell=True)
            made.props["placeholder"] = hint
        self.inputs["system", *place] = made

    def _change(self, change: Callable[[Sheet], None]) -> None:
        self.cells.act(lambda: change(self.cells.form.sheet))
