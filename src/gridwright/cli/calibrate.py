"""``gridwright machines calibrate``: measure how fast machines are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, On, option, path_option
from .output import check_files, console, counted, finish, progress_bar, show, write_rows
from .packages import model, plots, testbed


def calibrate(
    machines: Annotated[
        int | None,
        option("Number of local processes, one for each machine; 2 by default.", "NUMBER"),
    ] = None,
    on: On = None,
    repeats: Annotated[int, option("How often each job runs.")] = 5,
    longest: Annotated[float, option("Approximate length of the longest job, in seconds.")] = 0.1,
    together: Annotated[
        bool, typer.Option("--together", help="Measure all machines at once instead of in turn.")
    ] = False,
    save: Annotated[Path | None, path_option("Write a machine list, for experiments.")] = None,
    csv: Annotated[Path | None, path_option("Write the time of every job as CSV.")] = None,
    plot: Annotated[Path | None, path_option("Draw two plots for every machine.")] = None,
    json: Json = False,
) -> None:
    """Measure how fast machines run a loop, so that experiments can impose other speeds."""
    check_files(plot=plot, csv=csv, save=save)
    if on is not None and machines is not None:
        raise model.InputError(
            "--machines starts local processes and --on uses a cluster; give one"
        )
    with progress_bar() as report:
        found = testbed.calibrate(
            machines,
            on=on,
            repeats=repeats,
            longest=longest,
            together=together,
            progress=lambda machine, done: report("calibrate", done, note=f"machine {machine}"),
        )
    header = ["machine", "varied", "value", "repeat", "seconds"]
    finish(
        found.as_json,
        lambda: _show_calibrations(found),
        json=json,
        files={
            save: lambda path: testbed.write_machines(path, found.listed()),
            csv: lambda path: write_rows(path, header, found.rows()),
            plot: lambda path: plots.draw_calibration(found, path),
        },
    )


def _show_calibrations(found: testbed.Calibrations) -> None:
    out = console()
    times = counted(found.repeats, "time")
    out.print(f"Jobs of several lengths, each run {times}; means, and lines fitted to them\n")
    columns = (
        "machine",
        ">iterations a second",
        ">R² of time",
        ">imposed",
        ">measured",
        ">R² of rate",
    )
    rows = (
        (
            each.machine,
            f"{each.calibration.per_second:,.0f}",
            f"{each.time_line.r2:.4f}",
            f"{each.imposed:.4g}",
            f"{each.rate_line.at(1.0):.4g}",
            f"{each.rate_line.r2:.4f}",
        )
        for each in found.machines
    )
    show(columns, rows)
    out.print("\nImposed and measured: jobs a second at an availability of 1.")
