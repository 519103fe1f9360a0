"""Define: a system typed in, what is wrong with it, and what it can bear."""

from __future__ import annotations

from collections.abc import MutableMapping
from copy import deepcopy
from typing import Any

from nicegui import app, events, ui

from ...catalogue import find
from ...model import InputError
from ..draft import document_of, find_mistakes, read_text, system_of
from ..guard import LARGEST
from ..saved import save
from ..sheet import Sheet
from .allocation import AllocationCard
from .frame import OWN, frame, system_choices, system_named, tell

__all__ = ["define_page"]

FIRST = {"name": "my system", "arrivals": [5, 8], "rates": [[8, 3], [4, 10]]}
WIDEST = 60
"""Columns beyond which a system is edited as a file."""


async def define_page() -> None:
    """Show the page; what was typed before it was loaded again is there still."""
    await ui.context.client.connected()
    with frame("Define"):
        Editor(app.storage.tab)


class Editor:
    """The cells, and the allocation beside them."""

    def __init__(self, kept: MutableMapping[str, Any]) -> None:
        self.kept = kept
        self.sheet = Sheet.of(deepcopy(kept.get("draft") or FIRST))
        self.before: list[Sheet] = []
        self.inputs: dict[tuple[int | str, ...], ui.input] = {}
        self._tools()
        with ui.row().classes("w-full gap-4 items-start"):
            with ui.card().classes("max-w-full"):
                self.cells = ui.column().classes("gap-2 max-w-full")
                self._buttons()
                self.general = ui.label().classes("text-negative gw-steady").props("role=alert")
            self.allocation = AllocationCard()
        self.lay_out()

    def _tools(self) -> None:
        with ui.row().classes("items-end gap-2"):
            ui.select(
                system_choices(),
                label="Load a system",
                with_input=True,
                on_change=lambda e: self.load(e.value),
            ).classes("w-72")
            taken = ui.upload(auto_upload=True, on_upload=self.upload).classes("hidden")
            taken.props(f'accept=".toml,.csv,.mue,.txt" max-file-size={LARGEST}')
            taken.on("rejected", lambda: tell(f"a text file, of at most {LARGEST:,} bytes"))
            pick = ui.button("Import a file").props("outline").tooltip(".toml, .csv or .mue")
            pick.on("click", js_handler=f"() => getElement({taken.id}).$refs.qRef.pickFiles()")
            ui.button("Paste rates", on_click=self.paste).props("outline")
            ui.button("Undo", on_click=self.undo).props("outline")
            ui.button("Save", on_click=self.save)
            ui.button("Download TOML", on_click=self.download).props("outline")

    def lay_out(self) -> None:
        """Draw the cells anew."""
        self.cells.clear()
        self.inputs = {}
        sheet = self.sheet
        with self.cells:
            ui.input(
                "Name of the system", value=sheet.name, on_change=lambda e: self._set("name", e)
            ).props("dense debounce=250")
            if len(sheet.groups) > WIDEST:
                ui.label(f"{len(sheet.groups)} columns are too many to type: import a file.")
            else:
                self._table()
            with ui.row().classes("gap-2"):
                self._plain("Mean up-time (empty: never fails)", "uptime", "mean_uptime")
                self._plain("Mean repair time", "repair", "mean_repair")
            if sheet.rest:
                ui.label(f"Also said, and kept: {', '.join(sheet.rest)}").classes("gw-quiet")
        self.check()

    def _table(self) -> None:
        sheet, columns = self.sheet, range(len(self.sheet.groups))
        with ui.element("div").classes("gw-scroll"), ui.element("table").classes("gw"):
            with _row("Machine or group", ""):
                for j in columns:
                    self._cell(f"Name of machine {j + 1}", sheet.groups, j, "groups", str(j + 1))
            with _row("How many", ""):
                for j in columns:
                    self._cell(f"Count of machine {j + 1}", sheet.counts, j, "counts", "1")
            with _row("Availability", ""):
                for j in columns:
                    self._cell(
                        f"Availability of machine {j + 1}",
                        sheet.availability,
                        j,
                        "availability",
                        "1",
                    )
            with _row("Class", "Arrivals"):
                for j in columns:
                    _head(f"rate on {sheet.groups[j] or j + 1}")
            for i, rates in enumerate(sheet.rates):
                with ui.element("tr"):
                    self._cell(f"Name of class {i + 1}", sheet.classes, i, "classes", str(i + 1))
                    self._cell(f"Arrivals of class {i + 1}", sheet.arrivals, i, "arrivals")
                    for j in columns:
                        label = f"Rate of class {i + 1} on machine {j + 1}"
                        self._cell(label, rates, j, "rates", place=("rates", i, j))

    def _buttons(self) -> None:
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

    def _cell(
        self,
        label: str,
        cells: list[str],
        number: int,
        key: str,
        hint: str = "",
        place: tuple[int | str, ...] = (),
    ) -> None:
        def typed(event: events.ValueChangeEventArguments[Any]) -> None:
            self._remember()
            cells[number] = str(event.value or "")
            self.check()

        with ui.element("td"):
            made = ui.input(value=cells[number], placeholder=hint, on_change=typed)
            made.props(f'dense debounce=250 hide-bottom-space aria-label="{label}"')
            made.classes("gw-cell").without_auto_validation()  # the model's own words stay
        self.inputs[place or (key, number)] = made

    def _plain(self, label: str, key: str, name: str) -> None:
        made = ui.input(
            label, value=getattr(self.sheet, key), on_change=lambda e: self._set(key, e)
        )
        made.props("dense debounce=250 hide-bottom-space").classes("w-64")
        made.without_auto_validation()
        self.inputs["failures", name] = made

    def _set(self, key: str, event: events.ValueChangeEventArguments[Any]) -> None:
        self._remember()
        setattr(self.sheet, key, str(event.value or ""))
        self.check()

    def _change(self, change: Any) -> None:
        self._remember()
        change(self.sheet)
        self.lay_out()

    def _remember(self) -> None:
        self.before = [*self.before[-49:], deepcopy(self.sheet)]

    def undo(self) -> None:
        """Go one step back."""
        if not self.before:
            tell("there is nothing to undo", "info")
            return
        self.sheet = self.before.pop()
        self.lay_out()

    def check(self) -> None:
        """Say beside each cell what is wrong with it; if nothing is, what the system can bear."""
        document = self.sheet.document()
        self.kept["draft"] = document
        found = find_mistakes(document)
        words = {mistake.place: mistake.words for mistake in found}
        for place, made in self.inputs.items():
            if made.error != words.get(place):
                made.error = words.get(place)
        self.general.text = "; ".join(words[place] for place in words if place not in self.inputs)
        self.allocation.show(None if found else system_of(document))

    def load(self, name: str | None) -> None:
        """Take a system of the catalogue, or one that was saved."""
        if not name:
            return
        try:
            self._take(document_of(system_named(name)))
            for machine in () if name.startswith(OWN) else find(name).down:
                self.allocation.switch_off(machine)
        except InputError as error:
            tell(error)

    def _take(self, document: dict[str, Any]) -> None:
        self._remember()
        self.sheet = Sheet.of(document)
        self.allocation.switch_on()
        self.lay_out()

    async def upload(self, event: events.UploadEventArguments) -> None:
        """Take what a file says."""
        try:
            text = (await event.file.read()).decode("utf-8-sig")
            self._take(read_text(text, event.file.name))
        except UnicodeDecodeError:
            tell(f"{event.file.name} is not a text file; expected UTF-8")
        except InputError as error:
            tell(error)
        event.sender.reset()  # type: ignore[attr-defined]

    def paste(self) -> None:
        """Ask for a matrix of rates from a spreadsheet."""
        with ui.dialog() as dialog, ui.card().classes("w-96"):
            ui.label("Rates from a spreadsheet: a row for each class")
            box = ui.textarea("Rates").classes("w-full")

            def take() -> None:
                try:
                    rates = read_text(str(box.value or ""), "the rates")
                except InputError as error:
                    tell(error)
                    return
                old = self.sheet.document()
                same = len(old["rates"]) == len(rates["rates"])
                kept = {"arrivals": old["arrivals"]} if same and "arrivals" in old else {}
                self._take({**rates, **kept, "name": self.sheet.name})
                dialog.close()

            with ui.row():
                ui.button("Take them", on_click=take)
                ui.button("Cancel", on_click=dialog.close).props("flat")
        dialog.open()

    def save(self) -> None:
        """Keep the system under its name."""
        try:
            made = system_of(self.sheet.document())
            save(made, self.sheet.name)
            tell(f"{self.sheet.name} is saved; Simulate and Run offer it", "positive")
        except InputError as error:
            tell(error)

    def download(self) -> None:
        """Hand the system over as a file."""
        try:
            text = system_of(self.sheet.document()).to_toml()
            ui.download.content(text, "system.toml", "application/toml")
        except InputError as error:
            tell(error)


def _head(text: str) -> None:
    with ui.element("th").props("scope=col"):
        ui.label(text)


def _row(first: str, second: str) -> ui.element:
    row = ui.element("tr")
    with row:
        _head(first)
        _head(second)
    return row
