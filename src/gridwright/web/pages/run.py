"""Run: an experiment on real processes, started, watched, stepped into, stopped."""

from __future__ import annotations

from nicegui import run as background
from nicegui import ui

from ...testbed import Overview
from ..desk import Desk
from ..running import path_of
from .frame import figure, frame
from .live import Live
from .starter import Starter

__all__ = ["RunList", "run_page", "watch_page"]


def run_page(desk: Desk, *, trusted: bool) -> None:
    """Show what can be run, and the runs that there are."""
    with frame("Run"):
        with ui.card().classes("w-full"):
            Starter(desk, trusted=trusted)
        ui.label("Runs").classes("text-lg").props("role=heading aria-level=2")
        RunList(desk, "/run", "No runs yet: choose an experiment and press Start.")


def watch_page(desk: Desk, number: int) -> None:
    """Show a run as it goes on."""
    with frame("Run"):
        if not path_of(number).is_file():
            ui.label(f"There is no run {number}.")
            ui.link("All runs", "/run")
        else:
            Live(desk, number)


HEADS = ("run", "state", "experiment", "system", "policy", "time units", "jobs", "mean response")


class RunList:
    """The runs, each with a link; looked at every now and then, beside all else."""

    def __init__(self, desk: Desk, where: str, empty: str) -> None:
        self.desk, self.where, self.empty = desk, where, empty
        self.shown: list[Overview] | None = None
        self.place = ui.column().classes("w-full")
        ui.timer(2.0, self.show)

    async def show(self) -> None:
        """Show the runs, if anything has changed."""
        found = await background.io_bound(self.desk.runs.all)
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
