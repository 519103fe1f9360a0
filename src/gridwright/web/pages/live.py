"""Watch one run: its machines, queues, jobs and events; pause, resume and stop it."""

import time
from collections.abc import Callable
from typing import Any

from nicegui import events, ui
from nicegui import run as background

from ... import grid
from ...grid.event import Entry
from ...grid.journal import Journal
from ..runs import machines_of
from ..services import Services
from .charts import draw, failure_trace, line_chart, line_series, make_chart
from .frame import (
    columns_of,
    confirmed,
    errors_shown,
    figure,
    heading,
    offer,
    read_journal,
    tell,
)

GLANCE = 1.0
"""Seconds between two updates; more if an update takes long."""
SHARE = 0.15
"""The largest share of the time that updates may take."""


class Live:
    """The view of one run, updated about every second."""

    def __init__(self, services: Services, number: int) -> None:
        self.services, self.number = services, number
        self.title = ui.label().classes("text-lg gw-steady").props("role=status")
        self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
        self.trouble = ui.label().classes("text-negative gw-steady").props("role=alert")
        with ui.row().classes("gap-2"):
            runs = services.runs
            stop = ui.button("Stop", on_click=self._stop)
            self.buttons: dict[ui.button, tuple[str, ...]] = {
                stop: ("running", "paused", "starting")
            }
            for label, do, allowed in (
                ("Pause the run", runs.pause, ("running",)),
                ("Resume the run", runs.resume, ("paused", "stopped")),
            ):
                made = ui.button(label, on_click=lambda do=do: self._do(do)).props("outline")
                self.buttons[made] = allowed
            ui.link("Statistics of this run", f"/statistics/{number}").classes("self-center")
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 gap-4"):
            with ui.card().classes("max-w-full"):
                self.machines = Machines(number)
            with ui.card().classes("min-w-0"):
                heading("Jobs in the system; dashed: not sent yet")
                self.chart = make_chart(_chart(None)).classes("h-64")
        with ui.card().classes("w-full"):
            self.jobs = Jobs(number)
        with ui.card().classes("w-full"):
            heading("Events")
            self.events = ui.label().classes("gw-quiet whitespace-pre-wrap")
        self.last: Any = None
        self.timer = ui.timer(GLANCE, self.show)

    async def show(self) -> None:
        """Show what has changed; a thread reads the journal, which may be long."""
        begun = time.monotonic()
        found = await background.io_bound(self.services.runs.find, self.number)
        if found is None or found == self.last:
            return
        self.last = found
        for each, allowed in self.buttons.items():
            each.set_enabled(found.state in allowed)
        self.machines.enable(found.state in ("running", "paused"))
        self.title.text = (
            f"Run {found.run}: {found.name or found.system} under {found.policy}, {found.state}, "
            f"{found.time_units:.1f} of {found.duration:g} time units, {found.finished:,} of "
            f"{found.arrived:,} jobs finished, mean response {figure(found.mean_response) or '–'}"
        )
        self.bar.value = min(found.time_units / found.duration, 1) if found.duration else 0
        stopped = found.state in ("stopped", "unreadable")
        self.trouble.text = self.services.runs.said(self.number) if stopped else ""
        if found.state == "unreadable":
            self.title.text = f"Run {found.run} is unreadable: {found.name}"
            return
        seen = await read_journal(self.number, _look)
        if seen is None:
            return
        states, counts, happened, faults, away, held = seen
        trace = failure_trace(
            [each.name for each in states], faults, found.time_units, found.duration, away, held
        )
        self.machines.show(states, trace)
        self.events.text = "\n".join(map(_line, happened)) or "Nothing unusual yet."
        draw(self.chart, _chart(counts))
        await self.jobs.show()
        self.timer.interval = max(GLANCE, (time.monotonic() - begun) / SHARE)

    async def _stop(self) -> None:
        question = f"Stop run {self.number}? Its running jobs are lost; it can be resumed."
        if await confirmed(question, "Stop it"):
            await self._do(self.services.runs.stop)

    async def _do(self, what: Callable[[int], None]) -> None:
        """Stop, pause or resume the run."""
        with errors_shown():
            await background.io_bound(what, self.number)
        await self.show()


def _look(
    journal: Journal,
) -> tuple[list[grid.MachineState], grid.Queues, list[Entry], Any, Any, Any]:
    return (
        machines_of(journal),
        grid.queues(journal),
        grid.event_page(journal, limit=12, readings=False),
        journal.told("faults").get("faults", []),
        grid.away_times(journal),
        grid.held_times(journal),
    )


def _line(entry: Entry) -> str:
    words = [f"{entry.time:.2f}", entry.kind]
    if entry.machine:
        words.append(f"machine {entry.machine}")
    if entry.job is not None:
        words.append(f"job {entry.job}")
    is_plan = entry.kind == "plan"  # show only its number: its shares fill many lines
    return "  ".join([*words, str(entry.fields["number"]) if is_plan else entry.detail[:80]])


def _chart(found: grid.Queues | None) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    if found is None:
        return line_chart(series, "time units", "jobs")
    times = found.times.round(3).tolist()
    for k, name in enumerate(found.in_system):
        for counts, dashed in ((found.in_system[name], False), (found.waiting[name], True)):
            data = [list(pair) for pair in zip(times, counts.tolist(), strict=True)]
            line = {"width": 1, "type": "dashed"} if dashed else {"width": 2}
            own = line_series(f"class {name}", k, data)
            series.append({**own, "step": "end", "lineStyle": line})
    return line_chart(series, "time units", "jobs")


