"""The experiment beside the system: what an experiment file says of how it is run."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from ...policies import find, policies
from ..api.systems import describe_policy
from ..form import TRACE
from .cells import Cells, Step

__all__ = ["ExperimentPart"]

CHOICES: dict[str, tuple[str, dict[str, str]]] = {
    "failures": (
        "Failures",
        {"generated": "on: drawn from the mean times", "none": "off", TRACE: "the periods listed"},
    ),
    "on_timeout": (
        "After a time-out",
        {
            "resubmit": "the job is sent elsewhere",
            "duplicate": "it runs twice, the first answer counts",
            "wait": "it is waited for",
            "fail": "it has failed",
        },
    ),
    "detection": (
        "A failure is known",
        {"immediate": "at once", "timeout": "only by the time-out"},
    ),
    "job": ("A job", {"wait": "sleeps", "spin": "really takes the CPU"}),
}


class ExperimentPart:
    """Time, policy, failures, time-outs, readings, beliefs, jobs."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.inputs: dict[Step, Any] = {}
        self.place = ui.column().classes("gap-1 w-full")

    def lay_out(self) -> None:
        """Draw the fields anew."""
        self.place.clear()
        self.inputs = {}
        with self.place:
            with self._group("Policy and time"):
                self._policy()
                self._number("time_unit", "Seconds of a time unit")
                self._number("duration", "Time units of the run")
                self._number("seed", "Seed")
            with self._group("Failures"):
                self._choice("failures")
                sheet = self.cells.form.sheet
                for key, name, label in (
                    ("uptime", "mean_uptime", "Mean up-time (empty: never fails)"),
                    ("repair", "mean_repair", "Mean repair time"),
                ):
                    put = partial(setattr, sheet, key)
                    made = self.cells.field(label, getattr(sheet, key), put)
                    self.inputs["system", "failures", name] = made
            with self._group("Time-out"):
                self._timeout()
                self._choice("on_timeout")
                self._choice("detection")
            with self._group("Availability and beliefs"):
                self._number("resolution", "T_system: time units between readings (0: none)")
                self._prediction()
                self._corrections()
            with self._group("Jobs"):
                self._choice("job")
                self._number("iterations", "Rounds of a job that spins, one or one a class")
            if self.cells.form.rest:
                kept = ", ".join(self.cells.form.rest)
                ui.label(f"Also said, and kept: {kept}").classes("gw-quiet")

    def refresh(self) -> None:
        """Show whether there is a time-out, and what parameters the policy has."""
        self.switch.value = self.cells.form.cells["timeout"] != "0"
        name = self.cells.form.cells["policy"].partition(":")[0]
        known = policies().get(name)
        said = describe_policy(known)["parameters"] if known is not None else []
        words = ", ".join(f"{each['name']} ({each['default']})" for each in said)
        self.about.text = f"Parameters of {name}, as they are: {words or 'none'}"

    def _group(self, title: str) -> ui.row:
        ui.label(title).classes("font-bold").props("role=heading aria-level=3")
        return ui.row().classes("gap-x-4 gap-y-0 items-start w-full")

    def _number(self, key: str, label: str) -> None:
        cells = self.cells.form.cells
        self.inputs[key,] = self.cells.field(label, cells[key], partial(cells.__setitem__, key))

    def _choice(self, key: str) -> None:
        cells, (label, options) = self.cells.form.cells, CHOICES[key]
        made = self.cells.choice(label, options, cells[key], partial(cells.__setitem__, key))
        self.inputs[key,] = made

    def _policy(self) -> None:
        cells = self.cells.form.cells
        name, _, parameters = cells["policy"].partition(":")
        known = [each for each in policies().values() if each.is_shipped]
        options = {
            each.name: f"{each.name} – {describe_policy(find(each.name))['about']}"
            for each in known
            if each.kind.is_central
        }

        def put_name(value: str) -> None:
            if more.value:
                more.value = ""  # they were those of another
            cells["policy"] = value

        def put_parameters(value: str) -> None:
            chosen = cells["policy"].partition(":")[0]
            cells["policy"] = f"{chosen}:{value.strip()}" if value.strip() else chosen

        made = self.cells.choice("Policy", options, name, put_name, search=True)
        made.classes("w-full max-w-3xl", remove="w-64")
        more = self.cells.field("Parameters, as k=2:tie=random", parameters, put_parameters)
        self.about = ui.label().classes("gw-quiet gw-steady w-full")
        self.inputs["policy",] = made

    def _timeout(self) -> None:
        cells = self.cells.form.cells

        def turn(event: Any) -> None:
            if event.value != (cells["timeout"] != "0"):
                self.inputs["timeout",].value = "4" if event.value else "0"

        self.switch = ui.switch("Time-out", value=cells["timeout"] != "0", on_change=turn)
        self._number("timeout", "n: after n × the expected time (0: never)")

    def _prediction(self) -> None:
        form = self.cells.form
        given = form.prediction
        mode = str(given.get("mode", "weekly") if isinstance(given, dict) else given)
        options = {
            "weekly": "from earlier weeks, weighted",
            "recursive": "from earlier weeks, recursively",
            "fixed": "a fixed share",
        }

        def put(value: str) -> None:
            form.prediction = {"mode": value, "availability": 1.0} if value == "fixed" else value

        self.inputs["prediction",] = self.cells.choice("Prediction", options, mode, put)

    def _corrections(self) -> None:
        form = self.cells.form

        def turn(event: Any) -> None:
            self.cells.remember()
            form.corrections = bool(event.value)
            self.cells.check()

        given = form.corrections
        on = any(given.get(key, True) for key in CORRECTED) if isinstance(given, dict) else given
        detail = isinstance(given, dict) and len({given.get(key, True) for key in CORRECTED}) > 1
        label = "Beliefs follow measurements" + (" (in part, as the file says)" if detail else "")
        ui.switch(label, value=bool(on), on_change=turn)


CORRECTED = ("availability", "arrivals", "rates", "overhead")
