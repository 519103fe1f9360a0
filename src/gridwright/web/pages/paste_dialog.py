"""A dialog that reads a table from a spreadsheet and asks what its text leaves open."""

from collections.abc import Callable, Mapping

from nicegui import ui

from ...model import InputError
from ..pasted_table import Pasted, Question

Read = Callable[[Mapping[str, str]], Pasted]
"""Reads a table with answers to its questions."""


async def ask(read: Read) -> Mapping[str, str] | None:
    """Ask what a pasted table leaves open; return the answers, or None if it is not wanted."""
    with ui.dialog() as dialog, ui.card().classes("w-96"):
        ui.label("How is the pasted table to be read?")
        reading = Reading()
        reading.show(read)
        with ui.row():
            ui.button("Take them", on_click=lambda: dialog.submit(reading.answers))
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
    answers: Mapping[str, str] | None = await dialog
    if not dialog.is_deleted:  # the page may have been closed
        dialog.delete()
    return answers


class Reading:
    """The questions of a table, and what was understood with the answers so far."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self._asked: tuple[Question, ...] = ()
        self._read: Read | None = None
        self._place = ui.column().classes("w-full gap-1")
        self._words = ui.label().classes("gw-steady gw-quiet").props("role=status")

    def show(self, read: Read) -> None:
        """Read a table, and show its questions."""
        self._read = read
        try:
            found = read(self.answers)
            asked, self._words.text = found.questions, found.words()
        except InputError as error:
            asked, self._words.text = (), str(error)
        if asked != self._asked:
            self._asked = asked
            self._place.clear()
            with self._place:
                for each in asked:
                    self._select(each)

    def _select(self, asked: Question) -> None:
        def take(answer: str) -> None:
            self.answers[asked.key] = answer
            if self._read is not None:
                self.show(self._read)

        first = asked.answer(self.answers)
        made = ui.select(dict(asked.answers), label=asked.words, value=first)
        made.on_value_change(lambda event: take(str(event.value))).classes("w-full")
