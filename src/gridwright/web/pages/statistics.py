"""Statistics: what past runs came to, by class and by machine, and beside their twins."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nicegui import run as background
from nicegui import ui

from ...grid import statistics
from ...grid.statistics import Figures
from ...model import InputError
from ...testbed import Report, Run, actual_rates, report
from ..desk import Desk
from ..running import open_journal
from .frame import figure, frame, tell
from .run import run_list

__all__ = ["one_page", "statistics_page"]

MOST_COMPARED = 8
FIGURES = ("waiting", "communication", "execution", "notification", "response")


def statistics_page(desk: Desk) -> None:
    """List the runs."""
    with frame("Statistics"):
        empty = "No runs yet: start one on the page Run, and read it off here."
        run_list(desk, "/statistics", empty)
        known = {
            each.run: f"run {each.run}: {each.name}, {each.policy}" for each in desk.runs.all()
        }
        if len(known) > 1:
            chosen = ui.select(known, label="Compare runs", multiple=True).classes(
                "w-96 max-w-full"
            )
            place = ui.column().classes("w-full")
            chosen.props("use-chips").on_value_change(lambda: _compare(chosen.value, place))


def _compare(numbers: list[int], place: ui.column) -> None:
    """Set runs beside each other, class by class."""
    place.clear()
    found = {}
    for number in sorted(numbers)[:MOST_COMPARED]:
        try:
            with open_journal(number) as journal:
                found[number] = statistics(journal)
        except InputError as error:
            tell(error)
    names = dict.fromkeys(name for each in found.values() for name in each.classes)
    rows = [
        [name, *(_response(each.classes.get(name)) for each in found.values())] for name in names
    ]
    rows.append(["all", *(_response(each.overall) for each in found.values())])
    with place:
        if found:
            heads = ["class", *(f"run {number}" for number in found)]
            _table("Mean response (jobs finished)", heads, rows)


def _response(figures: Figures | None) -> str:
    return "" if figures is None else f"{figure(figures.response) or '–'} ({figures.finished})"


def one_page(desk: Desk, number: int) -> None:
    """Show what a run came to."""
    with frame("Statistics"):
        ui.link("All runs", "/statistics")
        found = desk.runs.find(number)
        if found is None or found.state == "unreadable":
            ui.label(f"There is no run {number} that can be read.")
            return
        began = datetime.fromtimestamp(found.began).isoformat(" ", "seconds")
        ui.label(f"Run {number}: {found.name or found.system} under {found.policy}").classes(
            "text-lg"
        )
        ui.label(
            f"Began {began}; {found.time_units:.1f} of {found.duration:g} time units of "
            f"{found.time_unit:g} s; {found.state}"
        )
        with ui.row().classes("gap-4"):
            ui.link("Export as CSV (zip)", f"/api/runs/{number}/export").props("download")
            ui.link("Watch", f"/run/{number}")
        try:
            with Run.find(number) as run:
                _classes(run)
                _rates(run)
        except InputError as error:
            ui.label(str(error))
            return
        _gap(number)


def _classes(run: Run) -> None:
    found, rates = run.statistics(), run.system.arrival_rates
    heads = ["class", "jobs", "finished", "unfinished", "lost", "timed out"]
    heads += ["arrivals desired", "actual", *FIGURES]
    rows = []
    named = [*found.classes.items(), ("all", found.overall)]
    for (name, each), rate in zip(named, [*rates, rates.sum()], strict=True):
        counts = (each.arrived, each.finished, each.unfinished, each.lost, each.timed_out)
        means = [figure(getattr(each, key)) for key in FIGURES]
        rows.append([name, *map(str, counts), f"{rate:.4g}", figure(each.arrival_rate), *means])
    _table("By class (times in time units)", heads, rows)


def _rates(run: Run) -> None:
    actual = actual_rates(run)
    names = list(run.about["machines"])
    rows = [
        [
            name,
            *(
                f"{run.system.effective[i, j]:.4g} / {figure(actual[i, j]) or '–'}"
                for j in range(len(names))
            ),
        ]
        for i, name in enumerate(run.system.classes)
    ]
    _table("Execution rates: desired / actual", ["class", *names], rows)


def _gap(number: int) -> None:
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
                        _show_gap(found)
            except (InputError, ZeroDivisionError) as error:
                tell(error)
            button.enable()

        button = ui.button("Set beside its twin", on_click=compare)


def _show_gap(found: Report) -> None:
    gap = found.gap
    ui.label(
        f"Mean response {gap.run:.4g}, of the twin {gap.twin:.4g}: {100 * gap.relative:+.1f} %."
    )
    rows = [[cause, f"{value:+.4f}"] for cause, value in gap.shares.items()]
    _table("What the gap is made of", ["cause", "time units"], rows)


def _table(title: str, heads: list[str], rows: list[list[Any]]) -> None:
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
