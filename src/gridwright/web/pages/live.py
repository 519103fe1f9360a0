"""Watch one run: its machines, queues, jobs and events; pause, resume and stop it."""

import time
from collections.abc import Callable
from typing import Any

from nicegui import events, ui
from nicegui import run as background

from ... import grid
from ...grid.journal import Journal
from ...testbed import Overview
from ..dashboard import WINDOW, Dashboard, Watcher
from ..services import Services
from .charts import (
    download_button,
    download_png,
    draw,
    failure_trace,
    make_chart,
    queue_chart,
)
from .frame import columns_of, confirmed, errors_shown, figure, heading, read_journal
from .gantt import Gantt
from .machine_tiles import Machines
from .run_charts import passed, run_title

GLANCE = 1.0
"""Seconds between two updates; more if an update takes long."""
SHARE = 0.15
"""The largest share of the time that updates may take, unless they would come too seldom."""
LONGEST = 5.0
"""Seconds between two updates at most."""


class Live:
    """The view of one run, updated about every second."""

    def __init__(self, services: Services, number: int) -> None:
        self.services, self.number = services, number
        self.title = ui.label().classes("text-lg font-bold gw-steady").props("role=status")
        self.glance = ui.html("", sanitize=False).classes("gw-stats")
        self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
        self.trouble = ui.label().classes("text-negative").props("role=alert")
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
        self.apart = ui.label(APART).classes("gw-quiet")
        with ui.card().classes("w-full"):
            self.machines = Machines(number)
        with ui.element("div").classes("w-full grid lg:grid-cols-2 gap-4"):
            with ui.card().classes("min-w-0"):
                heading(QUEUES)
                self.measure = ui.toggle(MEASURES, value="in_system").props("dense no-caps")
                self.measure.on_value_change(self._draw_queues)
                self.chart = make_chart(queue_chart([], {})).classes("h-64")
                self._offer(QUEUES, "queues", self.chart)
            with ui.card().classes("min-w-0"):
                heading("Events, the latest first (at time units since the run began)")
                self.about = ui.toggle(ABOUT, value="").props("dense no-caps")
                self.about.props('aria-label="Events about"').on_value_change(self._list_events)
                self.events = EventList()
        with ui.card().classes("w-full"):
            heading(LAST)
            self.window = ui.label().classes("gw-quiet gw-steady")
            self.gantt = Gantt("Gantt chart of the last minutes")
            self._offer(LAST, "last-minutes", self.gantt)
        with ui.card().classes("w-full"):
            self.jobs = Jobs(number)
        with ui.expansion("Failures of the whole run, also planned ones").classes("w-full") as more:
            self.trace = ui.html("", sanitize=False).classes("w-full")
        self.more = more
        self.more.on_value_change(self._show_failures)
        self.watcher = Watcher()
        self.found: grid.Queues | None = None
        self.last: Any = None
        self.timer = ui.timer(GLANCE, self.show)

    def _offer(self, title: str, name: str, element: ui.element) -> None:
        """Offer a chart as a picture, as it is shown at that moment."""
        file = f"run-{self.number}-{name}.png"

        def click() -> None:
            about = "" if self.last is None else run_title(self.last)
            download_png(file, about, [(title, element)])

        download_button("PNG", title, click)

    async def show(self) -> None:
        """Show what has changed; a thread reads the journal, which may be long."""
        begun = time.monotonic()
        found = await background.io_bound(self.services.runs.find, self.number)
        if found is None or found == self.last:
            return
        self.last = found
        for each, allowed in self.buttons.items():
            each.set_enabled(found.state in allowed)
        self.title.text = f"{run_title(found)}, {found.state}"
        self.glance.content = at_a_glance(found)
        self.apart.set_visibility(found.state in ("running", "paused", "starting"))
        self.bar.value = min(found.time_units / found.duration, 1) if found.duration else 0
        stopped = found.state in ("stopped", "unreadable")
        said = self.services.runs.said(self.number) if stopped else ""
        is_wanted = not said or " was stopped at " in said
        self.trouble.text = STOPPED.format(passed(found)) if is_wanted and stopped else said
        self.trouble.classes(replace="" if is_wanted else "text-negative")
        self.trouble.set_visibility(stopped)
        if found.state == "unreadable":
            self.title.text = f"Run {found.run} is unreadable: {found.name}"
            return
        seen = await read_journal(self.number, self.watcher.look)
        if seen is None:
            return
        can_operate = found.state in ("running", "paused")
        self._show(seen, can_operate=can_operate)
        await self.jobs.show(is_over=not can_operate)
        await self._show_failures()
        took = time.monotonic() - begun
        self.timer.interval = min(max(GLANCE, took / SHARE), LONGEST)

    def _show(self, seen: Dashboard, *, can_operate: bool) -> None:
        length = seen.now - seen.since
        seconds = length * self.watcher.unit
        window = f"the last {length:.1f} time units ({seconds:.0f} s without pauses)"
        self.machines.show(seen.tiles, window, can_operate=can_operate)
        self.window.text = f"This shows {window}. {LIMIT}"
        self.events.show(seen.events)
        names = [each.name for each in seen.tiles]
        self.gantt.show(names, list(seen.queues.in_system), seen.spans, seen.since, seen.now)
        self.found = seen.queues
        self._draw_queues()

    async def _list_events(self) -> None:
        """List the events that are wanted, without waiting for the next update."""
        self.watcher.about = self.about.value
        lines = await read_journal(self.number, self.watcher.list_events)
        if lines is not None and self.watcher.about == self.about.value:
            self.events.show(lines)

    def _draw_queues(self) -> None:
        if self.found is not None:
            draw(self.chart, queue_chart(self.found.times, getattr(self.found, self.measure.value)))

    async def _show_failures(self) -> None:
        """Show when machines failed and will fail, if somebody looks."""
        if not self.more.value or self.last is None:
            return
        seen = await read_journal(self.number, _failures)
        if seen is not None:
            names, faults, found = seen
            when = self.last.time_units, self.last.duration
            self.trace.content = failure_trace(names, faults, *when, found) or "None so far."

    async def _stop(self) -> None:
        question = f"Stop run {self.number}? Its running jobs are lost; it can be resumed."
        if await confirmed(question, "Stop it"):
            await self._do(self.services.runs.stop)

    async def _do(self, what: Callable[[int], None]) -> None:
        """Stop, pause or resume the run."""
        with errors_shown():
            await background.io_bound(what, self.number)
        await self.show()


