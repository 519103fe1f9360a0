"""A calibration: for every machine the time of the loop, and the rate at an availability."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .figure import literal, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from ..statistics import Line
    from ..testbed import Calibrations

__all__ = ["draw_calibration"]


def draw_calibration(found: Calibrations, path: Path) -> None:
    """Draw two pictures a machine: rings are jobs, dots their means, lines go through those."""
    from matplotlib.figure import Figure

    count = len(found.machines)
    figure = Figure(figsize=(10, 0.6 + 2.8 * count), layout="constrained")
    panels = figure.subplots(count, 2, squeeze=False)
    for (left, right), each in zip(panels, found.machines, strict=True):
        times = [(p.at, p.seconds, p.mean) for p in each.lengths]
        _dots(left, times)
        _line(left, each.time_line, times[-1][0], "C0")
        left.set_xlabel("iterations of the loop")
        left.set_ylabel("seconds")
        rates = [(p.at, [1 / s for s in p.seconds], 1 / p.mean) for p in each.availabilities]
        _dots(right, rates)
        _line(right, each.rate_line, 1.0, "C0")
        wanted = {"color": "0.6", "linestyle": ":", "label": "as imposed"}
        right.plot([0, 1], [0, each.imposed], **wanted)
        right.set_xlabel("imposed availability")
        right.set_ylabel("jobs a second")
        left.set_title(f"machine {literal(each.machine)}", loc="left")
        for axes in (left, right):
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False)
    save(figure, path)


def _dots(axes: Axes, points: Sequence[tuple[float, Sequence[float], float]]) -> None:
    for at, values, mean in points:
        axes.plot([at] * len(values), values, "o", markersize=4, color="C0", fillstyle="none")
        axes.plot([at], [mean], "o", markersize=4, color="C0")


def _line(axes: Axes, line: Line, end: float, colour: str) -> None:
    words = f"{line.intercept:.3g} + {line.slope:.4g} x, R² = {line.r2:.4f}"
    axes.plot([0, end], [line.at(0), line.at(end)], color=colour, linewidth=1, label=words)
