"""The charts of a run's statistics, and cards that let their numbers and pictures be downloaded."""

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui

from ...experiments.result import in_full
from ...model.spreadsheet import write_table
from ...testbed import Overview
from ..documents import plain
from ..run_figures import Figure, Rows, printed_number
from .charts import COLOURS, FAINT, SHARP, download_button, download_png
from .frame import figure, heading, html_table

RESPONSE = "mean response, time units"
UP, DOWN, WHOLE = COLOURS[5], COLOURS[2], COLOURS[0]


def run_title(found: Overview) -> str:
    """Name a run, its experiment and its policy."""
    return f"Run {found.run}: {found.name or found.system} under {found.policy}"


def passed(run: Overview) -> str:
    """Write how many of its time units have passed."""
    return f"{in_full(round(run.time_units, 1))} of {in_full(run.duration)}"


def figure_card(title: str, words: str, run: Overview, data: Figure, draw: Any) -> None:
    """Show a figure with a sentence about it, and offer its numbers and its picture as files.

    ``draw`` makes the figure, and returns its element.
    """
    with ui.card().classes("w-full min-w-0"):
        heading(title)
        element = draw()
        ui.label(words).classes("gw-quiet")
        with ui.row().classes("gap-1"):
            offer_numbers(title, run, data)
            name, about = f"run-{run.run}-{data.name}.png", run_title(run)
            download_button("PNG", title, lambda: download_png(name, about, [(title, element)]))


def table_card(
    title: str, run: Overview, heads: list[str], rows: Rows, data: Figure, note: str
) -> None:
    """Show a table and a note on it, and offer its numbers as files."""
    with ui.card().classes("w-full min-w-0"):
        html_table(title, heads, rows)
        ui.label(note).classes("gw-quiet")
        with ui.row().classes("gap-1"):
            offer_numbers(title, run, data)


def offer_numbers(title: str, run: Overview, data: Figure) -> None:
    """Offer numbers as files."""
    name = f"run-{run.run}-{data.name}"
    kinds = {"CSV": _csv, "JSON": _json}
    for kind, write in kinds.items():

        def click(kind: str = kind, write: Callable[[Figure], bytes] = write) -> None:
            ui.download.content(write(data), f"{name}.{kind.lower()}")

        download_button(kind, title, click)


def _csv(data: Figure) -> bytes:
    written = io.StringIO()
    write_table(written, [data.heads, *data.rows], end="\n")
    return written.getvalue().encode()


def _json(data: Figure) -> bytes:
    return json.dumps(plain(data.records()), indent=1).encode()


def response_chart(data: Figure) -> dict[str, Any]:
    """Draw the mean response of each class, with its interval as a line."""
    names = [f"class {row[0]}" if row[0] != "all" else "all" for row in data.rows]
    bars = _bars("mean response", [row[2] for row in data.rows], WHOLE)
    lines = [[k, row[3], row[4]] for k, row in enumerate(data.rows) if row[3] is not None]
    return _bar_chart(names, RESPONSE, [bars, _whiskers("95 % interval", lines)])


def compared_chart(data: Figure) -> dict[str, Any]:
    """Draw the mean responses of the run, of its twin, and as published, beside each other."""
    names = [f"class {row[0]}" if row[0] != "overall" else "overall" for row in data.rows]
    series = []
    for k, head in enumerate(data.heads[1:], start=1):
        values = [
            printed_number(row[k]) if isinstance(row[k], str) else row[k] for row in data.rows
        ]
        series.append(_bars(head, values, COLOURS[k - 1]))
    return _bar_chart(names, RESPONSE, series)


STRIPES = {"dashArrayX": [1, 0], "dashArrayY": [2, 4], "color": "#111"}
SHADES: dict[str, tuple[str, dict[str, Any] | None]] = {
    "finished": (COLOURS[2], None),
    "lost": (COLOURS[4], {**STRIPES, "rotation": -0.785}),
    "failed": ("#b3261e", {"symbol": "triangle", "dashArrayX": [6, 6], "color": "#fff"}),
    "taken away": ("#6d3fc0", {**STRIPES, "color": "#fff"}),
    "paused": ("#ddd", {**STRIPES, "rotation": -0.785}),
    "idle": ("#bbb", None),
}
"""Colours and patterns, as in the Gantt chart: none is known by its colour alone."""


