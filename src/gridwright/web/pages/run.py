"""Run: an experiment on real processes, started, watched, stepped into, stopped."""

from __future__ import annotations

from typing import Any

from nicegui import run as background
from nicegui import ui

from ...catalogue import experiment_names
from ...model import InputError
from ..desk import Desk
from ..draft import document_of
from ..own import own_experiments
from ..running import experiment_of
from .frame import figure, frame, system_choices, system_named, tell
from .live import Live
from .policy_form import PolicyForm

__all__ = ["run_list", "run_page", "watch_page"]

SAVED = "saved "


def run_page(desk: Desk) -> None:
    """Show what can be run, and the runs that there are."""
    with frame("Run"):
        with ui.card().classes("w-full"):
            Starter(desk)
        ui.label("Runs").classes("text-lg").props("role=heading aria-level=2")
        place = ui.column().classes("w-full")
        shown: list[Any] = []

        def show() -> None:
            found = desk.runs.all()
            if found != shown or not place.default_slot.children:
                shown[:] = found
                place.clear()
                with place:
                    run_list(desk, "/run", "No runs yet: choose an experiment and press Start.")

        show()
        ui.timer(2.0, show)


def watch_page(desk: Desk, number: int) -> None:
    """Show a run as it goes on."""
    with frame("Run"):
        if desk.runs.find(number) is None:
            ui.label(f"There is no run {number}.")
            ui.link("All runs", "/run")
        else:
            Live(desk, number)


def run_list(desk: Desk, where: str, empty: str) -> None:
    """List the runs, each with a link."""
    found = desk.runs.all()
    if not found:
        ui.label(empty)
        return
    with ui.element("div").classes("gw-scroll w-full"), ui.element("table").classes("gw"):
        with ui.element("tr"):
            for head in ("run", "state", "experiment", "system", "policy", "time units", "jobs"):
                _cell(head, "th")
            _cell("mean response", "th")
        for each in found:
            with ui.element("tr"):
                with ui.element("td"):
                    ui.link(f"run {each.run}", f"{where}/{each.run}")
                for text in (each.state, each.name, each.system, each.policy):
                    _cell(text)
                _cell(f"{each.time_units:.1f} of {each.duration:g}")
                _cell(f"{each.finished:,}")
                _cell(figure(each.mean_response))


def _cell(text: str, kind: str = "td") -> None:
    with ui.element(kind):
        ui.label(text)


class Starter:
    """The form that a run is started with."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        systems = {f"system {name}": label for name, label in system_choices().items()}
        names = {name: f"{name} (experiment)" for name in experiment_names()}
        own = {f"{SAVED}{name}": f"{name} (saved experiment)" for name in own_experiments()}
        self.what = ui.select(
            own | names | systems, label="Experiment or system", value="MGST-1", with_input=True
        ).classes("w-full max-w-3xl")
        self.policy = PolicyForm(["lpas_dg"], ("push", "pull"), several=False)
        with ui.row().classes("gap-2 items-end"):
            self.unit = ui.number("Seconds of a time unit", value=1, min=0)
            self.duration = ui.number("Time units", value=20, min=0)
            self.seed = ui.number("Seed", value=1, min=0)
            self.failures = ui.select(
                {"generated": "as the system says", "none": "none"},
                label="Failures",
                value="generated",
            ).classes("w-44")
            self.corrections = ui.switch("Beliefs follow measurements")
        with ui.expansion("More").props("dense"), ui.row().classes("gap-2 items-end"):
            self.timeout = ui.number("Time-out after n × expected (0: never)", value=0, min=0)
            self.timeout.classes("w-64")
            self.detection = ui.select(
                {"immediate": "at once", "timeout": "only by the time-out"},
                label="A failure is known",
                value="immediate",
            ).classes("w-48")
            self.resolution = ui.number("Readings every … time units (0: none)", value=0, min=0)
            self.resolution.classes("w-64")
            self.job = ui.select(
                {"wait": "sleeps", "spin": "really takes the CPU"}, label="A job", value="wait"
            ).classes("w-48")
        ui.button("Start", on_click=self.start)

    async def start(self) -> None:
        """Start a run, and go where it can be watched."""
        try:
            experiment = self._experiment()
            number = await background.io_bound(self.desk.runs.start, experiment)
        except InputError as error:
            tell(error)
            return
        ui.navigate.to(f"/run/{number}")

    def _experiment(self) -> Any:
        what = str(self.what.value or "")
        changes: dict[str, Any] = {
            "policy": self.policy.names()[0] if self.policy.names() else None,
            "time_unit": self.unit.value,
            "duration": self.duration.value,
            "seed": None if self.seed.value is None else int(self.seed.value),
            "failures": self.failures.value,
            "corrections": bool(self.corrections.value),
            "timeout": self.timeout.value,
            "detection": self.detection.value,
            "resolution": self.resolution.value,
            "job": self.job.value,
        }
        if not what:
            raise InputError("choose an experiment or a system")
        if what.startswith(SAVED):
            return experiment_of(own=what.removeprefix(SAVED))
        if what.startswith("system "):
            chosen = system_named(what.removeprefix("system "))
            return experiment_of(system=document_of(chosen), **changes)
        return experiment_of(what, **changes)
