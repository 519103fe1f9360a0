"""The page Run: start experiments on real processes, and list the runs."""

from datetime import datetime
from functools import partial

from fastapi import Request
from nicegui import run as background
from nicegui import ui

from ...model import InputError, System
from ...testbed import Experiment, Overview
from ..documents import document_of
from ..fields import fields_of, with_labels
from ..guard import may_run_code
from ..runs import CLUSTERS, available_machines, check_cluster, experiment_of, path_of
from ..saved import OWN, load_own, own_experiments, saved_lines
from ..services import Services
from ..summary import facts, published_experiments
from .frame import (
    Cell,
    Picker,
    errors_shown,
    figure,
    frame,
    heading,
    html_table,
    model_input,
    read_input,
    run_number,
    system_choices,
    system_named,
    tell,
)
from .live import Live
from .policy_form import CodeField, PolicyForm
from .run_charts import passed


def run_page(services: Services, request: Request) -> None:
    """Show the form that starts a run, and the runs."""
    with frame("Run"):
        with ui.card().classes("w-full"):
            Starter(services, trusted=may_run_code(request))
        heading("Runs").classes("text-lg")
        RunList(services, "/run", "No runs yet: choose an experiment and press Start.")


def watch_page(services: Services, number: str) -> None:
    """Show one run."""
    known = run_number(number)
    with frame("Run"):
        if known is None or not path_of(known).is_file():
            ui.label(f"There is no run {number[:40]}.")
            ui.link("All runs", "/run")
        else:
            Live(services, known)


HEADS = (
    "run",
    "began",
    "state",
    "experiment",
    "system",
    "policy",
    "time units",
    "jobs",
    "mean response (time units)",
)


class RunList:
    """A table of runs with links, updated every two seconds."""

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
            rows = map(self._row, found)
            html_table("", HEADS, rows) if found else ui.label(self.empty)

    def _row(self, each: Overview) -> list[Cell]:
        link = f"run {each.run}", f"{self.where}/{each.run}"
        time = passed(each)
        jobs, mean = f"{each.finished:,}", figure(each.mean_response)
        words = (each.state, each.name, each.system, each.policy)
        return [link, began_at(each), *words, time, jobs, mean]


def began_at(run: Overview) -> str:
    """Write when a run began, by the clock of the server; empty if that is unknown."""
    return datetime.fromtimestamp(run.began).isoformat(" ", "seconds") if run.began else ""


SYSTEM, SAVED = "system ", "saved "
"""Prefixes of the choices that are not experiments of the catalogue."""
AS_IT_SAYS = {"": "as the experiment says"}
BELIEFS = {"yes": "follow measurements", "no": "stay as they are"}
ASSUMED = "Rates that the policy assumes"
FIELDS = fields_of(Experiment)
FIRST = ("time_unit", "duration", "seed", "on")
USE = "Its function with @push or @pull is the policy of the run, in place of the one above."
MORE = ("timeout", "on_timeout", "detection", "resolution", "job")


