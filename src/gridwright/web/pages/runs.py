"""Run: an experiment on real processes, started, watched, stepped into, stopped."""

from __future__ import annotations

from typing import Any

from nicegui import run as background
from nicegui import ui

from ...catalogue import experiment_names
from ...model import InputError
from ...testbed import Experiment, Overview
from ..documents import document_of
from ..runs import CLUSTERS, available_machines, check_cluster, experiment_of, path_of
from ..saved import load_own, own_experiments
from ..services import Services
from .frame import figure, frame, system_choices, system_named, tell, whole
from .live import Live
from .policy_form import PolicyForm

__all__ = [
    "RunList",
    "Starter",
    "run_page",
    "watch_page",
]


def run_page(services: Services, *, trusted: bool) -> None:
    """Show what can be run, and the runs that there are."""
    with frame("Run"):
        with ui.card().classes("w-full"):
            Starter(services, trusted=trusted)
        ui.label("Runs").classes("text-lg").props("role=heading aria-level=2")
        RunList(services, "/run", "No runs yet: choose an experiment and press Start.")


def watch_page(services: Services, number: int) -> None:
    """Show a run as it goes on."""
    with frame("Run"):
        if not path_of(number).is_file():
            ui.label(f"There is no run {number}.")
            ui.link("All runs", "/run")
        else:
            Live(services, number)


HEADS = ("run", "state", "experiment", "system", "policy", "time units", "jobs", "mean response")


class RunList:
    """The runs, each with a link; looked at every now and then, beside all else."""

    def __init__(self, services: Services, where: str, empty: str) -> None:
        self.services, self.where, self.empty = services, where, empty
        self.shown: list[Overview] | None = None
        self.place = ui.column().classes("w-full")
        ui.timer(2.0, self.show)

    async def show(self) -> None:
        """Show the runs, if anything has changed."""
        found = await background.io_bound(self.services.runs.all)
        if found is None or found == self.shown:
            return
        self.shown = found
        self.place.clear()
        with self.place:
            self._table(found) if found else ui.label(self.empty)

    def _table(self, found: list[Overview]) -> None:
        with ui.element("div").classes("gw-scroll w-full"), ui.element("table").classes("gw"):
            with ui.element("tr"):
                for head in HEADS:
                    _cell(head, "th")
            for each in found:
                with ui.element("tr"):
                    with ui.element("td"):
                        ui.link(f"run {each.run}", f"{self.where}/{each.run}")
                    for text in (each.state, each.name, each.system, each.policy):
                        _cell(text)
                    _cell(f"{each.time_units:.1f} of {each.duration:g}")
                    _cell(f"{each.finished:,}")
                    _cell(figure(each.mean_response))


def _cell(text: str, kind: str = "td") -> None:
    with ui.element(kind):
        ui.label(text)


SYSTEM, SAVED = "system ", "saved "
"""How the choices begin that are no experiments of the catalogue."""
AS_IT_SAYS = {"": "as the experiment says"}


