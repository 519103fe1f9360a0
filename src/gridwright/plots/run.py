"""A run on real machines: the response of every job that finished, against time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .figure import literal, save

if TYPE_CHECKING:
    from ..testbed import Run

__all__ = ["draw_run"]


def draw_run(run: Run, path: Path) -> None:
    """Draw a dot a job, in its class's colour, where it ended; failures are grey bands."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
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
    axes.set_xlabel("time units")
    axes.set_ylabel("response, time units")
    axes.set_xlim(0, run.until)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    save(figure, path)