QUEUES, LAST = "Queues: number of jobs by class", "What each machine did last"
LIMIT = f"It is at most {WINDOW:g} s, and less if very many jobs ran."


APART = (
    "The run is a process of its own: it continues while this page or its server is closed. "
    "Only Stop ends it early."
)
STOPPED = "The run was stopped after {} time units. “Resume the run” continues it."
ABOUT = {"": "all", "jobs": "jobs", "machines": "machines", "operators": "operators"}


class EventList(ui.element, component="event_list.js"):
    """A list of sentences that scrolls; only those that are new are sent."""

    def __init__(self) -> None:
        super().__init__()
        ui.add_css(EVENTS_STYLE)
        self._lines: list[str] = []
        self._props["lines"] = []
        self.classes("w-full")

    def show(self, lines: list[str]) -> None:
        """Show sentences, the latest first."""
        before, self._lines = self._lines, lines
        if lines == before:
            return
        change = changed_lines(before, lines)
        if change is None:
            self._props["lines"] = list(lines)
            self.update()
        else:
            with self._props.suspend_updates():  # they would be sent whole
                self._props["lines"] = list(lines)
            self.run_method("change", *change)


EVENTS_STYLE = """
.gw-events { height: 20rem; overflow: auto; font-variant-numeric: tabular-nums; }
.gw-events ul { margin: 0; padding-left: .2rem; list-style: none; }
"""


