"""``gridwright calibrate``: how fast machines in truth are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json, plot_path
from .run import progress_bar, writable, write_rows

if TYPE_CHECKING:
    from ..testbed import Calibrations

__all__ = ["calibrate"]


def calibrate(
    machines: Annotated[
        int | None,
        typer.Option(
            help="Processes of this computer, a machine each: 2 unless given.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            help="The workers of a Dask cluster in their place: tcp://HOST:PORT.", metavar="ADDRESS"
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often each job runs.")] = 5,
    longest: Annotated[float, typer.Option(help="Seconds of the longest job, about.")] = 0.1,
    together: Annotated[
        bool,
        typer.Option("--together", help="All machines at once, not one after another."),
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write a machine list, for experiments.", metavar="PATH")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write the time of every job.", metavar="PATH")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw two pictures for every machine.", metavar="PATH")
    ] = None,
    json: Json = False,
) -> None:
    """Measure how fast machines run a loop, to impose other speeds on them."""
    from ..model import InputError
    from ..testbed import calibrate as run
    from ..testbed import write_machines
    from .output import print_json, written

    picture = plot_path(plot) if plot else None
    writable(csv, "--csv")
    writable(save, "--save")
    if on is not None and machines is not None:
        raise InputError("--machines are processes here and --on is a cluster; expected one")
    with progress_bar() as report:
        found = run(
            machines,
            on=on,
            repeats=repeats,
            longest=longest,
            together=together,
            progress=lambda machine, done: report("calibrate", done, note=f"machine {machine}"),
        )
    if save:
        write_machines(save, found.listed())
    if csv:
        write_rows(csv, ["machine", "varied", "value", "repeat", "seconds"], found.rows())
    if picture:
        from ..plots import draw_calibration

        draw_calibration(found, picture)
    if json:
        print_json(found.as_json())
    else:
        _show(found)
        written(save, csv, picture)


def _show(found: Calibrations) -> None:
    from rich.markup import escape

    from .output import console, counted, show, table

    out = console()
    times = counted(found.repeats, "time", "times")
    out.print(f"Jobs of several lengths, each run {times}; means and the lines through them\n")
    rows = table(
        "machine", ">iterations a second", ">R² of time", ">imposed", ">measured", ">R² of rate"
    )
    for each in found.machines:
        rows.add_row(
            escape(each.machine),
            f"{each.calibration.per_second:,.0f}",
            f"{each.time_line.r2:.4f}",
            f"{each.imposed:.4g}",
            f"{each.rate_line.at(1.0):.4g}",
            f"{each.rate_line.r2:.4f}",
        )
    show(out, rows)
    out.print("\nImposed and measured: jobs a second at an availability of 1.")
