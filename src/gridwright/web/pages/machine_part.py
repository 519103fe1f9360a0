"""The machines tab of Define: add and remove machines, their speeds and rates."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from nicegui import app, events, ui

from ...model import InputError
from ...testbed import Calibration, parse_machines, real_rates, warnings
from ..fields import as_number, as_text, fields_of
from ..form import Place
from ..guard import LARGEST
from ..queue import solved
from ..tasks import CalibrationTask
from .cells import Cells, Part
from .frame import column_head, columns_of, errors_shown, figure, offer, table_row, tell

T = TypeVar("T")
LABELS = {"address": "worker", "speed": "iterations per second"}


class MachinePart(Part):
    """A table of machines, and the speed and rates of the chosen one."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.queue = cells.services.queue
        self.real: list[ui.label] = []
        self.kept = app.storage.tab  # as long as the server's queue
        begun = self.kept.get("calibration", 0)  # perhaps from before the page was reloaded
        self.watched = self.queue.find(CalibrationTask, begun)
        with ui.row().classes("gap-2"):
            ui.button("Add a machine", on_click=self.add).props("outline dense")
            ui.button("Remove those selected", on_click=self.remove).props("outline dense")
            pick_file(
                "Import a machine list",
                ".srs,.txt,.csv",
                self.upload,
                "a machine a line: its address, or address; credential; minutes; iterations",
                dense=True,
            )
            ui.button("Calibrate", on_click=self.calibrate).props("outline dense").tooltip(
                "measures how fast this computer runs the loop: the machines selected, or all"
            )
            ui.button("Stop calibrating", on_click=self.stop).props("outline dense")
        self.progress = ui.label().classes("gw-steady gw-quiet").props("role=status")
        self.table = machine_table("Machines", LABELS)
        self.more = ui.label().classes("gw-quiet")
        self.chosen = ui.select([], label="Rates and speed of machine", on_change=self._details)
        self.chosen.classes("w-64").props("dense")
        self.place = ui.column().classes("gap-2 max-w-full")
        ui.timer(0.5, self._watch)

    def lay_out(self) -> None:
        """Draw the details of the chosen machine."""
        offer(self.chosen, list(self.cells.shown()))
        self._details()

    def refresh(self) -> None:
        """Show the machines, and compare imposed with real rates."""
        form, machines = self.cells.form, self.cells.shown()
        offer(self.chosen, list(machines))
        rows = []
        for name, place in machines.items():
            speed = self._speed(place)
            address = form.said(place).address
            shown = "" if speed is None else f"{speed.per_second:,.0f}"
            rows.append({"machine": name, "address": address, "speed": shown})
        show_rows(self.table, rows)
        number = len(form.sheet.machines())
        self.more.text = f"The first {len(rows)} of {number:,}." if number > len(rows) else ""
        self._show_real()

    def add(self) -> None:
        """Add a machine like the last."""
        self.cells.act(self.cells.form.sheet.add_machine)

    def remove(self) -> None:
        """Remove the selected machines."""
        found = map(self.cells.form.at, selected(self.table))
        places = [place for place in found if place is not None]
        if places:
            self.cells.act(lambda: self.cells.form.remove_machines(places))
        else:
            tell("select machines in the table first", "info")

    async def upload(self, event: events.UploadEventArguments) -> None:
        """Take the machines of a list; passwords are not kept."""
        listed = await read_upload(event, parse_machines)
        if listed is not None:
            self.cells.act(lambda: self.cells.form.list_machines(listed))
            tell(f"{len(listed)} machines; type, paste or import their rates", "positive")

    def calibrate(self) -> None:
        """Start to measure the selected machines, or all."""
        names = selected(self.table) or self.cells.form.names()
        with errors_shown():
            self.watched = self.queue.start(CalibrationTask(names))
            self.kept["calibration"] = self.watched.number

    def stop(self) -> None:
        """Stop the calibration."""
        for each in self.queue.all(CalibrationTask):
            self.queue.stop(each)

    def _watch(self) -> None:
        """Show the progress of the calibration; when it is done, take its result."""
        watched = self.watched
        if watched is None:
            return
        where = f" (machine {watched.at})" if watched.at and not watched.is_over else ""
        words = f"Calibration: {watched.state}, {100 * watched.share:.0f} %{where} {watched.error}"
        self.progress.text = words
        if not watched.is_over:
            return
        self.watched = None
        self.kept.pop("calibration", None)
        if watched.found is not None:
            self.cells.act(lambda: self._take(watched.found))

    def _take(self, found: Any) -> None:
        for each in found.machines:
            place = self.cells.form.at(each.machine)
            if place is not None:
                cells = self.cells.form.machine(place)
                cells.iterations = as_text(float(each.calibration.iterations))
                cells.seconds = f"{each.calibration.seconds:.6g}"

    def _details(self) -> None:
        """Draw the fields of the chosen machine."""
        form = self.cells.form
        place = form.at(str(self.chosen.value or ""))
        self.place.clear()
        self.inputs = {}
        self.real.clear()
        if place is None:
            return
        number, machine = form.sheet.machines().index(place), form.machine(place)
        with self.place:
            with ui.row().classes("gap-2 items-end"):
                put = partial(setattr, machine, "address")
                self.cells.field("Worker (empty: any)", machine.address, put)
                for key, field in fields_of(Calibration).items():
                    put = partial(setattr, machine, key)
                    made = self.cells.model_field(field, getattr(machine, key), put)
                    self.inputs["calibrations", number, key] = made
            self._rates(place[0])
            self.advice = ui.label().classes("gw-quiet gw-steady")
        self.cells.check()

    def _rates(self, column: int) -> None:
        sheet = self.cells.form.sheet
        with ui.element("div").classes("gw-scroll"), ui.element("table").classes("gw"):
            table_row("Class", "Real (measured)", "Imposed", "Assumed by the policy")
            for i, name in enumerate(sheet.classes):
                with ui.element("tr"):
                    column_head(name or str(i + 1))
                    with ui.element("td"):
                        self.real.append(ui.label())
                    with ui.element("td"):
                        ui.label(sheet.rates[i][column])
                    with ui.element("td"):
                        made = self.cells.field(
                            f"Assumed rate of class {i + 1}",
                            sheet.believed[i][column],
                            partial(sheet.believed[i].__setitem__, column),
                            cell=True,
                        )
                        made.props["placeholder"] = sheet.rates[i][column]
                    self.inputs["system", "assumed", "rates", i, column] = made

    def _speed(self, place: Place) -> Calibration | None:
        cells = self.cells.form.said(place)
        rounds, seconds = as_number(cells.iterations), as_number(cells.seconds)
        try:
            return Calibration(iterations=rounds, seconds=seconds)
        except InputError:
            return None

    def _show_real(self) -> None:
        """Show the real rates of the chosen machine, for jobs that use the CPU."""
        place = self.cells.form.at(str(self.chosen.value or ""))
        if place is None or self.cells.system is None:
            return
        words = ["–"] * len(self.real)
        advice = "Real rates need a speed and the iterations of a job."
        speed = self._speed(place)
        try:
            experiment = self.cells.experiment()
            if speed is not None and experiment.iterations is not None:
                rates = real_rates([speed], experiment.iterations, experiment.time_unit)
                real = np.full(self.cells.system.shape, np.inf)  # no warnings about the others
                machine = self.cells.form.sheet.machines().index(place)
                real[:, machine] = rates[:, 0]
                words = [figure(rate) for rate in real[:, machine]]
                found = warnings(self.cells.system, real)
                advice = next(iter(found), "No imposed rate is above four times the real one.")
        except InputError:
            pass
        for label, text in zip(self.real, words, strict=True):
            label.text = text
        self.advice.text = advice


