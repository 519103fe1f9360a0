"""A run beside its simulated twin, and what lies between."""

from __future__ import annotations

from typing import Any, NamedTuple

from nicegui import run as background
from nicegui import ui

from ...model import InputError
from ..answer import plain
from ..reporting import report_of
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

        async def compare() -> None:
            button.disable()
            try:
                found = await background.io_bound(report_of, number)
                if found is not None:
                    place.clear()
                    with place:
                        _show(plain(found))
            except InputError as error:
                tell(error)
            button.enable()

        button = ui.button("Set beside its twin", on_click=compare)


def _show(found: dict[str, Any]) -> None:
    gap, run, twin = found["gap"], found, found["simulated"]
    if gap["relative"] is None:
        ui.label("Too few jobs have finished to set the run beside its twin.")
        return
    responses = [figure(each["mean_response"]) for each in (run, twin)]
    ui.label(
        f"Mean response {responses[0]}, of the twin {responses[1]}: "
        f"{100 * gap['relative']:+.1f} %. "
        "Twins whose jobs come a moment earlier or later have "
        f"{figure(gap['low'])} to {figure(gap['high'])}."
    )
    rows = [[cause, figure(value, "+.4f")] for cause, value in gap["shares"].items()]
    table("What the gap is made of", ["cause", "time units"], rows)
    published = found["published"]
    platforms = sorted({name for each in published.values() for name in each})
    rows = []
    of_run, of_twin = ([*each["classes"], {"name": "overall", **each}] for each in (run, twin))
    for both in zip(of_run, of_twin, strict=True):
        printed = [published.get(both[0]["name"], {}).get(each, "") for each in platforms]
        responses = [figure(each["mean_response"]) for each in both]
        rows.append([both[0]["name"], *responses, *printed])
    heads = ["class", "run", "twin", *(f"published, {name}" for name in platforms)]
    table("Mean response", heads, rows)
