"""Charts of lines, as the pages draw them."""

from __future__ import annotations

from typing import Any

from nicegui import ui

__all__ = ["COLOURS", "convergence_chart", "draw", "line_chart", "number_chart"]

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Colours that colour-blind people tell apart."""


def draw(chart: ui.echart, options: dict[str, Any]) -> None:
    """Draw a chart anew."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def convergence_chart(history: dict[str, list[list[float | None]]]) -> dict[str, Any]:
    """Draw means against replications, with their intervals as thin lines."""
    series = []
    for k, (policy, points) in enumerate(history.items()):
        for column in (1, 2, 3):
            line = {"width": 3} if column == 1 else {"width": 1, "type": "dashed"}
            data = [[point[0], point[column]] for point in points]
            series.append({**_line(policy, k, data), "lineStyle": line})
    return line_chart(series, "replications", "response time", scale=True)


def number_chart(numbers: dict[str, list[list[float]]]) -> dict[str, Any]:
    """Draw the number in system against time."""
    series = [_line(policy, k, points) for k, (policy, points) in enumerate(numbers.items())]
    return line_chart(series, "time units", "number in system")


def _line(name: str, number: int, data: list[Any]) -> dict[str, Any]:
    colour = COLOURS[number % len(COLOURS)]
    return {"name": name, "type": "line", "showSymbol": False, "data": data, "color": colour}


def line_chart(
    series: list[dict[str, Any]], across: str, up: str, *, scale: bool = False
) -> dict[str, Any]:
    """Say how a chart of lines looks; nothing moves, so that nothing jumps."""
    return {
        "animation": False,
        "legend": {"top": 0, "type": "scroll", "textStyle": {"color": "#888"}},
        "grid": {"left": 60, "right": 20, "top": 50, "bottom": 40},
        "xAxis": {"type": "value", "name": across, "nameLocation": "middle", "nameGap": 25},
        "yAxis": {"type": "value", "name": up, "scale": scale},
        "series": series,
    }
