"""The table of a system's cells: one element of the page, however many cells there are."""

from collections.abc import Callable
from typing import Any

from nicegui import events, ui

HEADS, LEFT = 3, 2
"""Rows above the classes (names, counts, availability), columns left of the machines."""
Spot = tuple[int, int]
"""The row and the column of a cell in the table."""


class CellTable(ui.element, component="cell_table.js"):
    """A table of inputs, of which the browser makes only those near the visible part."""

    def __init__(
        self, edit: Callable[[Spot, str], Any], paste: Callable[[Spot, list[list[str]]], Any]
    ) -> None:
        super().__init__()
        self._edit, self._paste = edit, paste
        self._texts: list[list[str]] = [[""] * LEFT] * HEADS
        self._marks: dict[str, str] = {}
        self._props["cells"] = self._texts
        self.on("edit", self._edited)
        self.on("block", self._pasted)

    def show(self, texts: list[list[str]]) -> None:
        """Show other texts: the rows of names, counts and availability, then the classes."""
        self._texts = texts
        self._marks = {}
        self._props["cells"] = texts
        self.update()
        self.run_method("mark", {})

    def mark_wrong(self, wrong: dict[Spot, str]) -> None:
        """Mark the cells with mistakes; the words are shown when the pointer is on a cell."""
        marks = {f"{row},{column}": words for (row, column), words in wrong.items()}
        if marks != self._marks:
            self._marks = marks
            self.run_method("mark", marks)

    def _edited(self, event: events.GenericEventArguments) -> None:
        spot, text = self._spot(event), str(event.args["text"])
        if spot is not None:
            self._texts[spot[0]][spot[1]] = text  # the browser shows it already
            self._edit(spot, text)

    def _pasted(self, event: events.GenericEventArguments) -> None:
        spot = self._spot(event)
        lines = str(event.args["text"]).replace("\r", "").strip("\n").split("\n")
        if spot is not None:
            self._paste(spot, [[word.strip() for word in line.split("\t")] for line in lines])

    def _spot(self, event: events.GenericEventArguments) -> Spot | None:
        """Return the cell of an event; None if the table has changed since."""
        row, column = int(event.args["row"]), int(event.args["column"])
        known = 0 <= row < len(self._texts) and 0 <= column < len(self._texts[row])
        return (row, column) if known and (row >= HEADS or column >= LEFT) else None
