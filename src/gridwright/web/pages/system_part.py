"""The system as a table: a row for each class, a column for each machine or group."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from ...allocation import Allocation
from ...model import InputError
from ..pasted_table import read_block, read_cells
from ..sheet import Sheet
from .cell_table import HEADS, LEFT, NO_LAYER, Block, CellTable, Layer, Spot
from .cells import Cells, Part, Step
from .frame import errors_shown, tell
from .paste_dialog import ask

WIDEST = 400
"""Columns beyond which a system is edited as a file."""
LONGEST = 400
"""Rows beyond which it is."""
ROWS = ("groups", "counts", "availability")
"""The lists of a sheet above its classes, in the order of the table."""
MOST_MESSAGES = 3
LAYERS = {
    "": "none",
    "efficiency": "efficiency: the share of a machine's worth that a class earns there",
    "allocation": "allocation: the share of a machine's time for a class",
}
NOWHERE = Block(-1, -1, -1, -1)


class SystemPart(Part):
    """Names, counts, availabilities, arrivals and rates."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.solved: Allocation | None = None
        """The allocation that the colours show."""
        self.block = NOWHERE
        with ui.row().classes("gap-4 items-end max-w-full"):
            self.name = ui.column().classes("gap-2 max-w-full")
            kept = str(cells.kept.get("layer") or "")
            self.layer = ui.select(LAYERS, label="Colours", value=kept if kept in LAYERS else "")
            self.layer.classes("w-64").props("dense bottom-slots").on_value_change(self._choose)
        self.table = CellTable(
            edit=self._edit, paste=self._paste, select=self._select, clear=self._clear
        )
        self.table.classes("max-w-full").on("back", cells.undo).on("again", cells.redo)
        self.wrong = ui.label().classes("text-negative gw-steady").props("role=alert")
        self.words = ui.label().classes("gw-quiet")
        with ui.row().classes("gap-2"):
            add = {"Add class": Sheet.add_class, "Add machine": Sheet.add_machine}
            for label, change in add.items():
                made = ui.button(label, on_click=partial(self._change, change))
                made.props("outline dense")
            self.remove_class, self.remove_machine = (
                ui.button(label, on_click=remove).props("outline dense")
                for label, remove in (
                    ("Remove class", self._remove_classes),
                    ("Remove machine", self._remove_machines),
                )
            )
            self.chosen = ui.label().classes("gw-quiet self-center")

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
        self._select(self.block)
        self._colour()

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
        marked = {_spot(place): said for place, said in own.items()}
        for each in words.values():
            if "is all 0" in each:  # the model names the row or column, not its cells
                marked |= {_spot(place): each for place in self._zeros(each)}
        self.table.mark_wrong(marked)
        said = list(own.values())
        more = " …" if len(said) > MOST_MESSAGES else ""
        self.wrong.text = "; ".join(said[:MOST_MESSAGES]) + more

    def _zeros(self, said: str) -> list[Step]:
        """Return the places of the rates in the row or column that a message calls all 0."""
        found = re.search(r"(row|column) (\d+) is all 0", said)
        if found is None:
            return []
        sheet, k = self.cells.form.sheet, int(found[2]) - 1
        if found[1] == "row":
            return [("system", "rates", k, j) for j in range(len(sheet.groups))]
        return [("system", "rates", i, k) for i in range(len(sheet.rates))]

    def colour(self, found: Allocation | None) -> None:
        """Colour the cells by an allocation; None means that there is none yet."""
        self.solved = found
        self._colour()

    def _choose(self) -> None:
        self.cells.kept["layer"] = self.layer.value
        self._colour()

    def _colour(self) -> None:
        """Show loads, and the chosen layer, as long as the table has the size of the solution."""
        sheet, found = self.cells.form.sheet, self.solved
        shape = (len(sheet.rates), len(sheet.groups))
        if found is None or (len(found.system.classes), len(found.system.groups)) != shape:
            self.table.colour(NO_LAYER)
            return
        column, loads = found.system.column, np.where(found.loads < np.inf, found.loads, 9.99)
        count = np.bincount(column)
        used = np.bincount(column, (found.shares * loads[:, None]).sum(axis=0)) / count
        firsts = np.unique(column, return_index=True)[1]
        shades: dict[str, Any] = {"efficiency": found.efficiencies[:, firsts]}
        if self.layer.value == "allocation":
            each = [np.bincount(column, row) / count for row in found.shares]
            shades["allocation"] = np.array(each)
        name = str(self.layer.value or "")
        shown = _percent(shades[name]) if name else []
        self.table.colour(Layer(name, shown, _percent(used), _percent(loads)))

    def _edit(self, spot: Spot, text: str) -> None:
        _put(self.cells.form.sheet, spot, text)
        self.cells.check()

    async def _paste(self, spot: Spot, text: str) -> None:
        """Put a block of cells into the table, which grows; ask what the block leaves open."""
        rows = read_block(text)
        answers: Mapping[str, str] | None = {}
        with errors_shown():
            if read_cells(rows).questions:
                answers = await ask(lambda given: read_cells(rows, given))
        if answers is not None:
            self.cells.act(partial(self._put_block, spot, rows, answers))

    def _put_block(self, spot: Spot, rows: list[list[str]], answers: Mapping[str, str]) -> None:
        table, form = read_cells(rows, answers), self.cells.form
        first = max(spot[0] - HEADS, 0), max(spot[1] - LEFT, 0)
        high, wide = len(table.rates), len(table.rates[0])
        if first[0] + high > LONGEST or first[1] + wide > WIDEST:
            raise InputError(f"expected at most {LONGEST} classes and {WIDEST} machines")
        if table.machines or (table.classes and spot[1] >= LEFT):
            tell(form.take_table(table, first), "positive")
            return
        lines = table.rates
        if table.classes:  # at the left edge: names, arrivals, rates, as the table has them
            lines = [[name, *row] for name, row in zip(table.classes, lines, strict=True)]
        form.grow(spot[0] + len(lines) - HEADS, spot[1] + len(lines[0]) - LEFT)
        for r, line in enumerate(lines, start=spot[0]):
            for c, word in enumerate(line, start=spot[1]):
                _put(form.sheet, (r, c), word)

    def _clear(self, block: Block) -> None:
        def change() -> None:
            for r in range(block.top, block.bottom + 1):
                for c in range(block.left, block.right + 1):
                    _put(self.cells.form.sheet, (r, c), "")

        self.cells.act(change)

    def _select(self, block: Block) -> None:
        """Say which classes and machines the buttons remove: those of the selected cells."""
        self.block = block
        sheet, said = self.cells.form.sheet, []
        for button, what, names, chosen, is_chosen in (
            (self.remove_class, "class", sheet.classes, self._rows(), block.bottom >= HEADS),
            (self.remove_machine, "machine", sheet.groups, self._columns(), block.right >= LEFT),
        ):
            said.append(_which(what, names, chosen, is_chosen))
            button.props["aria-label"] = f"Remove {said[-1]}"
            button.set_enabled(0 < len(chosen) < len(names))
        self.chosen.text = f"Removes {said[0]}, or {said[1]}: select cells to choose others."

    def _rows(self) -> range:
        """Return the selected classes; the last if no class is selected."""
        last = len(self.cells.form.sheet.rates) - 1
        bottom = min(self.block.bottom - HEADS, last)
        return (
            range(max(self.block.top - HEADS, 0), bottom + 1)
            if bottom >= 0
            else range(last, last + 1)
        )

    def _columns(self) -> range:
        """Return the selected machines; the last if no machine is selected."""
        last = len(self.cells.form.sheet.groups) - 1
        right = min(self.block.right - LEFT, last)
        return (
            range(max(self.block.left - LEFT, 0), right + 1)
            if right >= 0
            else range(last, last + 1)
        )

    def _remove_classes(self) -> None:
        self.cells.act(lambda: self.cells.form.remove_classes(self._rows()))

    def _remove_machines(self) -> None:
        self.cells.act(lambda: self.cells.form.remove_columns(self._columns()))

    def _change(self, change: Any) -> None:
        self.cells.act(lambda: change(self.cells.form.sheet))


def _which(what: str, names: Sequence[str], chosen: range, is_chosen: bool) -> str:
    """Say which classes or machines a button removes.

    >>> _which("class", ["", "b", "c"], range(0, 2), True)
    'classes 1 to b'
    >>> _which("machine", ["", "b"], range(1, 2), False)
    'machine b (the last)'
    """
    words = [names[k] or str(k + 1) for k in (chosen[0], chosen[-1])] if chosen else []
    if len(chosen) > 1:
        return f"{what}{'es' if what == 'class' else 's'} {' to '.join(words)}"
    return " ".join([what, *words[:1]]) + ("" if is_chosen else " (the last)")


def _percent(values: Any) -> Any:
    """Round shares to whole percents.

    >>> _percent(np.array([[0.126, 1]]))
    [[13, 100]]
    """
    return np.rint(100 * values).astype(int).tolist()


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