def utilisation_chart(data: Figure) -> dict[str, Any]:
    """Draw what each machine spent its time on, in per cent."""
    series = [
        {
            **_bars(head, [round(100 * row[k], 2) for row in data.rows], SHADES[head][0]),
            "itemStyle": {"decal": SHADES[head][1]} if SHADES[head][1] else {},
            "stack": "all",
        }
        for k, head in enumerate(data.heads[1:], start=1)
    ]
    found = _bar_chart([row[0] for row in data.rows], "% of the time", series)
    below = {**found["grid"], "bottom": 45}
    across = {**found["xAxis"], **_named("machine", 28)}
    return {**found, "grid": below, "xAxis": across, "yAxis": {**found["yAxis"], "max": 100}}


def waterfall_chart(data: Figure) -> dict[str, Any]:
    """Draw how each cause changes the mean response, from the twin to the run."""
    names = [row[0].partition(" (")[0] for row in data.rows]  # the rest is in the text below
    base: list[float] = []
    bars: list[dict[str, Any]] = []
    for _, change, after in data.rows:
        colour = WHOLE if change is None else UP if change > 0 else DOWN
        words = figure(after) if change is None else figure(change, "+.3g")
        before = 0.0 if change is None else after - change
        base.append(min(before, after))
        bars.append(
            {
                "value": abs(after - before),
                "itemStyle": {"color": colour},
                "label": {"show": True, "position": "right", "formatter": words, **SHARP},
            }
        )
    hidden = {"type": "bar", "stack": "all", "data": base, "silent": True}
    hidden |= {"itemStyle": {"color": "transparent"}}
    shown = {"type": "bar", "stack": "all", "data": bars}
    return {
        "animation": False,
        "grid": {"left": 150, "right": 70, "top": 10, "bottom": 45},
        "xAxis": {"type": "value", **_named(RESPONSE, 28), **FAINT},
        "yAxis": {"type": "category", "data": names, "inverse": True},
        "series": [hidden, shown],
    }


def _bars(name: str, values: Sequence[float | None], colour: str) -> dict[str, Any]:
    shown = [None if each is None or each != each else each for each in values]
    return {"name": name, "type": "bar", "data": shown, "color": colour, "barMaxWidth": 60}


def _whiskers(name: str, lines: list[list[float]]) -> dict[str, Any]:
    """Return intervals [number of the bar, low, high] as vertical lines."""
    return {
        "name": name,
        "type": "custom",
        "color": "#555",
        "encode": {"x": 0, "y": [1, 2]},
        "z": 10,
        "data": lines,
        ":renderItem": """(all, api) => {
            const [x, top] = api.coord([api.value(0), api.value(2)]);
            const bottom = api.coord([api.value(0), api.value(1)])[1];
            const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2},
                style: {stroke: "#888", lineWidth: 2}});
            return {type: "group", children: [line(x, top, x, bottom),
                line(x - 8, top, x + 8, top), line(x - 8, bottom, x + 8, bottom)]};
        }""",
    }


def _named(name: str, gap: int) -> dict[str, Any]:
    """Return the name of an axis, in its middle."""
    return {"name": name, "nameLocation": "middle", "nameGap": gap}


def _bar_chart(names: list[str], up: str, series: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "animation": False,
        "legend": {"top": 0, "type": "scroll"},
        "tooltip": {"trigger": "axis", "confine": True},
        "grid": {"left": 70, "right": 20, "top": 40, "bottom": 30},
        "xAxis": {"type": "category", "data": names},
        "yAxis": {"type": "value", **_named(up, 42), **FAINT},
        "series": series,
    }
