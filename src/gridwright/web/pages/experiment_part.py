"""The experiment tab of Define: how an experiment runs its system."""

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from ...grid.prediction import Prediction
from ...model.uncertainty import Failures
from ...policies import policies
from ...testbed import Experiment
from ..api.systems import describe_policy
from ..fields import fields_of
from ..form import TRACE
from ..sheet import MEANS
from .cells import Cells, Part
from .frame import heading

FIELDS = dict(fields_of(Experiment))
FIELDS["failures"] = FIELDS["failures"]._replace(
    choices={**FIELDS["failures"].choices, TRACE: "the periods listed"}
)
GROUPS = {
    "Policy and time": ("policy", "time_unit", "duration", "seed"),
    "Failures": ("failures", "mean_uptime", "mean_repair"),
    "Time-out": ("timeout", "on_timeout", "detection"),
    "Availability and beliefs": ("resolution", "prediction", "corrections"),
    "Jobs": ("job", "iterations"),
}
"""The fields in the order in which they are shown; most are those of the model."""
CORRECTED = ("availability", "arrivals", "rates", "overhead")


class ExperimentPart(Part):
    """Policy, time, failures, time-outs, predictions, beliefs and jobs."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.place = ui.column().classes("gap-1 w-full")

    def lay_out(self) -> None:
        """Draw the fields."""
        special: dict[str, Callable[[], None]] = {
            "policy": self._policy,
            "timeout": self._timeout,
            "prediction": self._prediction,
            "corrections": self._corrections,
        }
        self.place.clear()
        self.inputs = {}
        with self.place:
            for title, keys in GROUPS.items():
                heading(title, 3).classes("font-bold")
                with ui.row().classes("gap-x-4 gap-y-0 items-start w-full"):
                    for key in keys:
                        special.get(key, partial(self._field, key))()
            if self.cells.form.rest:
                kept = ", ".join(self.cells.form.rest)
                ui.label(f"Also in the file, and kept: {kept}").classes("gw-quiet")

    def refresh(self) -> None:
        """Show whether there is a time-out, and the parameters of the policy."""
        self.switch.value = self.cells.form.cells["timeout"] != "0"
        name = self.cells.form.cells["policy"].partition(":")[0]
        known = policies().get(name)
        said = describe_policy(known)["parameters"] if known is not None else []
        words = ", ".join(f"{each['name']} ({each['default']})" for each in said)
        self.about.text = f"Parameters of {name} and their defaults: {words or 'none'}"

    def _field(self, key: str) -> None:
        if key in MEANS:
            cells, field = self.cells.form.sheet.means, fields_of(Failures)[key]
        else:
            cells, field = self.cells.form.cells, FIELDS[key]
        made = self.cells.model_field(field, cells[key], partial(cells.__setitem__, key))
        self.inputs[("system", "failures", key) if key in MEANS else (key,)] = made

    def _policy(self) -> None:
        cells = self.cells.form.cells
        name, _, parameters = cells["policy"].partition(":")
        options = {
            each.name: f"{each.name} – {each.doc}"
            for each in policies().values()
            if each.is_shipped
        }

        def put_name(value: str) -> None:
            if more.value:
                more.value = ""  # they belong to another policy
            cells["policy"] = value

        def put_parameters(value: str) -> None:
            chosen = cells["policy"].partition(":")[0]
            cells["policy"] = f"{chosen}:{value.strip()}" if value.strip() else chosen

        made = self.cells.choice(FIELDS["policy"].label, options, name, put_name, search=True)
        made.classes("w-full max-w-3xl", remove="w-64")
        more = self.cells.field("Parameters, as k=2:tie=random", parameters, put_parameters)
        self.about = ui.label().classes("gw-quiet gw-steady w-full")
        self.inputs["policy",] = made

    def _timeout(self) -> None:
        cells = self.cells.form.cells

        def turn(event: Any) -> None:
            if event.value != (cells["timeout"] != "0"):
                self.inputs["timeout",].value = "4" if event.value else "0"

        self.switch = ui.switch("Use a time-out", value=cells["timeout"] != "0", on_change=turn)
        self._field("timeout")

    def _prediction(self) -> None:
        form, field = self.cells.form, fields_of(Prediction)["mode"]
        given = form.prediction
        mode = str(given.get("mode", "weekly") if isinstance(given, dict) else given)

        def put(value: str) -> None:
            form.prediction = {"mode": value, "availability": 1.0} if value == "fixed" else value

        self.inputs["prediction",] = self.cells.model_field(field, mode, put)

    def _corrections(self) -> None:
        form = self.cells.form

        def turn(event: Any) -> None:
            form.corrections = bool(event.value)
            self.cells.check()

        given = form.corrections
        on = any(given.get(key, True) for key in CORRECTED) if isinstance(given, dict) else given
        detail = isinstance(given, dict) and len({given.get(key, True) for key in CORRECTED}) > 1
        label = "Beliefs follow measurements" + (" (in part, as the file says)" if detail else "")
        ui.switch(label, value=bool(on), on_change=turn)
