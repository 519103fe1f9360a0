"""Define: edit a system and its experiment, with their mistakes and the capacity."""

from typing import Any

from fastapi import Request
from nicegui import events, ui
from nicegui import run as background

from ...catalogue import experiment_names, find
from ...model import InputError, System
from ...testbed import Experiment
from ..documents import document_of, is_matrix, read_definition, read_rates, why_unfit
from ..drafts import Draft
from ..guard import may_run_code
from ..queue import solved
from ..runs import check_cluster, check_size
from ..saved import OWN, is_saved, load_own, own_experiments, save
from ..services import Services
from .allocation import AllocationCard
from .availability_part import AvailabilityPart
from .cells import Cells, Part
from .experiment_part import ExperimentPart
from .fault_part import FaultPart
from .frame import Picker, confirmed, errors_shown, frame, system_choices, system_named, tell
from .machine_part import MachinePart, pick_file, read_upload
from .system_part import SystemPart

BESIDE = "w-full grid grid-cols-1 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)] gap-4 items-start"
"""Columns of fixed widths, so that nothing moves from tab to tab."""
PARTS: dict[str, type[Part]] = {
    "System": SystemPart,
    "Experiment": ExperimentPart,
    "Machines": MachinePart,
    "Failure periods": FaultPart,
    "Availability": AvailabilityPart,
}


Rates = list[list[float]]


async def define_page(services: Services, request: Request) -> None:
    """Show the page; a reload keeps what was typed."""
    client = ui.context.client
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
            self.allocation = AllocationCard()
        cells.checked = self._checked
        cells.lay_out()

    def _tools(self) -> None:
        own = {f"{OWN}{name}": f"{name} (saved)" for name in own_experiments()}
        published = {name: name for name in experiment_names()}
        about = "an experiment or a system (.toml), or rates (.csv, .mue)"
        with ui.row().classes("items-end gap-2"):
            self._chooser("Load a system", system_choices(), self.load)
            self._chooser("Load an experiment", own | published, self.load_experiment)
            pick_file("Import a file", ".toml,.csv,.mue,.txt", self.upload, about)
            ui.button("Paste rates", on_click=self.paste).props("outline")
            ui.button("Undo", on_click=self.cells.undo).props("outline")
            ui.button("Save", on_click=self.save)
            ui.button("Download TOML", on_click=self.download).props("outline")
            ui.button("Run it", on_click=self.run).props("outline")

    def _chooser(self, label: str, options: dict[str, str], load: Any) -> None:
        def take(event: events.ValueChangeEventArguments[Any]) -> None:
            if event.value:
                with errors_shown():
                    load(event.value)

        Picker(options, label, None).on_value_change(take).classes("w-52")

    def _parts(self) -> None:
        with ui.tabs().props("dense no-caps align=left outside-arrows mobile-arrows") as tabs:
            self.tabs = {name: ui.tab(name) for name in PARTS}
        tabs.classes("max-w-full")
        with ui.tab_panels(tabs, value="System", animated=False).classes("w-full"):
            made = {}
            for name, part in PARTS.items():
                with ui.tab_panel(name).classes("p-0 pt-2 gap-2"):
                    made[name] = part(self.cells)
        self.cells.parts = made

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

    def load(self, name: str) -> None:
        """Load a system, from the catalogue or saved."""
        self._take({"system": document_of(system_named(name))})
        for machine in () if name.startswith(OWN) else find(name).down:
            self.allocation.switch_off(machine)

    def load_experiment(self, name: str) -> None:
        """Load an experiment with its system, published or saved."""
        own = name.startswith(OWN)
        found = load_own(name.removeprefix(OWN)) if own else Experiment.find(name)
        self._take(document_of(found))

    def _take(self, document: dict[str, Any]) -> None:
        self.allocation.switch_on()
        self.cells.take(document)

    async def upload(self, event: events.UploadEventArguments) -> None:
        """Load a file."""
        found = await read_upload(event, _read)
        if found is not None:
            with errors_shown():
                self._take_read(found)

    def _take_read(self, found: dict[str, Any] | Rates) -> None:
        """Load a definition, or put new rates into the one that is shown."""
        if isinstance(found, dict):
            self._take(found)
            return
        self.cells.act(lambda: self.cells.form.take_rates(found))
        tell(f"{_size(found)}; everything else stays as it was", "positive")

    def paste(self) -> None:
        """Ask for a matrix of rates from a spreadsheet, and show what was understood."""
        with ui.dialog() as dialog, ui.card().classes("w-96"):
            ui.label("Rates from a spreadsheet: a row for each class")

            def look() -> None:
                try:
                    rates = read_rates(str(box.value or ""), "the rates")
                    first = ", ".join(f"{rate:g}" for rate in rates[0][:8])
                    shown.text = f"{_size(rates)}; the first row: {first}"
                except InputError as error:
                    shown.text = str(error)

            box = ui.textarea("Rates", on_change=look).classes("w-full").props("debounce=250")
            shown = ui.label().classes("gw-steady gw-quiet").props("role=status")

            async def take() -> None:
                text = str(box.value or "")
                with errors_shown():
                    self._take_read(await solved(lambda: _read(text, "the rates")))
                    dialog.close()

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
            tell(f"{name} is saved{words}", "positive")

    def download(self) -> None:
        """Download everything as one file."""
        with errors_shown():
            found = self._definition()
            name = "system.toml" if isinstance(found, System) else "experiment.toml"
            ui.download.content(found.to_toml(), name, "application/toml")

    async def run(self) -> None:
        """Start a run of the experiment, and open its page."""
        with errors_shown():
            experiment = check_cluster(check_size(self.cells.experiment()), self.trusted)
            number = await background.io_bound(self.cells.services.runs.start, experiment)
            ui.navigate.to(f"/run/{number}")


def _read(text: str, name: str) -> dict[str, Any] | Rates:
    """Read rates by themselves, or a definition."""
    return read_rates(text, name) if is_matrix(text) else read_definition(text, name)


def _size(rates: Rates) -> str:
    return f"rates of {len(rates)} classes on {len(rates[0])} machines"
