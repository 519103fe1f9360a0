"""A run as it goes on: machines, queues, jobs, events, and an operator's buttons."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui
from nicegui import run as background

from ...grid import (
    JobPage,
    MachineState,
    Queues,
    event_page,
    job_page,
    machine_states,
    queues,
    request,
)
from ...grid.journal import Entry
from ...grid.paging import JOB_COLUMNS
from ...model import InputError
from ..desk import Desk
from ..running import open_journal
from .frame import figure, tell
from .simulate import COLOURS, line_chart
from .trace import failure_trace

__all__ = ["Live"]

MACHINES = ("name", "state", "since", "running", "finished", "lost", "availability")
VERBS = ("pause", "resume", "drain", "ping", "kill")


class Live:
    """One run, looked at every second; it goes on whether anybody looks or not."""

    def __init__(self, desk: Desk, number: int) -> None:
        self.desk, self.number = desk, number
        self.title = ui.label().classes("text-lg gw-steady").props("role=status")
        self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
        self.trouble = ui.label().classes("text-negative gw-steady").props("role=alert")
        with ui.row().classes("gap-2"):
            ui.button("Stop", on_click=self.stop)
            ui.button("Resume the run", on_click=self.resume).props("outline")
            ui.link("Statistics of this run", f"/statistics/{number}").classes("self-center")
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 gap-4"):
            with ui.card().classes("max-w-full"):
                self._machines()
            with ui.card().classes("min-w-0"):
                ui.label("Jobs in the system").props("role=heading aria-level=2")
                self.chart = ui.echart(_chart({}, [])).classes("w-full h-64")
        with ui.card().classes("w-full"):
            self._jobs()
        with ui.card().classes("w-full"):
            ui.label("Events").props("role=heading aria-level=2")
            self.events = ui.column().classes("gap-0 gw-quiet")
            self.said: list[str] = []
        self.last: Any = None
        ui.timer(1.0, self.show)

    def _machines(self) -> None:
        ui.label("Machines").props("role=heading aria-level=2")
        self.machines = ui.table(columns=_columns(MACHINES), rows=[], row_key="name")
        self.machines.props('flat dense no-data-label="The machines are coming up."')
        self.machines.style("max-height: 24rem")
        with ui.row().classes("gap-2 items-end"):
            self.machine = ui.select([], label="Machine").classes("w-40")
            for verb in VERBS:
                label = verb.capitalize()
                ui.button(label, on_click=lambda verb=verb: self.operate(verb)).props(
                    "outline dense"
                )
            self.period = ui.number("for time units", value=1, min=0).classes("w-32")
            ui.button("Fail now", on_click=lambda: self.operate("fail", self.period.value)).props(
                "outline dense color=negative"
            )
            self.share = ui.number("availability", value=0.5, min=0, max=1).classes("w-28")
            impose = ui.button(
                "Impose",
                on_click=lambda: self.operate("impose", self.share.value, self.period.value),
            )
            impose.props("outline dense")
        self.trace = ui.html("", sanitize=False).classes("w-full")

    def _jobs(self) -> None:
        ui.label("Jobs").props("role=heading aria-level=2")
        stages = ["", "waiting", "queued", "sent", "finished", "failed", "cancelled"]
        with ui.row().classes("gap-2"):
            self.stage = ui.select(
                {each: each or "every stage" for each in stages}, value="", label="Stage"
            ).classes("w-40")
            self.only = ui.input("Machine").props("dense debounce=250 clearable")
        columns = [{**each, "sortable": True} for each in _columns(JOB_COLUMNS)]
        self.jobs = ui.table(
            columns=columns,
            rows=[],
            row_key="number",
            pagination={"rowsPerPage": 10, "page": 1, "rowsNumber": 0, "sortBy": "number"},
        ).classes("w-full")
        self.jobs.props('flat dense no-data-label="No job is like that yet."')
        self.jobs.on("request", self._turn)
        self.stage.on_value_change(self._first)
        self.only.on_value_change(self._first)

    async def _turn(self, event: events.GenericEventArguments) -> None:
        """Show another page of jobs, or another order."""
        wanted = event.args["pagination"]
        kept = {key: wanted.get(key) for key in ("page", "rowsPerPage", "sortBy", "descending")}
        self.jobs.pagination = {**self.jobs.pagination, **kept}
        await self._show_jobs()

    async def _first(self) -> None:
        self.jobs.pagination = {**self.jobs.pagination, "page": 1}
        await self._show_jobs()

    async def show(self) -> None:
        """Look at the run, and show what has changed; a long journal is read beside all else."""
        found = await background.io_bound(self.desk.runs.find, self.number)
        if found is None or found == self.last:
            return
        self.last = found
        self.title.text = (
            f"Run {found.run}: {found.name or found.system} under {found.policy}, {found.state}, "
            f"{found.time_units:.1f} of {found.duration:g} time units, {found.finished:,} of "
            f"{found.arrived:,} jobs finished, mean response {figure(found.mean_response) or '–'}"
        )
        self.bar.value = min(found.time_units / found.duration, 1) if found.duration else 0
        stopped = found.state in ("stopped", "unreadable")
        self.trouble.text = self.desk.runs.said(self.number) if stopped else ""
        if found.state == "unreadable":
            self.title.text = f"Run {found.run} is unreadable: {found.name}"
            return
        seen = await background.io_bound(self._look)
        if seen is None:
            return
        machines, drawn, happened, faults = seen
        names = [each.name for each in machines]
        self.trace.content = failure_trace(names, faults, found.time_units, found.duration)
        self._show_machines(machines)
        self._show_events(happened)
        lines = {name: counts.tolist() for name, counts in drawn.in_system.items()}
        self.chart.options.clear()
        self.chart.options.update(_chart(lines, drawn.times.round(3).tolist()))
        self.chart.update()
        await self._show_jobs()

    def _look(self) -> tuple[list[MachineState], Queues, list[Entry], list[Any]]:
        with open_journal(self.number) as journal:
            faults = journal.told("faults").get("faults", [])
            happened = event_page(journal, limit=12)
            return machine_states(journal), queues(journal), happened, faults

    def _show_machines(self, found: list[Any]) -> None:
        rows = []
        for each in found:
            row = each._asdict()
            row["since"] = f"{each.since:.1f}"
            row["running"] = "" if each.running is None else f"job {each.running}"
            row["availability"] = figure(each.availability, ".2f")
            rows.append(row)
        if self.machines.rows != rows:
            self.machines.rows = rows
        names = [each.name for each in found]
        if self.machine.options != names:
            self.machine.set_options(names, value=names[0] if names else None)

    async def _show_jobs(self) -> None:
        turned = self.jobs.pagination
        size = turned.get("rowsPerPage") or 100
        stage, machine = str(self.stage.value or ""), str(self.only.value or "")

        def look() -> JobPage:
            with open_journal(self.number) as journal:
                return job_page(
                    journal,
                    offset=(turned.get("page", 1) - 1) * size,
                    limit=size,
                    sort=turned.get("sortBy") or "number",
                    descending=bool(turned.get("descending")),
                    stage=stage,
                    machine=machine,
                )

        page = await background.io_bound(look)
        if page is None or turned is not self.jobs.pagination:
            return  # another page was asked for meanwhile
        times = ("submitted", "sent", "started", "ended")
        rows = [{**job, **{key: figure(job[key], ".3f") for key in times}} for job in page.jobs]
        if self.jobs.rows != rows:
            self.jobs.rows = rows
        if turned.get("rowsNumber") != page.total:
            self.jobs.pagination = {**turned, "rowsNumber": page.total}

    def _show_events(self, found: list[Any]) -> None:
        lines = [
            f"{each.time:.2f}  {each.kind}"
            + (f"  machine {each.machine}" if each.machine else "")
            + (f"  job {each.job}" if each.job is not None else "")
            + f"  {_detail(each)}"
            for each in found
        ]
        if lines != self.said:
            self.said = lines
            self.events.clear()
            with self.events:
                for line in lines:
                    ui.label(line)

    async def operate(self, verb: str, *values: float | None) -> None:
        """Ask something of a machine."""
        machine = str(self.machine.value or "")
        words = " ".join(f"{value:g}" for value in values if value is not None)

        def ask() -> str:
            with open_journal(self.number) as journal:
                return request(journal, verb, machine, words)

        try:
            answer = await background.io_bound(ask)
            said = f"{1000 * float(answer):.1f} ms" if verb == "ping" and answer else answer
            tell(f"machine {machine}: {verb}, {said}", "positive")
        except InputError as error:
            tell(error)

    async def stop(self) -> None:
        """Stop the run; it can be resumed."""
        try:
            await background.io_bound(self.desk.runs.stop, self.number)
        except InputError as error:
            tell(error)
        await self.show()

    async def resume(self) -> None:
        """Go on with it."""
        try:
            await background.io_bound(self.desk.runs.resume, self.number)
        except InputError as error:
            tell(error)
        await self.show()


def _detail(entry: Entry) -> str:
    """Say more of an event; of a plan only its number, as its shares fill many lines."""
    words = entry.detail.split(maxsplit=1)
    return words[0] if words and entry.kind == "plan" else entry.detail[:80]


def _columns(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"name": name, "label": name.replace("_", " "), "field": name, "align": "left"}
        for name in names
    ]


def _chart(lines: dict[str, list[int]], times: list[float]) -> dict[str, Any]:
    series = [
        {
            "name": f"class {name}",
            "type": "line",
            "step": "end",
            "showSymbol": False,
            "data": [list(pair) for pair in zip(times, counts, strict=True)],
            "color": COLOURS[k % len(COLOURS)],
        }
        for k, (name, counts) in enumerate(lines.items())
    ]
    return line_chart(series, "time units", "jobs")
