"""The availability tab of Define: set or send availability and prediction of machines."""

import json
from typing import Any

from nicegui import run as background
from nicegui import ui

from ...grid import request
from ...grid.journal import Journal
from ...grid.prediction import Prediction
from ...model import InputError
from ..fields import as_number, fields_of
from ..form import Place
from .cells import Cells, Part
from .frame import errors_shown, offer, read_journal, tell
from .machine_part import machine_table, selected, show_rows

LABELS = {"availability": "availability", "prediction": "prediction"}
FIELDS = fields_of(Prediction)
MODES = {"": "like all machines", **FIELDS["mode"].choices}


class AvailabilityPart(Part):
    """Set values for the selected machines, in the definition or in a run."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.table = machine_table("Availability of the machines", LABELS)
        with ui.row().classes("gap-2 items-end"):
            self.share = ui.input("Availability", value="1").props("dense").classes("w-28")
            self.period = ui.input("Time units (empty: for ever)").props("dense").classes("w-56")
            label = FIELDS["mode"].label
            self.mode = ui.select(MODES, label=label, value="").props("dense").classes("w-64")
            self.weight = ui.input(FIELDS["c"].label, value=FIELDS["c"].text)
            self.weights = ui.input(
                FIELDS["weights"].label, value=", ".join(map(str, FIELDS["weights"].default))
            )
            for each, mode in ((self.weight, "recursive"), (self.weights, "weekly")):
                each.props("dense").classes("w-48")
                each.bind_visibility_from(self.mode, "value", value=mode)
        with ui.row().classes("gap-2 items-end"):
            ui.button("Set for those selected", on_click=self.put).props("outline")
            self.run = ui.select({}, label="Run").props("dense").classes("w-64")
            ui.button("Send to the run", on_click=self.send).props("outline")
        ui.timer(2.0, self._runs)

    def refresh(self) -> None:
        """Show availability and prediction of each machine."""
        form, rows = self.cells.form, []
        for name, place in self.cells.shown().items():
            cells = form.said(place)
            share = cells.availability or form.sheet.availability[place[0]] or "1"
            way = cells.prediction or form.prediction
            rows.append({"machine": name, "availability": share, "prediction": _words(way)})
        show_rows(self.table, rows)

    def put(self) -> None:
        """Set availability and prediction of the selected machines in the definition."""
        names = selected(self.table)
        if not names:
            tell("select machines in the table first", "info")
            return

        def change() -> None:
            way = self._prediction()
            form = self.cells.form
            places = [place for name in names if (place := form.at(name)) is not None]
            for place in places:
                form.machine(place).prediction = way
            self._put_share(places)

        self.cells.act(change)

    def _put_share(self, places: list[Place]) -> None:
        """Write a share into a column if all its machines are selected, else beside each."""
        form, share = self.cells.form, str(self.share.value or "")
        everyone = form.sheet.machines()
        for column in {place[0] for place in places}:
            own = {place for place in everyone if place[0] == column}
            whole = own <= set(places)
            if whole:
                form.sheet.availability[column] = share
            for place in own & set(places):
                form.machine(place).availability = "" if whole else share

    async def send(self) -> None:
        """Send availability and prediction to the selected machines of a run."""
        names, number = selected(self.table), self.run.value
        if not names or not number:
            tell("select machines in the table, and a run", "info")
            return
        with errors_shown():
            share, period = self._share(), as_number(str(self.period.value or "1e9"))
            if not isinstance(period, float):
                raise InputError(f"time units is {period!r}; expected a number")
            way = self._prediction()

            def ask(journal: Journal) -> None:
                for name in names:
                    request(journal, "impose", name, f"{share:g} {period:g}")
                    if way is not None:
                        request(journal, "predict", name, json.dumps(way))

            await read_journal(int(number), ask)
            tell(f"run {number}: sent to {', '.join(names)}", "positive")

    def _share(self) -> float:
        share = as_number(str(self.share.value or ""))
        if not (isinstance(share, float) and 0 < share <= 1):
            raise InputError(f"availability is {share!r}; expected more than 0, at most 1")
        return share

    def _prediction(self) -> dict[str, Any] | None:
        """Return the chosen prediction; None if it is that of all machines."""
        mode = str(self.mode.value or "")
        if not mode:
            return None
        words: dict[str, Any] = {"mode": mode}
        if mode == "weekly":
            words["weights"] = [as_number(each) for each in str(self.weights.value).split(",")]
        elif mode == "recursive":
            words["c"] = as_number(str(self.weight.value))
        else:
            words["availability"] = self._share()
            unit = as_number(self.cells.form.cells["time_unit"])
            if self.period.value and isinstance(unit, float):
                period = as_number(str(self.period.value))
                words["period"] = period * unit if isinstance(period, float) else period
        Prediction.of(words)  # raises an error if it is not valid
        return words

    async def _runs(self) -> None:
        known = await background.io_bound(self.cells.services.runs.all) or []
        going = [each for each in known if each.state in ("running", "paused")]
        options = {each.run: f"run {each.run}: {each.name or each.system}" for each in going}
        offer(self.run, options)


def _words(way: Any) -> str:
    """Describe a prediction in a few words."""
    if isinstance(way, str):
        return way
    more = ", ".join(f"{key} {value}" for key, value in way.items() if key != "mode")
    return f"{way.get('mode', 'weekly')} ({more})" if more else str(way.get("mode", "weekly"))
