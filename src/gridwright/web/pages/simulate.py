"""The page Simulate: policies on one system, with means and intervals so far."""

from typing import Any

from fastapi import Request
from nicegui import run as background
from nicegui import ui

from ...model import InputError
from ..documents import document_of, plain
from ..drafts import Draft
from ..fields import fields_of, validated
from ..guard import may_run_code
from ..saved import OWN
from ..services import Services
from ..simulations import Simulation, Wanted, simulation_of
from .charts import convergence_chart, draw, make_chart, number_chart
from .frame import (
    Picker,
    columns_of,
    figure,
    frame,
    model_input,
    read_input,
    system_choices,
    system_named,
    tell,
)
from .policy_form import CodeField, PolicyForm

FIELDS = fields_of(Wanted)
NUMBERS = ("horizon", "replications", "seed")
MEASURES = ("number in system", "response time", "long-run load")
USE = "Every function with @push or @pull is simulated together with the policies above."
COLUMNS = ("policy", "replications", *MEASURES, "stability")


async def simulate_page(services: Services, request: Request) -> None:
    """Show the page with the latest simulation; only trusted users may run code.

    A reload keeps the form.
    """
    client = ui.context.client
    await client.connected()
    if client.is_deleted:  # the browser never opened the page
        return
    with frame("Simulate"):
        Simulator(services, Draft(client.tab_id or ""), trusted=may_run_code(request))


class Simulator:
    """The form and the results."""

    def __init__(self, services: Services, draft: Draft, *, trusted: bool) -> None:
        self.services, self.draft, self.trusted = services, draft, trusted
        latest = services.queue.all(Simulation)
        self.shown: Simulation | None = latest[0] if latest else None
        with ui.card().classes("w-full"):
            self._form()
        with ui.card().classes("w-full"):
            self.state = ui.label().classes("gw-steady").props("role=status")
            self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
            columns = columns_of(COLUMNS, align="right")
            columns[0]["align"] = "left"
            self.table = ui.table(columns=columns, rows=[], row_key="policy").classes("w-full")
            self.table.props('flat dense no-data-label="Choose policies and press Start."')
            with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 gap-4"):
                self.chart = make_chart(convergence_chart({})).classes("h-72")
                self.numbers = make_chart(number_chart({})).classes("h-72")
            self.words = ui.column().classes("gap-0")
        self.show()
        ui.timer(0.5, self.show)

    def _form(self) -> None:
        self.system = Picker(system_choices(), "System", "2.B")
        self.system.classes("w-full max-w-3xl")
        self.policies = PolicyForm(["mct", "lpas"])
        kept = self.draft.get("simulate") or {}
        code = kept.get("code", "" if self.shown is None else self.shown.wanted.code)
        self.code = CodeField(code, self.trusted, USE)
        with ui.row().classes("gap-2 items-end"):
            self.inputs = {key: model_input(FIELDS[key]) for key in NUMBERS}
        self._restore()
        with ui.row().classes("gap-2"):
            ui.button("Start", on_click=self.start)
            ui.button("Stop", on_click=self.stop).props("outline")

    def _restore(self) -> None:
        """Fill the form as it was before a reload, and remember it from now on."""
        kept = self.draft.get("simulate") or {}
        if kept.get("system") in self.system.options:
            self.system.value = kept["system"]
        if "policies" in kept:
            self.policies.choose(*map(str, kept["policies"]))
        for key, made in self.inputs.items():
            if key in kept:
                made.value = kept[key]
        ui.timer(0.5, self._remember)

    def _remember(self) -> None:
        self.draft["simulate"] = {
            "system": self.system.value,
            "policies": self.policies.names(),
            "code": self.code.text,
            **{key: made.value for key, made in self.inputs.items()},
        }

    async def start(self) -> None:
        """Start a simulation."""
        self.code.show_error("")
        try:
            name = self.system.chosen()
            own = not name or name.startswith(OWN)
            given = {
                "system": document_of(system_named(name)) if own else name,
                "policies": tuple(self.policies.names()),
                "code": self.code.text,
                **{key: read_input(FIELDS[key], each) for key, each in self.inputs.items()},
            }
            made = await background.io_bound(simulation_of, validated(Wanted, given))
            if made is not None:  # else the server is shutting down
                self.shown = self.services.queue.start(made)
                self.words.clear()
                self.show()
        except InputError as error:
            if not self.code.show_error(str(error)):
                tell(error)

    def stop(self) -> None:
        """Stop the simulation."""
        if self.shown is None or self.shown.is_over:
            tell("no simulation is running", "info")
        else:
            self.services.queue.stop(self.shown)

    def show(self) -> None:
        """Show the results so far."""
        found = self.shown
        if found is None:
            self.state.text = "No simulation yet: choose a system and policies, then press Start."
            return
        progress = plain(found.progress())
        system = found.system.name or "the system"
        self.state.text = f"{system}, {found.horizon:g} time units, {progress['state']}" + (
            f": {found.error}" if found.error else ""
        )
        self.bar.value = round(progress["share"], 3)
        rows = [_row(each) for each in progress["policies"]]
        if self.table.rows != rows:
            self.table.rows = rows
            settled = {each["policy"] for each in progress["policies"] if _has_means(each)}
            history = {k: v for k, v in plain(found.convergence()).items() if k in settled}
            draw(self.chart, convergence_chart(history))
            draw(self.numbers, number_chart(plain(found.numbers())))
        if found.is_over and not self.words.default_slot.children:
            self._conclude(found)

    def _conclude(self, found: Simulation) -> None:
        self.code.show_error(found.error)
        with self.words:
            if found.comparison is None:
                tasks = sum(result.tasks for result in found.results.values())
                ui.label(f"{found.state} after {tasks:,} tasks")
                return
            for each in found.comparison.ranked_differences:
                ui.label(each.sentence)
            for line in found.comparison.conclusions:
                ui.label(line).classes("font-bold")


def _row(line: dict[str, Any]) -> dict[str, str]:
    load = line.get("long_run_load")
    return {
        "policy": line["policy"],
        "replications": str(line["replications"]),
        "number in system": _interval(line, "mean_number"),
        "response time": _interval(line, "mean_response"),
        "long-run load": "" if load is None else f"{100 * load:.1f} %",
        "stability": line.get("verdict", ""),
    }


def _has_means(line: dict[str, Any]) -> bool:
    """Tell whether a policy has means: those of an unstable one are only as long as the run."""
    return line.get("stable") is not False


def _interval(line: dict[str, Any], measure: str) -> str:
    """Write a mean and its interval; nothing if the policy is unstable, as it would mislead."""
    found = line.get(measure)
    if found is None:
        return ""
    if not _has_means(line):
        return "grows"
    if found["low"] is None:
        return figure(found["mean"])
    return f"{figure(found['mean'])} ({figure(found['low'])}, {figure(found['high'])})"
