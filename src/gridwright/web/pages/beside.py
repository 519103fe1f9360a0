"""A run beside its simulated twin, and what lies between."""

from __future__ import annotations

from typing import NamedTuple

from nicegui import run as background
from nicegui import ui

from ...model import InputError
from ...testbed import Report, Run, report
from .frame import figure, tell

__all__ = ["Table", "show_gap", "table"]


class Table(NamedTuple):
    """A table as it is shown."""

    title: str
    heads: list[str]
    rows: list[list[str]]


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    """Show a table; the first column tells what a row is about."""
    with ui.element("div").classes("gw-scroll w-full"), ui.element("table").classes("gw"):
        with ui.element("caption"):
            ui.label(title)
        with ui.element("tr"):
            for head in heads:
                with ui.element("th").props("scope=col"):
                    ui.label(head)
        for row in rows:
            with ui.element("tr"):
                for k, text in enumerate(row):
                    kind = ui.element("td") if k else ui.element("th").props("scope=row")
                    with kind:
                        ui.label(text)


def show_gap(number: int) -> None:
    """Offer to set a run beside its twin; that takes a while."""
    with ui.card().classes("w-full"):
        ui.label("Beside its simulated twin").props("role=heading aria-level=2")
        place = ui.column()
        with place:
            ui.label("The same jobs and failures in virtual time: this takes a moment.")

        def work() -> Report:
            with Run.find(number) as run:
                return report(run, expected=False)

        async def compare() -> None:
            button.disable()
            try:
                found = await background.io_bound(work)
                if found is not None:
                    place.clear()
                    with place:
                        _show(found)
            except (InputError, ZeroDivisionError) as error:
                tell(error)
            button.enable()

        button = ui.button("Set beside its twin", on_click=compare)


def _show(found: Report) -> None:
    gap = found.gap
    ui.label(
        f"Mean response {gap.run:.4g}, of the twin {gap.twin:.4g}: {100 * gap.relative:+.1f} %. "
        f"Twins whose jobs come a moment earlier or later have {gap.low:.4g} to {gap.high:.4g}."
    )
    rows = [[cause, f"{value:+.4f}"] for cause, value in gap.shares.items()]
    table("What the gap is made of", ["cause", "time units"], rows)
    platforms = sorted({name for each in found.published.values() for name in each})
    rows = []
    named = [*found.statistics.classes.items(), ("overall", found.statistics.overall)]
    for name, each in named:
        twin = found.twin.overall if name == "overall" else found.twin.classes[name]
        printed = [found.published.get(name, {}).get(each, "") for each in platforms]
        rows.append([name, figure(each.response), figure(twin.response), *printed])
    heads = ["class", "run", "twin", *(f"published, {name}" for name in platforms)]
    table("Mean response", heads, rows)
