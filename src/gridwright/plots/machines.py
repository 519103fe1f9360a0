"""Real machines: the jobs of a run, a calibration, a week of CPU availability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .figure import heat_map, literal, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..statistics import Line
    from ..testbed import Calibrations, Run

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def draw_run(run: Run, path: Path | None = None) -> Figure:
    """Draw the response of every finished job at its end, by class; failures are grey bands."""
    return draw_runs([run], path)


def draw_runs(runs: Sequence[Run], path: Path | None = None) -> Figure:
    """Draw runs below each other on one scale, as ``draw_run`` draws one of them."""
    figure = new_figure(9, 1 + 3 * len(runs))
    panels = figure.subplots(len(runs), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for axes, run in zip(panels, runs, strict=True):
        _draw_jobs(axes, run)
    panels[0].legend(frameon=False)
    panels[0].set(xlim=(0, max(run.until for run in runs)), ylim=(0, None))
    panels[-1].set_xlabel("time units")
    return save(figure, path)


def _draw_jobs(axes: Axes, run: Run) -> None:
    for name in run.system.classes:
        done = [
            kept.job
            for kept in run.journal.jobs(contents=False)
            if kept.task_class == name and kept.job.stage == "finished"
        ]
        ends, responses = [job.ended for job in done], [job.ended - job.submitted for job in done]
        axes.plot(ends, responses, ".", markersize=4, label=f"class {literal(name)}")
    for fault in run.faults:
        end = min(fault.end, run.until)
        if fault.start < end:
            axes.axvspan(fault.start, end, color="0.9", zorder=0)
    title = f"{run.experiment.name or run.system.name} under {run.about['policy']}"
    axes.set_title(literal(title), loc="left")
    axes.set_ylabel("response, time units")


def draw_calibration(found: Calibrations, path: Path | None = None) -> Figure:
    """Draw two panels per machine: rings are jobs, dots are means, lines are fitted to means."""
    count = len(found.machines)
    figure = new_figure(10, 0.6 + 2.8 * count)
    panels = figure.subplots(count, 2, squeeze=False)
    for (left, right), each in zip(panels, found.machines, strict=True):
        times = [(p.at, p.seconds, p.mean) for p in each.lengths]
        _dots(left, times)
        _line(left, each.time_line, times[-1][0])
        left.set(xlabel="iterations of the loop", ylabel="seconds")
        rates = [(p.at, [1 / s for s in p.seconds], 1 / p.mean) for p in each.availabilities]
        _dots(right, rates)
        _line(right, each.rate_line, 1.0)
        wanted = {"color": "0.6", "linestyle": ":", "label": "as imposed"}
        right.plot([0, 1], [0, each.imposed], **wanted)
        right.set(xlabel="imposed availability", ylabel="jobs a second")
        left.set_title(f"machine {literal(each.machine)}", loc="left")
        for axes in (left, right):
            axes.set(xlim=(0, None), ylim=(0, None))
            axes.legend(frameon=False)
    return save(figure, path)


def _dots(axes: Axes, points: Sequence[tuple[float, Sequence[float], float]]) -> None:
    for at, values, mean in points:
        axes.plot([at] * len(values), values, "o", markersize=4, color="C0", fillstyle="none")
        axes.plot([at], [mean], "o", markersize=4, color="C0")


def _line(axes: Axes, line: Line, end: float) -> None:
    words = f"{line.intercept:.3g} + {line.slope:.4g} x, R² = {line.r2:.4f}"
    axes.plot([0, end], [line.at(0), line.at(end)], color="C0", linewidth=1, label=words)


def draw_availability(week: Sequence[Sequence[float]], path: Path | None = None) -> Figure:
    """Draw the mean of each interval [weekday, interval]; darker is more, white is not known."""
    shares = np.ma.masked_invalid(np.array(week, dtype=float))
    figure = new_figure(10, 3)
    axes = figure.subplots()
    place = {"interpolation": "none", "extent": (0, 24, 6.5, -0.5)}
    heat_map(axes, shares, "share of the CPU available", **place)
    axes.set_xticks(range(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
    axes.set_yticks(range(7), DAYS)
    axes.set_title("CPU availability, the mean of all weeks known")
    return save(figure, path)