def machine_table(label: str, labels: dict[str, str]) -> ui.table:
    """Make a table in which several machines can be selected, with labelled columns."""
    shown = columns_of(("machine", *labels), labels, sortable=True)
    made = ui.table(columns=shown, rows=[], row_key="machine", selection="multiple", pagination=10)
    made.props["aria-label"] = label
    return made.props("flat dense").classes("max-w-full")


def selected(table: ui.table) -> list[str]:
    """Return the names of the selected machines."""
    return [row["machine"] for row in table.selected]


def show_rows(table: ui.table, rows: list[dict[str, str]]) -> None:
    """Show machines in a table if they have changed, and keep the selection."""
    if table.rows != rows:
        names = selected(table)
        table.rows = rows
        table.selected = [row for row in rows if row["machine"] in names]


async def read_upload(
    event: events.UploadEventArguments, read: Callable[[str, str], T]
) -> T | None:
    """Return what ``read`` makes of a text file and its name; show an error if it cannot."""
    found = None
    with errors_shown():
        try:
            text = (await event.file.read()).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{event.file.name} is not a text file; expected UTF-8") from None
        found = await solved(lambda: read(text, event.file.name))
    event.sender.reset()  # type: ignore[attr-defined]
    return found


def pick_file(label: str, accepted: str, upload: Any, about: str, *, dense: bool = False) -> None:
    """Make a button that uploads a file."""
    taken = ui.upload(auto_upload=True, on_upload=upload).classes("hidden")
    taken.props(f'accept="{accepted}" max-file-size={LARGEST}')
    taken.on("rejected", lambda: tell(f"expected a text file of at most {LARGEST:,} bytes"))
    pick = ui.button(label).props("outline dense" if dense else "outline").tooltip(about)
    pick.on("click", js_handler=f"() => getElement({taken.id}).$refs.qRef.pickFiles()")
