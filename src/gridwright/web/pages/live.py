"""A run as it goes on: machines, queues, jobs, events; paused, resumed, stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from nicegui import events, ui
from nicegui import run as background

from ...grid import (
    JobPage,
    MachineState,
    Queues,
    away_times,
    event_page,
    job_page,
    machine_states,
    queues,
    request,
)
from ...grid.event import Entry
from ...model import GridwrightError, InputError
from ..runs import open_journal
from ..services import Services
from .charts import COLOURS, draw, failure_trace, line_chart
from .frame import figure, tell

GLANCE = 1.0
"""Seconds between looks at a run; more, where a look takes long."""
SHARE = 0.15
"""The share of the time that may be spent on looking."""


class _Seen(NamedTuple):
    """What a look at a journal shows."""

    machines: list[MachineState]
    queues: Queues
    events: list[Entry]
    faults: list[list[float]]
    away: dict[str, list[tuple[float, float]]]


class Live:
    """One run, looked at every second; it goes on whether anybody looks or not."""

    def __init__(self, services: Services, number: int) -> None:
        self.services, self.number = services, number
        self.title = ui.label().classes("text-lg gw-steady").props("role=status")
        self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
        self.trouble = ui.label().classes("text-negative gw-steady").props("role=alert")
        with ui.row().classes("gap-2"):
            ui.button("Stop", on_click=lambda: self._do(services.runs.stop))
            ui.button("Pause the run", on_click=lambda: self._do(services.runs.pause)).props(
                "outline"
            )
            resume = ui.button("Resume the run", on_click=lambda: self._do(services.runs.resume))
            resume.props("outline")
            ui.link("Statistics of this run", f"/statistics/{number}").classes("self-center")
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 gap-4"):
            with ui.card().classes("max-w-full"):
                self.machines = Machines(number)
            with ui.card().classes("min-w-0"):
                ui.label("Jobs in the system; dashed: not sent yet").props(
                    "role=heading aria-level=2"
                )
                self.chart = ui.echart(_chart(None)).classes("w-full h-64")
        with ui.card().classes("w-full"):
            self.jobs = Jobs(number)
        with ui.card().classes("w-full"):
            ui.label("Events").props("role=heading aria-level=2")
            self.events = ui.label().classes("gw-quiet whitespace-pre-wrap")
        self.last: Any = None
        self.timer = ui.timer(GLANCE, self.show)

    async def show(self) -> None:
        """Look at the run, and show what has changed; a long journal is read beside all else."""
        begun = time.monotonic()
        found = await background.io_bound(self.services.runs.find, self.number)
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
        self.trouble.text = self.services.runs.said(self.number) if stopped else ""
        if found.state == "unreadable":
            self.title.text = f"Run {found.run} is unreadable: {found.name}"
            return
        seen = await background.io_bound(self._look)
        if seen is None:
            return
        time_now, end = found.time_units, found.duration
        self.machines.show(seen.machines, seen.faults, seen.away, time_now, end)
        self.events.text = "\n".join(map(_line, seen.events)) or "Nothing unusual yet."
        draw(self.chart, _chart(seen.queues))
        await self.jobs.show()
        self.timer.interval = max(GLANCE, (time.monotonic() - begun) / SHARE)

    def _look(self) -> _Seen:
        with open_journal(self.number) as journal:
            return _Seen(
                machine_states(journal),
                queues(journal),
                event_page(journal, limit=12, readings=False),
                journal.told("faults").get("faults", []),
                away_times(journal),
            )

    async def _do(self, what: Callable[[int], None]) -> None:
        """Stop, pause or resume the run."""
        try:
            await background.io_bound(what, self.number)
        except InputError as error:
            tell(error)
        await self.show()


def _line(entry: Entry) -> str:
    words = [f"{entry.time:.2f}", entry.kind]
    if entry.machine:
        words.append(f"machine {entry.machine}")
    if entry.job is not None:
        words.append(f"job {entry.job}")
    return "  ".join([*words, _detail(entry)])


def _detail(entry: Entry) -> str:
    """Say more of an event; of a plan only its number, as its shares fill many lines."""
    return str(entry.fields["number"]) if entry.kind == "plan" else entry.detail[:80]


def _chart(found: Queues | None) -> dict[str, Any]:
    series = []
    times = [] if found is None else found.times.round(3).tolist()
    for k, name in enumerate([] if found is None else found.in_system):
        assert found is not None
        for counts, dashed in ((found.in_system[name], False), (found.waiting[name], True)):
            data = [list(pair) for pair in zip(times, counts.tolist(), strict=True)]
            series.append(
                {
                    "name": f"class {name}",
                    "type": "line",
                    "step": "end",
                    "showSymbol": False,
                    "data": data,
                    "color": COLOURS[k % len(COLOURS)],
                    "lineStyle": {"width": 1, "type": "dashed"} if dashed else {"width": 2},
                }
            )
    return line_chart(series, "time units", "jobs")


JOB_COLUMNS = {
    "number": "id",
    "attempt": "attempt",
    "class": "class",
    "machine": "machine",
    "submitted": "submitted",
    "sent": "sent",
    "started": "started",
    "ended": "done",
    "stage": "status",
    "timed_out": "timed out",
    "lost": "lost",
    "error": "error",
}
STAGES = ("", "waiting", "queued", "sent", "finished", "failed", "cancelled")
TIMES = ("submitted", "sent", "started", "ended")


class Jobs:
    """A table of jobs that is filtered, sorted and turned over by the database."""

    def __init__(self, number: int) -> None:
        self.number = number
        ui.label("Jobs").props("role=heading aria-level=2")
        with ui.row().classes("gap-2"):
            self.stage = ui.select(
                {each: each or "every status" for each in STAGES}, value="", label="Status"
            ).classes("w-40")
            self.machine = ui.input("Machine").props("dense debounce=250 clearable")
            self.task_class = ui.input("Class").props("dense debounce=250 clearable")
        columns = [{**each, "sortable": True} for each in columns_of(JOB_COLUMNS)]
        self.table = ui.table(
            columns=columns,
            rows=[],
            row_key="number",
            pagination={"rowsPerPage": 10, "page": 1, "rowsNumber": 0, "sortBy": "number"},
        ).classes("w-full")
        self.table.props('flat dense no-data-label="No job is like that yet."')
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
        """Show the page that is wanted, as it is now."""
        turned = self.table.pagination
        size = turned.get("rowsPerPage") or 100
        fields = {"stage": self.stage, "machine": self.machine, "class": self.task_class}
        filters = {key: str(field.value or "") for key, field in fields.items()}

        def look() -> JobPage:
            with open_journal(self.number) as journal:
                return job_page(
                    journal,
                    offset=(turned.get("page", 1) - 1) * size,
                    limit=size,
                    sort=turned.get("sortBy") or "number",
                    descending=bool(turned.get("descending")),
                    **filters,
                )

        page = await background.io_bound(look)
        if page is None or turned is not self.table.pagination:
            return  # another page was asked for meanwhile
        rows = [{**job, **{key: figure(job[key], ".3f") for key in TIMES}} for job in page.jobs]
        if self.table.rows != rows:
            self.table.rows = rows
        if turned.get("rowsNumber") != page.total:
            self.table.pagination = {**turned, "rowsNumber": page.total}


def columns_of(labels: dict[str, str]) -> list[dict[str, Any]]:
    """Say how the columns of a table are called."""
    return [
        {"name": name, "label": label, "field": name, "align": "left"}
        for name, label in labels.items()
    ]


MACHINE_COLUMNS = {
    "name": "name",
    "state": "state",
    "since": "since",
    "running": "running",
    "finished": "finished",
    "lost": "lost",
    "measured": "CPU there",
    "predicted": "CPU expected",
}
VERBS = ("start", "pause", "resume", "drain", "ping", "kill")


class Machines:
    """A table of the machines, their failures, and what may be asked of one of them."""

    def __init__(self, number: int) -> None:
        self.number = number
        ui.label("Machines").props("role=heading aria-level=2")
        self.table = ui.table(columns=columns_of(MACHINE_COLUMNS), rows=[], row_key="name")
        self.table.props('flat dense no-data-label="The machines are coming up."')
        self.table.style("max-height: 24rem")
        with ui.row().classes("gap-2 items-end"):
            self.machine = ui.select([], label="Machine").classes("w-40")
            for verb in VERBS:
                button = ui.button(verb.capitalize(), on_click=lambda verb=verb: self.operate(verb))
                button.props("outline dense")
            self.period = ui.number("for time units", value=1).classes("w-32")
            fail = ui.button("Fail now", on_click=lambda: self.operate("fail", self.period.value))
            fail.props("outline dense color=negative")
            self.share = ui.number("availability", value=0.5).classes("w-28")
            impose = ui.button(
                "Impose",
                on_click=lambda: self.operate("impose", self.share.value, self.period.value),
            )
            impose.props("outline dense")
        self.trace = ui.html("", sanitize=False).classes("w-full")

    def show(
        self,
        found: list[MachineState],
        faults: list[list[float]],
        away: dict[str, list[tuple[float, float]]],
        now: float,
        end: float,
    ) -> None:
        """Show how the machines are; their failures so far, and those that are planned."""
        rows = []
        for each in found:
            row = each._asdict()
            row["since"] = f"{each.since:.1f}"
            row["running"] = "" if each.running is None else f"job {each.running}"
            row["measured"] = figure(each.measured, ".2f")
            row["predicted"] = figure(each.predicted, ".2f")
            rows.append(row)
        if self.table.rows != rows:
            self.table.rows = rows
        names = [each.name for each in found]
        if self.machine.options != names:
            self.machine.set_options(names, value=names[0] if names else None)
        drawn = failure_trace(names, faults, now, end, away)
        if self.trace.content != drawn:
            self.trace.content = drawn

    async def operate(self, verb: str, *values: float | None) -> None:
        """Ask something of a machine."""
        if None in values:
            tell(f"a number is missing; {verb} needs {len(values)}")
            return
        machine = str(self.machine.value or "")
        words = " ".join(f"{value:g}" for value in values)

        def ask() -> str:
            with open_journal(self.number) as journal:
                return request(journal, verb, machine, words)

        try:
            answer = await background.io_bound(ask)
            said = f"{1000 * float(answer):.1f} ms" if verb == "ping" and answer else answer
            tell(f"machine {machine}: {verb}, {said}", "positive")
        except GridwrightError as error:
            tell(error)