class Starter:
    """What is to be run, on what, and what is to be different from what the experiment says."""

    def __init__(self, services: Services, *, trusted: bool) -> None:
        self.services, self.trusted = services, trusted
        own = own_experiments()
        choices = {f"{SAVED}{name}": f"{name} (saved experiment)" for name in own}
        choices |= {name: f"{name} (experiment)" for name in experiment_names()}
        taken = {f"own: {name}" for name in own}
        for name, label in system_choices().items():
            if name not in taken:
                choices[f"{SYSTEM}{name}"] = f"{label} (system)"
        self.what = ui.select(
            choices, label="Experiment or system", value="MGST-1", with_input=True
        ).classes("w-full max-w-3xl")
        self.policy = PolicyForm(["lpas_dg"], central=True, several=False)
        with ui.row().classes("gap-2 items-end"):
            self.unit = ui.number("Seconds of a time unit", value=1)
            self.duration = ui.number("Time units", value=20)
            self.seed = ui.number("Seed", value=1)
            self.failures = ui.select(
                {**AS_IT_SAYS, "generated": "drawn, as the system says", "none": "none"},
                label="Failures",
                value="",
            ).classes("w-52")
            self.corrections = ui.select(
                {**AS_IT_SAYS, "yes": "follow measurements", "no": "stay as they are"},
                label="Beliefs",
                value="",
            ).classes("w-52")
        self._more()
        self._machines()
        ui.button("Start", on_click=self.start)
        self.what.on_value_change(self._fill)
        self._fill()

    def _more(self) -> None:
        with ui.expansion("More").props("dense"), ui.row().classes("gap-2 items-end"):
            self.timeout = ui.number("Time-out after n × expected (0: never)", value=0)
            self.timeout.classes("w-64")
            self.detection = ui.select(
                {"immediate": "at once", "timeout": "only by the time-out"},
                label="A failure is known",
                value="immediate",
            ).classes("w-48")
            self.resolution = ui.number("Readings every … time units (0: none)", value=0)
            self.resolution.classes("w-64")
            self.job = ui.select(
                {"wait": "sleeps", "spin": "really takes the CPU"}, label="A job", value="wait"
            ).classes("w-48")

    def _machines(self) -> None:
        with ui.row().classes("gap-2 items-end"):
            self.executor = ui.select(
                {"local": "processes of this computer", "dask": "workers of a Dask cluster"},
                label="Machines are",
                value="local",
            ).classes("w-64")
            self.address = ui.input("Address of its scheduler", placeholder="tcp://HOST:PORT")
            self.address.classes("w-64").bind_visibility_from(self.executor, "value", value="dask")
            ui.button("List machines", on_click=self.list_machines).props("outline dense")
        self.there = ui.label().classes("gw-quiet gw-steady").props("role=status")

    async def list_machines(self) -> None:
        """Show which machines there are."""
        address = str(self.address.value or "").strip()
        try:
            if self.executor.value == "dask" and not address:
                raise InputError("expected the address of a scheduler: tcp://HOST:PORT")
            wanted = address if self.executor.value == "dask" else ""
            if wanted and not self.trusted:
                raise InputError(CLUSTERS)
            found = await background.io_bound(available_machines, wanted) or []
        except InputError as error:
            self.there.text = ""
            tell(error)
            return
        if wanted:
            names = ", ".join(each.name for each in found)
            self.there.text = f"{len(found)} workers: {names or 'none'}"
        else:
            self.there.text = (
                f"{found[0].name}, {found[0].processors} processors: a process for each machine of "
                "the system"
            )

    async def start(self) -> None:
        """Start a run, and go where it can be watched."""
        try:
            experiment = check_cluster(self._experiment(), self.trusted)
            number = await background.io_bound(self.services.runs.start, experiment)
        except InputError as error:
            tell(error)
            return
        ui.navigate.to(f"/run/{number}")

    def _fill(self) -> None:
        """Fill the form with what the chosen experiment says."""
        what = str(self.what.value or "")
        try:
            if what.startswith(SAVED):
                found = load_own(what.removeprefix(SAVED))
            elif what and not what.startswith(SYSTEM):
                found = Experiment.find(what)
            else:
                return
        except InputError as error:
            tell(error)
            return
        self.policy.choose(found.policy)
        self.unit.value, self.duration.value = found.time_unit, found.duration
        self.seed.value, self.timeout.value = found.seed, found.timeout
        self.detection.value, self.resolution.value = found.detection, found.resolution
        self.job.value, self.executor.value = found.job, found.executor
        self.address.value = found.on
        self.failures.value = self.corrections.value = ""

    def _experiment(self) -> Experiment:
        what = str(self.what.value or "")
        beliefs = {"yes": True, "no": False}
        is_dask = self.executor.value == "dask"
        boxes = {
            "seconds of a time unit": self.unit,
            "time units": self.duration,
            "seed": self.seed,
            "time-out": self.timeout,
            "readings": self.resolution,
        }
        for name, box in boxes.items():
            if box.value is None:
                raise InputError(f"{name} is empty; expected a number")
        changes: dict[str, Any] = {
            "policy": self.policy.names()[0] if self.policy.names() else None,
            "time_unit": self.unit.value,
            "duration": self.duration.value,
            "seed": whole(self.seed.value, "seed"),
            "failures": self.failures.value or None,
            "corrections": beliefs.get(str(self.corrections.value)),
            "timeout": self.timeout.value,
            "detection": self.detection.value,
            "resolution": self.resolution.value,
            "job": self.job.value,
            "executor": self.executor.value,
            "address": str(self.address.value or "").strip() if is_dask else None,
        }
        if not what:
            raise InputError("choose an experiment or a system")
        if what.startswith(SAVED):
            return experiment_of(own=what.removeprefix(SAVED), **changes)
        if what.startswith(SYSTEM):
            chosen = system_named(what.removeprefix(SYSTEM))
            return experiment_of(system=document_of(chosen), **changes)
        return experiment_of(what, **changes)