def changed_lines(before: list[str], after: list[str]) -> tuple[list[str], list[int]] | None:
    """Return the lines that are new at the top, and the numbers of those that have gone.

    None if the change is of another kind.

    >>> changed_lines(["b", "a", "z"], ["d", "c", "b", "z"])
    (['d', 'c'], [1])
    >>> changed_lines(["b", "a"], ["b", "new", "a"])
    """
    if not before or before[0] not in after:
        return None
    new = after.index(before[0])
    gone, at = [], new
    for number, line in enumerate(before):
        if at < len(after) and after[at] == line:
            at += 1
        else:
            gone.append(number)
    return (after[:new], gone) if at == len(after) else None


def at_a_glance(found: Overview) -> str:
    """Return the main figures of a run as HTML, large, each with its name.

    >>> from gridwright.testbed import Overview
    >>> at_a_glance(Overview(1, "running", "a", duration=9, time_units=4.5))[:73]
    '<div class="gw-stat"><b>4.5 of 9</b> <span>time units passed</span></div>'
    """
    so_far = "" if found.state == "done" else " so far"
    rows = (
        (passed(found), "time units passed"),
        (f"{found.finished:,} of {found.arrived:,}", f"jobs finished, of those submitted{so_far}"),
        (figure(found.mean_response) or "–", "time units: mean response of finished jobs"),
        (f"{found.time_unit:g} s", "length of a time unit"),
    )
    return "".join(
        f'<div class="gw-stat"><b>{value}</b> <span>{name}</span></div>' for value, name in rows
    )


MEASURES = {"in_system": "in the system", "waiting": "not sent yet"}


def _failures(journal: Journal) -> tuple[list[str], Any, grid.Interruptions]:
    about = journal.told("machines", "faults")
    return list(about.get("machines", ())), about.get("faults", []), grid.interruptions(journal)


JOB_COLUMNS = ["number", "attempt", "class", "machine", "submitted", "sent", "started", "ended"]
JOB_COLUMNS += ["stage", "timed_out", "lost", "error"]
JOB_LABELS = {"number": "id", "ended": "done", "stage": "status", "timed_out": "timed out"}
STAGES = ("", "waiting", "queued", "sent", "finished", "failed", "cancelled")
GOING = ("waiting", "queued", "sent")
TIMES = ("submitted", "sent", "started", "ended")
NEWEST = {"sortBy": "number", "descending": True}


class Jobs:
    """A table of jobs, which the database filters, sorts and divides into pages."""

    def __init__(self, number: int) -> None:
        self.number, self.is_over, self.total = number, False, 0
        heading("Jobs, the newest first (times in time units since the run began)")
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
            pagination={"rowsPerPage": 10, "page": 1, "rowsNumber": 0, **NEWEST},
        ).classes("w-full")
        self.table.props('flat dense no-data-label="No jobs match yet."')
        self.table.on("request", self._turn)
        self.table.on_pagination_change(self._count)
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

    def _count(self) -> None:
        """Set the number of jobs; a table that appears in the browser sends back the first one."""
        if self.table.pagination.get("rowsNumber") != self.total:
            self.table.pagination = {**self.table.pagination, "rowsNumber": self.total}

    def _wanted(self) -> dict[str, Any]:
        """Return which page of which jobs is asked for."""
        turned = self.table.pagination
        size = turned.get("rowsPerPage") or 100
        fields = {"stage": self.stage, "machine": self.machine, "class": self.task_class}
        return {
            "offset": (turned.get("page", 1) - 1) * size,
            "limit": size,
            "sort": turned.get("sortBy") or "number",
            "descending": bool(turned.get("descending")),
            **{key: str(field.value or "") for key, field in fields.items()},
        }

    async def show(self, *, is_over: bool | None = None) -> None:
        """Show the chosen page; after the run, jobs that have not ended are called unfinished."""
        self.is_over = self.is_over if is_over is None else is_over
        wanted = self._wanted()
        page = await read_journal(self.number, lambda journal: grid.job_page(journal, **wanted))
        if page is None or wanted != self._wanted():
            return  # another page was asked for meanwhile, and is being read
        rows = [{**job, **{key: figure(job[key], ".3f") for key in TIMES}} for job in page.jobs]
        for row in rows:
            if self.is_over and row["stage"] in GOING:
                row["stage"] = f"unfinished ({row['stage']})"
        if self.table.rows != rows:
            self.table.rows = rows
        self.total = page.total
        self._count()
