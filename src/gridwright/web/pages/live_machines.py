"""The machines of a run: how they are, when they fail, and an operator's buttons."""

from __future__ import annotations

from nicegui import run as background
from nicegui import ui

from ...grid import MachineState, request
from ...model import InputError
from ..running import open_journal
from .frame import figure, tell
from .live_jobs import columns_of
from .trace import failure_trace

__all__ = ["Machines"]

COLUMNS = {
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
        self.table = ui.table(columns=columns_of(COLUMNS), rows=[], row_key="name")
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
        except InputError as error:
            tell(error)