JOB_COLUMNS = ["number", "attempt", "class", "machine", "submitted", "sent", "started", "ended"]
JOB_COLUMNS += ["stage", "timed_out", "lost", "error"]
JOB_LABELS = {"number": "id", "ended": "done", "stage": "status", "timed_out": "timed out"}
STAGES = ("", "waiting", "queued", "sent", "finished", "failed", "cancelled")
TIMES = ("submitted", "sent", "started", "ended")


class Jobs:
    """A table of jobs, which the database filters, sorts and divides into pages."""

    def __init__(self, number: int) -> None:
        self.number = number
        heading("Jobs")
        with ui.row().classes("gap-2"):
            self.stage = ui.select(
                {each: each or "every status" for each in STAGES}, value="", label="Status"
            ).classes("w-40")
            self.machine = ui.input("Machine").props("dense debounce=250 clearable")
            self.task_class = ui.input("Class").props("dense debounce=250 clearable")
        self.table = ui.table(
            columns=columns_of(JOB_COLUMNS, JOB_LABELS, sortable=True),
            rows=[],
            row_key="number",
            pagination={"rowsPerPage": 10, "page": 1, "rowsNumber": 0, "sortBy": "number"},
        ).classes("w-full")
        self.table.props('flat dense no-data-label="No jobs match yet."')
        self.table.on("request", self._turn)
        for field in (self.stage, self.machine, self.task_class):
            field.on_value_change(self._first)

    async def _turn(self, event: events.GenericEventArguments) -> None:
        """Show another page of jobs, or another order."""
        wanted = event.args["pagination"]
        kept = {key: wanted.get(key) for key in ("page", "rowsPerPage", "sortBy", "descending")}
        self.table.pagination = {**self.table.pagination, **kept}
        await self.show()

    async def _first(self) -> None:
        self.table.pagination = {**self.table.pagination, "page": 1}
        await self.show()

    async def show(self) -> None:
        """Show the chosen page."""
        turned = self.table.pagination
        size = turned.get("rowsPerPage") or 100
        fields = {"stage": self.stage, "machine": self.machine, "class": self.task_class}
        wanted: dict[str, Any] = {
            "offset": (turned.get("page", 1) - 1) * size,
            "limit": size,
            "sort": turned.get("sortBy") or "number",
            "descending": bool(turned.get("descending")),
            **{key: str(field.value or "") for key, field in fields.items()},
        }
        page = await read_journal(self.number, lambda journal: grid.job_page(journal, **wanted))
        if page is None or turned is not self.table.pagination:
            return  # another page was asked for meanwhile
        rows = [{**job, **{key: figure(job[key], ".3f") for key in TIMES}} for job in page.jobs]
        if self.table.rows != rows:
            self.table.rows = rows
        if turned.get("rowsNumber") != page.total:
            self.table.pagination = {**turned, "rowsNumber": page.total}


MACHINE_COLUMNS = ("name", "state", "since", "running", "finished", "lost", "measured", "predicted")
MACHINE_LABELS = {"measured": "CPU there", "predicted": "CPU expected"}
VERBS = ("start", "pause", "resume", "drain", "ping", "kill")


class Machines:
    """A table of the machines, their failures, and buttons to operate them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.buttons: list[ui.button] = []
        heading("Machines")
        self.table = ui.table(
            columns=columns_of(MACHINE_COLUMNS, MACHINE_LABELS), rows=[], row_key="name"
        )
        self.table.props('flat dense no-data-label="The machines are starting."')
        self.table.style("max-height: 24rem")
        with ui.row().classes("gap-2 items-end"):
            self.machine = ui.select([], label="Machine").classes("w-40")
            for verb in VERBS:
                self._button(verb.capitalize(), verb)
            self.period = ui.number("for time units", value=1).classes("w-32")
            self._button("Fail now", "fail", self.period).props("color=negative")
            self.share = ui.number("availability", value=0.5).classes("w-28")
            self._button("Impose", "impose", self.share, self.period)
        self.trace = ui.html("", sanitize=False).classes("w-full")

    def _button(self, label: str, verb: str, *values: ui.number) -> ui.button:
        def operate() -> Any:
            return self.operate(verb, *(each.value for each in values))

        made = ui.button(label, on_click=operate).props("outline dense")
        self.buttons.append(made)
        return made

    def enable(self, can: bool) -> None:
        """Let machines be operated only while the run is going on."""
        for each in self.buttons:
            each.set_enabled(can)

    def show(self, found: list[grid.MachineState], trace: str) -> None:
        """Show the states of the machines, and their failures."""
        rows = [
            {
                **each._asdict(),
                "since": f"{each.since:.1f}",
                "running": "" if each.running is None else f"job {each.running}",
                "measured": figure(each.measured, ".2f"),
                "predicted": figure(each.predicted, ".2f"),
            }
            for each in found
        ]
        if self.table.rows != rows:
            self.table.rows = rows
        offer(self.machine, [each.name for each in found])
        self.trace.content = trace

    async def operate(self, verb: str, *values: float | None) -> None:
        """Operate the chosen machine."""
        if None in values:
            tell(f"a number is missing; {verb} needs {len(values)}")
            return
        machine = str(self.machine.value or "")
        question = (
            f"Kill machine {machine}? Its job is lost, and it stays away until it is started."
        )
        if verb == "kill" and not await confirmed(question, "Kill it"):
            return
        words = " ".join(f"{value:g}" for value in values)

        with errors_shown():
            answer = await read_journal(
                self.number, lambda journal: grid.request(journal, verb, machine, words)
            )
            said = f"{1000 * float(answer):.1f} ms" if verb == "ping" and answer else answer
            tell(f"machine {machine}: {verb}, {said}", "positive")
