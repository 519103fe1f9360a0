"""A run as it goes on: machines, queues, jobs, events; paused, resumed, stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from nicegui import run as background
from nicegui import ui

from ...grid import MachineState, Queues, away_times, event_page, machine_states, queues
from ...grid.journal import Entry
from ...model import InputError
from ..desk import Desk
from ..running import open_journal
from .charts import COLOURS, draw, line_chart
from .frame import figure, tell
from .live_jobs import Jobs
from .live_machines import Machines

__all__ = ["Live"]

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

    def __init__(self, desk: Desk, number: int) -> None:
        self.desk, self.number = desk, number
        self.title = ui.label().classes("text-lg gw-steady").props("role=status")
        self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
        self.trouble = ui.label().classes("text-negative gw-steady").props("role=alert")
        with ui.row().classes("gap-2"):
            ui.button("Stop", on_click=lambda: self._do(desk.runs.stop))
            ui.button("Pause the run", on_click=lambda: self._do(desk.runs.pause)).props("outline")
            resume = ui.button("Resume the run", on_click=lambda: self._do(desk.runs.resume))
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
    words = entry.detail.split(maxsplit=1)
    return words[0] if words and entry.kind == "plan" else entry.detail[:80]


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
