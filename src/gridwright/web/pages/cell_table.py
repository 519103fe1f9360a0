"""The table of a system's cells: one element of the page, however many cells there are."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from nicegui import events, ui

HEADS, LEFT = 3, 2
"""Rows above the classes (names, counts, availability), columns left of the machines."""
Spot = tuple[int, int]
"""The row and the column of a cell in the table."""


class Block(NamedTuple):
    """The selected cells: the first and the last row and column."""

    top: int
    bottom: int
    left: int
    right: int


class Layer(NamedTuple):
    """What the colours of the table show, in percent."""

    name: str
    shades: list[list[int]]
    """[class][machine]; empty: no colours."""
    machines: list[int]
    """The loads of machines."""
    classes: list[int]
    """The loads of classes."""


NO_LAYER = Layer("", [], [], [])


class CellTable(ui.element, component="cell_table.js"):
    """A table of inputs, of which the browser makes only those near the visible part."""

    def __init__(
        self,
        *,
        edit: Callable[[Spot, str], Any],
        paste: Callable[[Spot, str], Awaitable[Any]],
        select: Callable[[Block], Any],
        clear: Callable[[Block], Any],
    ) -> None:
        super().__init__()
        self._edit, self._paste = edit, paste
        self._texts: list[list[str]] = [[""] * LEFT] * HEADS
        self._marks: dict[str, str] = {}
        self._layer = NO_LAYER
        self._props["cells"] = self._texts
        self.on("edit", self._edited)
        self.on("block", self._pasted)
        self.on("selected", lambda event: self._take_block(event, select))
        self.on("clear", lambda event: self._take_block(event, clear))

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

    def colour(self, layer: Layer) -> None:
        """Colour the cells and the heads."""
        if layer != self._layer:
            self._layer = layer
            self.run_method("shade", layer._asdict())

    def _edited(self, event: events.GenericEventArguments) -> None:
        spot, text = self._spot(event), str(event.args["text"])
        if spot is not None:
            self._texts[spot[0]][spot[1]] = text  # the browser shows it already
            self._edit(spot, text)

    async def _pasted(self, event: events.GenericEventArguments) -> None:
        spot = self._spot(event)
        if spot is not None:
            await self._paste(spot, str(event.args["text"]))

    def _take_block(self, event: events.GenericEventArguments, use: Callable[[Block], Any]) -> None:
        block = Block(*map(int, event.args))
        if 0 <= block.top <= block.bottom < len(self._texts):
            use(block)

    def _spot(self, event: events.GenericEventArguments) -> Spot | None:
        """Return the cell of an event; None if the table has changed since."""
        row, column = int(event.args["row"]), int(event.args["column"])
        known = 0 <= row < len(self._texts) and 0 <= column < len(self._texts[row])
        return (row, column) if known and (row >= HEADS or column >= LEFT) else None
