"""Define: edit a system and its experiment, with their mistakes and the capacity."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import Request
from nicegui import events, ui
from nicegui import run as background

from ...allocation import Allocation
from ...catalogue import find
from ...model import InputError, System
from ...testbed import Experiment
from ..documents import document_of, is_table, read_definition, system_of, why_unfit
from ..drafts import Draft, History, Kept, kept_drafts
from ..guard import may_run_code
from ..pasted_table import Pasted, read_table
from ..queue import solved
from ..runs import check_cluster, check_size
from ..saved import OWN, is_saved, load_own, own_experiments, save, saved_lines
from ..services import Services
from ..summary import misfits, published_experiments
from .allocation import AllocationCard
from .availability_part import AvailabilityPart
from .cells import FIRST, Cells, Part
from .experiment_part import ExperimentPart
from .fault_part import FaultPart
from .frame import (
    Picker,
    confirmed,
    errors_shown,
    frame,
    shell,
    system_choices,
    system_named,
    tell,
)
from .machine_part import MachinePart, pick_file, read_upload
from .paste_dialog import Reading, ask
from .policy_form import shipped_policies
from .simulate import FIRST_POLICIES
from .system_part import SystemPart

BESIDE = "w-full grid lg:grid-cols-2-1 gap-4 items-start"
"""Columns of fixed widths, so that nothing moves from tab to tab."""
PARTS: dict[str, type[Part]] = {
    "System": SystemPart,
    "Experiment": ExperimentPart,
    "Machines": MachinePart,
    "Failure periods": FaultPart,
    "Availability": AvailabilityPart,
}


async def define_page(services: Services, request: Request) -> None:
    """Show the page; a reload keeps what was typed."""
    client = ui.context.client
    shell()
    await client.connected()
    if client.is_deleted:  # the browser never opened the page
        return
    with frame("Define"):
        Editor(Cells(Draft(client.tab_id or ""), services), trusted=may_run_code(request))


class Editor:
    """The cells in their parts, and the allocation beside them."""

    def __init__(self, cells: Cells, *, trusted: bool) -> None:
        self.cells, self.trusted = cells, trusted
        self._tools()
        with ui.element("div").classes(BESIDE):
            with ui.card().classes("min-w-0"):
                self._parts()
                self.general = ui.label().classes("text-negative gw-steady").props("role=alert")
            self.allocation = AllocationCard(self._colour)
        cells.checked = self._checked
        cells.lay_out(keep=False)

    def _tools(self) -> None:
        lines = saved_lines()
        own = {f"{OWN}{name}": lines[name] for name in own_experiments()}
        about = "an experiment or a system (.toml), or a table of rates (.csv, .mue)"
        with ui.row().classes("items-end gap-2"):
            self._chooser("Load a system", system_choices(), self.load)
            self._chooser("Load an experiment", own | published_experiments(), self.load_experiment)
            self.drafts = self._chooser("Open a draft", {}, self.open_draft)
            pick_file("Import a file", ".toml,.csv,.mue,.txt", self.upload, about)
            ui.button("Paste rates", on_click=self.paste).props("outline")
        with ui.row().classes("items-center gap-2"):
            ui.button("New", on_click=self.begin).props("outline")
            self.undo = ui.button("Undo", on_click=self.cells.undo).props("outline")
            self.redo = ui.button("Redo", on_click=self.cells.redo).props("outline")
            ui.button("Save", on_click=self.save)
            ui.button("Delete draft", on_click=self.delete_draft).props("outline")
            ui.button("Download TOML", on_click=self.download).props("outline")
            ui.button("Simulate it", on_click=self.simulate).props("outline")
            ui.button("Run it", on_click=self.run).props("outline")
            self.state = ui.label().props("role=status")
        with errors_shown():
            self._list_drafts()

    def _list_drafts(self) -> None:
        """Offer the drafts by name, each with a mark if it is not saved."""
        self.drafts.set_options({each.key: _line(each) for each in kept_drafts()}, value=None)

    def _chooser(self, label: str, options: dict[str, str], load: Any) -> Picker:
        def take(event: events.ValueChangeEventArguments[Any]) -> None:
            if event.value:
                with errors_shown():
                    load(event.value)

        made = Picker(options, label, None)
        made.on_value_change(take).classes("w-52")
        return made

    def _parts(self) -> None:
        with ui.tabs().props("dense no-caps align=left outside-arrows mobile-arrows") as tabs:
            self.tabs = {name: ui.tab(name) for name in PARTS}
        tabs.classes("max-w-full")
        with ui.tab_panels(tabs, value="System", animated=False).classes("w-full"):
            made = {}
            for name, part in PARTS.items():
                with ui.tab_panel(name).classes("p-0 pt-2 gap-2"):
                    made[name] = part(self.cells)
        self.cells.parts, self.cells.visible = made, "System"
        tabs.on_value_change(lambda event: self.cells.turn_to(str(event.value)))

    def _checked(self) -> None:
        """Show mistakes that belong to no cell, mark tabs with mistakes, and show the capacity."""
        parts = self.cells.parts.values() if self.cells.found else ()
        known = {place for part in parts for place in part.places()}
        words = [each.words for each in self.cells.found if each.place not in known]
        self.general.text = "; ".join(words[:3]) + (" …" if len(words) > 3 else "")
        wrong = self.cells.wrong_parts()
        for name, tab in self.tabs.items():
            if (name in wrong) != ("alert" in tab.props):
                tab.props("alert=negative") if name in wrong else tab.props(remove="alert")
        self.allocation.show(self.cells.system)
        self._show_state()

    def _show_state(self) -> None:
        """Show what the draft is called, whether it is saved, and what can be undone."""
        history, name = self.cells.history, self.cells.form.sheet.name or "without a name"
        self.undo.set_enabled(history.can_undo)
        self.redo.set_enabled(history.can_redo)
        said = f"{name}: no changes" if history.is_saved else f"● {name}: not saved"
        if self.state.text != said:
            self.state.text = said

    def _colour(self, found: Allocation | None) -> None:
        part = self.cells.parts["System"]
        if isinstance(part, SystemPart):
            part.colour(found)

    def open_draft(self, key: str) -> None:
        """Continue a draft, perhaps of another tab."""
        found = History.open(key)
        if found is None:
            raise InputError("this draft was deleted")
        self.allocation.switch_on()
        self.cells.open(found)
        self._list_drafts()

    def begin(self) -> None:
        """Begin a new definition; the old one stays a draft."""
        self.allocation.switch_on()
        self.cells.open(History(FIRST))
        with errors_shown():
            self._list_drafts()

    async def delete_draft(self) -> None:
        """Delete the draft with all its versions, and begin a new one."""
        name = self.cells.form.sheet.name
        question = f"Delete the draft {name} and all its versions? What is saved stays."
        if await confirmed(question, "Delete it"):
            with errors_shown():
                self.cells.history.delete()
            self.begin()

    def load(self, name: str) -> None:
        """Load a system, from the catalogue or saved."""
        self._take({"system": document_of(system_named(name))}, edited=False)
        for machine in () if name.startswith(OWN) else find(name).down:
            self.allocation.switch_off(machine)

    def load_experiment(self, name: str) -> None:
        """Load an experiment with its system, published or saved."""
        own = name.startswith(OWN)
        found = load_own(name.removeprefix(OWN)) if own else Experiment.find(name)
        self._take(document_of(found), edited=False)

    def _take(self, document: dict[str, Any], *, edited: bool) -> None:
        self.allocation.switch_on()
        self.cells.take(document, edited=edited)
        self._list_drafts()

    async def upload(self, event: events.UploadEventArguments) -> None:
        """Load a file."""
        found = await read_upload(event, lambda text, name: (text, name))
        if found is None:
            return
        text, name = found
        with errors_shown():
            if not is_table(text):
                self._take(await solved(lambda: read_definition(text, name)), edited=True)
                return
            read = partial(read_table, text, name)
            answers: Mapping[str, str] | None = {}
            if any(each.key != "separator" for each in read({}).questions):
                answers = await ask(read)
            if answers is not None:
                self._take_table(read(answers))

    def _take_table(self, table: Pasted) -> None:
        """Replace the rates; everything that the table does not have stays."""

        def change() -> None:
            said = self.cells.form.take_table(table, whole=True)
            tell(f"{said}; everything else stays as it was", "positive")

        self.cells.act(change)

    def paste(self) -> None:
        """Ask for a table of rates from a spreadsheet, and show what was understood."""
        with ui.dialog() as dialog, ui.card().classes("w-96"):
            ui.label("Rates from a spreadsheet: a row for each class, with or without names")
            ui.label("A column named arrivals, and rows named how many or availability, go there.")

            box = ui.textarea("Rates").classes("w-full").props("debounce=250")
            reading = Reading()

            def read(answers: Mapping[str, str]) -> Pasted:
                return read_table(str(box.value or ""), "the rates", answers)

            async def take() -> None:
                with errors_shown():
                    text = str(box.value or "")
                    if is_table(text):
                        self._take_table(read(reading.answers))
                    else:
                        found = await solved(lambda: read_definition(text, "the text"))
                        self._take(found, edited=True)
                    dialog.close()

            box.on_value_change(lambda: reading.show(read))
            with ui.row():
                ui.button("Take them", on_click=take)
                ui.button("Cancel", on_click=dialog.close).props("flat")
        dialog.open()

    def _definition(self) -> System | Experiment:
        """Return the experiment, or its system alone if that cannot run on real machines."""
        system = self.cells.system
        return system if system is not None and why_unfit(system) else self.cells.experiment()

    async def save(self) -> None:
        """Save everything under the system's name; without the experiment if it cannot run."""
        name = self.cells.form.sheet.name
        with errors_shown():
            found = self._definition()
            question = f"{name} is saved already. Replace it?"
            if is_saved(name) and not await confirmed(question, "Replace it"):
                return
            save(found, name)
            alone = isinstance(found, System)
            words = " as a system; Simulate offers it" if alone else "; Simulate and Run offer it"
            self.cells.mark_saved()
            self._show_state()
            self._list_drafts()
            tell(f"{name} is saved{words}", "positive")

    def download(self) -> None:
        """Download everything as one file."""
        with errors_shown():
            found = self._definition()
            name = "system.toml" if isinstance(found, System) else "experiment.toml"
            ui.download.content(found.to_toml(), name, "application/toml")

    async def simulate(self) -> None:
        """Open Simulate with the system as it is shown, and policies that fit it."""
        with errors_shown():
            given = self.cells.form.document()["system"]
            try:
                system = await solved(lambda: system_of(given))
            except InputError as error:
                raise InputError(self.cells.in_words(str(error))) from None
            form = self.cells.kept.get("simulate") or {}
            policies = [*form.get("policies", FIRST_POLICIES), self.cells.form.cells["policy"]]
            unfit = misfits(system)
            fit = [each for each in dict.fromkeys(policies) if each.partition(":")[0] not in unfit]
            fit = fit or [name for name in shipped_policies() if name not in unfit][:2]
            self.cells.kept["simulate"] = {**form, "system": given, "policies": fit, "shown": ""}
            ui.navigate.to("/simulate")

    async def run(self) -> None:
        """Start a run of the experiment, and open its page."""
        with errors_shown():
            experiment = check_cluster(check_size(self.cells.experiment()), self.trusted)
            number = await background.io_bound(self.cells.services.runs.start, experiment)
            ui.navigate.to(f"/run/{number}")


def _line(draft: Kept) -> str:
    """Return the line of a list for a draft."""
    mark, state = ("", "saved") if draft.is_saved else ("● ", "not saved")
    when = draft.changed[:16].replace("T", " ")
    return f"{mark}{draft.name or 'without a name'} – {draft.size}, {state}, {when} UTC"