class Starter:
    """The form that starts a run: an experiment, and what to change in it."""

    def __init__(self, services: Services, *, trusted: bool) -> None:
        self.services, self.trusted = services, trusted
        own = own_experiments()
        systems = system_choices()
        for name in own:
            systems.pop(f"{OWN}{name}", None)
        lines = saved_lines()
        kind = "saved experiment"
        choices = {f"{SAVED}{name}": lines[name].replace("(saved)", f"({kind})") for name in own}
        choices |= {key: f"{line} (experiment)" for key, line in published_experiments().items()}
        choices |= {f"{SYSTEM}{name}": f"{label} (system)" for name, label in systems.items()}
        label = "Experiment or system"
        self.what = Picker(choices, label, "MGST-1")
        self.what.classes("w-full max-w-3xl")
        self.about = ui.label().classes("gw-steady text-sm")
        self.policy = PolicyForm(["lpas_dg"], several=False)
        self.code = CodeField("", trusted, USE)
        with ui.row().classes("gap-4 items-start"):
            self.inputs = {key: model_input(FIELDS[key]) for key in FIRST}
            kinds = {**AS_IT_SAYS, **FIELDS["failures"].choices}
            self.failures = ui.select(kinds, label=FIELDS["failures"].label, value="")
            self.corrections = ui.select({**AS_IT_SAYS, **BELIEFS}, label="Beliefs", value="")
            for each, hint in ((self.failures, "Of machines"), (self.corrections, ASSUMED)):
                each.classes("w-56").props["hint"] = hint
        with ui.expansion("More").props("dense"), ui.row().classes("gap-2 items-end"):
            self.inputs |= {key: model_input(FIELDS[key]) for key in MORE}
        with ui.row().classes("gap-2 items-center"):
            ui.button("Start", on_click=self.start)
            ui.button("List machines", on_click=self.list_machines).props("outline dense")
            self.there = ui.label().classes("gw-quiet gw-steady").props("role=status")
        self.on_timeout = ""
        """What the chosen experiment says."""
        self.what.on_value_change(self._fill)
        self.what.on_value_change(self._describe)
        self._fill()
        ui.timer(0.01, self._describe, once=True)

    async def list_machines(self) -> None:
        """Show the available machines."""
        address = read_input(FIELDS["on"], self.inputs["on"])
        self.there.text = ""
        with errors_shown():
            if address and not self.trusted:
                raise InputError(CLUSTERS)
            found = await background.io_bound(available_machines, address) or []
            names = ", ".join(each.name for each in found) or "none"
            here = f"{names}, {found[0].processors} processors: a process for each machine"
            self.there.text = f"{len(found)} workers: {names}" if address else here

    async def start(self) -> None:
        """Start a run, and show it."""
        self.code.show_error("")
        try:
            made = await background.io_bound(self._experiment, self.what.chosen())
            if made is None:  # the server is shutting down
                return
            experiment = check_cluster(made, self.trusted)
            number = await background.io_bound(self.services.runs.start, experiment)
            ui.navigate.to(f"/run/{number}")
        except InputError as error:
            if not self.code.show_error(str(error)):
                tell(with_labels(str(error), Experiment))

    async def _describe(self) -> None:
        """Show what the chosen system is like, and which policies cannot run it."""
        what = str(self.what.value or "")
        found = await background.io_bound(facts, partial(_system_of, what)) if what else None
        if str(self.what.value or "") == what and not self.about.is_deleted:
            self.about.text, unfit = found or ("", {})
            self.policy.chosen.grey_out(unfit)

    def _fill(self) -> None:
        """Fill the form with what the chosen experiment says."""
        what = str(self.what.value or "")
        if not what or what.startswith(SYSTEM):
            return
        with errors_shown():
            own = what.startswith(SAVED)
            found = load_own(what.removeprefix(SAVED)) if own else Experiment.find(what)
            self.policy.choose(found.policy)
            for key, made in self.inputs.items():
                made.value = getattr(found, key)
            self.on_timeout = found.on_timeout
            self.failures.value = self.corrections.value = ""

    def _experiment(self, what: str) -> Experiment:
        policies = self.policy.names()
        changes = {key: read_input(FIELDS[key], made) for key, made in self.inputs.items()}
        usual = FIELDS["on_timeout"].default if what.startswith(SYSTEM) else self.on_timeout
        if changes["on_timeout"] == usual:
            changes["on_timeout"] = None  # the policy may say
        changes["policy"] = policies[0] if policies else None
        changes["code"] = self.code.text
        changes["failures"] = self.failures.value or None
        changes["corrections"] = {"yes": True, "no": False}.get(str(self.corrections.value))
        if not what:
            raise InputError("choose an experiment or a system")
        if what.startswith(SAVED):
            return experiment_of(own=what.removeprefix(SAVED), **changes)
        if what.startswith(SYSTEM):
            chosen = system_named(what.removeprefix(SYSTEM))
            return experiment_of(system=document_of(chosen), **changes)
        return experiment_of(what, **changes)


def _system_of(what: str) -> System:
    """Return the system of a choice."""
    if what.startswith(SYSTEM):
        return system_named(what.removeprefix(SYSTEM))
    own = what.startswith(SAVED)
    return (load_own(what.removeprefix(SAVED)) if own else Experiment.find(what)).system
