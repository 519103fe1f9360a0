"""``gridwright machines``: show and control the machines of a running grid, and measure them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .options import option, path_option
from .output import check_files, console, counted, finish, progress_bar, show, write_rows
from .packages import grid, model, plots, prediction, testbed

if TYPE_CHECKING:
    Readings = list[tuple[grid.agent.Measurement, float]]

app = typer.Typer(help="Show, control and measure machines.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="MACHINE", help="Its name in 'gridwright machines list'.")
]
Which = Annotated[
    str | None,
    option(
        "Number of a run, or path of the journal of a grid; needed if several are running.",
        "RUN",
        "--run",
    ),
]
PATIENCE = 10.0
"""Seconds within which a grid must answer."""


@app.command("list")
def list_machines(run: Which = None, json: options.Json = False) -> None:
    """List the machines of a running grid: state, running job, jobs finished and lost."""
    with closing(_journal(run)) as journal, journal.blamed():
        states = grid.machine_states(journal)
    columns = "machine", "state", ">since", "running", ">finished", ">lost", ">CPU", ">expected"
    rows = []
    for each in states:
        doing = "" if each.running is None else f"job {each.running}"
        found = (each.measured, each.predicted)
        shares = ["" if share is None else f"{share:.2f}" for share in found]
        counts = str(each.finished), str(each.lost)
        rows.append((each.name, each.words, f"{each.since:.1f}", doing, *counts, *shares))
    words = {"machines": [each._asdict() for each in states]}
    finish(lambda: words, lambda: show(columns, rows), json=json)


VERBS = {
    "start": (
        "{machine} is started",
        "Start a machine that was killed or has failed; its paused state does not change.",
    ),
    "pause": (
        "{machine} is paused",
        "Give a machine no further jobs; the job that it is running continues.",
    ),
    "resume": (
        "{machine} is resumed",
        "Give a machine jobs again; start it again if it was killed.",
    ),
    "drain": (
        "{machine} is drained",
        "Give a machine no further jobs, and wait until it has finished the one it is running.",
    ),
    "ping": (
        "{machine} answers in {milliseconds:.2f} ms",
        "Measure how long a machine takes to answer, in milliseconds.",
    ),
    "kill": (
        "{machine} is killed",
        "End a machine at once, and the job that it is running, until it is started or resumed.",
    ),
}
"""Commands for one machine: what they print, and their help."""


def _command(verb: str) -> Callable[..., None]:
    """Return the command that asks a running grid to do something to a machine."""

    def command(machine: Name, run: Which = None, json: options.Json = False) -> None:
        patience = float("inf") if verb == "drain" else PATIENCE
        with closing(_journal(run)) as journal:
            answer = grid.request(journal, verb, machine, patience=patience)
        seconds = float(answer) if verb == "ping" else None
        line = VERBS[verb][0].format(machine=machine, milliseconds=1000 * (seconds or 0.0))
        words = {"machine": machine, "did": verb, "answer": answer, "seconds": seconds}
        finish(lambda: words, lambda: print(line), json=json)

    return command


for _verb, (_, _help) in VERBS.items():
    app.command(_verb, help=_help)(_command(_verb))


def _journal(which: str | None) -> grid.Journal:
    """Open the journal of a running grid."""
    found = grid.find_running(which)
    if len(found) == 1:
        return found[0]
    for journal in found:
        journal.close()
    if not found:
        if which is None:
            raise model.InputError("no grid is running; 'gridwright run' starts one")
        name = f"run {which}" if which.isdigit() else which
        raise model.InputError(f"{name} is not running, so it has no machines")
    names = " or ".join(f"--run {_name(journal.path)}" for journal in found)
    raise model.InputError(f"{len(found)} grids are running; choose one: {names}")


def _name(path: Path) -> str:
    """Return the value of --run for a journal: its number if it is that of a run."""
    return path.stem if path.parent.name == "runs" and path.stem.isdigit() else str(path)


@app.command()
def calibrate(
    machines: Annotated[
        int | None,
        option("Number of local processes, one for each machine; 2 by default.", "NUMBER"),
    ] = None,
    on: options.On = None,
    repeats: Annotated[int, option("How often each job runs.")] = 5,
    longest: Annotated[float, option("Approximate length of the longest job, in seconds.")] = 0.1,
    together: Annotated[
        bool, typer.Option("--together", help="Measure all machines at once instead of in turn.")
    ] = False,
    save: Annotated[Path | None, path_option("Write a machine list, for experiments.")] = None,
    csv: Annotated[Path | None, path_option("Write the time of every job as CSV.")] = None,
    plot: Annotated[Path | None, path_option("Draw two plots for every machine.")] = None,
    json: options.Json = False,
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
    files = {
        save: lambda path: testbed.write_machines(path, found.listed()),
        csv: lambda path: write_rows(path, header, found.rows()),
        plot: lambda path: plots.draw_calibration(found, path),
    }
    finish(found.as_json, partial(_show_calibrations, found), json=json, files=files)


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


@app.command()
def availability(
    every: Annotated[float, option("Seconds between two readings.")] = 1.0,
    for_: Annotated[
        float, typer.Option("--for", help="Length of the measurement, in seconds.")
    ] = 5.0,
    mode: Annotated[
        str, option("How to predict readings: weekly, recursive or fixed.", "MODE")
    ] = "weekly",
    intervals: Annotated[int, option("Number of intervals in a day.")] = 96,
    weights: Annotated[
        str, option("For weekly: weights of the last week, the week before, and so on.", "W,…")
    ] = "0.4,0.3,0.2,0.1",
    c: Annotated[float, option("For recursive: weight of the newest week.")] = 0.5,
    share: Annotated[
        float | None, option("For fixed: the share; in the forecast by default the measured mean.")
    ] = None,
    period: Annotated[
        float | None,
        option("For fixed: seconds for which the share is valid; by default no limit."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Add the readings to the history of this computer.")
    ] = False,
    plot: Annotated[Path | None, path_option("Draw the week as recorded in the history.")] = None,
    json: options.Json = False,
) -> None:
    """Measure which share of this computer's CPU is free, and predict it."""
    words: dict[str, dict[str, Any]] = {
        "weekly": {"weights": _weights(weights)},
        "recursive": {"c": c},
        "fixed": {} if period is None else {"period": period},
    }
    if share is not None:
        words["fixed"]["availability"] = share

    def predictor(name: str) -> prediction.Prediction:
        return prediction.Prediction.of({"mode": name, "intervals": intervals, **words[name]})

    if mode not in prediction.MODES:
        known = f"; there are {', '.join(prediction.MODES)}"
        hint = model.did_you_mean(mode, prediction.MODES) or known
        raise model.InputError(f"--mode: no mode {mode!r}{hint}")
    if mode == "fixed" and share is None:
        raise model.InputError("--mode fixed needs --share")
    # every option is checked before any time is spent
    words["fixed"].setdefault("availability", 1.0)
    chosen = {name: predictor(name) for name in prediction.MODES}[mode]
    check_files(plot=plot)
    if not (0.01 <= every < float("inf") and 0 < for_ < float("inf")):
        raise model.InputError("--every and --for: expected seconds; --every at least 0.01")
    count, history = max(round(for_ / every), 1), prediction.History()
    if plot and not record and not history.extent(intervals).weeks:
        raise model.InputError("--plot: this computer has no history yet; --record starts one")

    found = _measured(every, count, chosen, history, record=record, quiet=json)
    if share is None:
        words["fixed"]["availability"] = _mean(found)
    modes = [predictor(name) for name in prediction.MODES]
    files = {plot: lambda path: plots.draw_availability(history.week(intervals), path)}
    as_json = partial(_availability_json, found, modes, history)
    finish(as_json, partial(_show_availability, found, modes, history), json=json, files=files)


def _weights(text: str) -> list[float]:
    try:
        return [float(word) for word in options.listed(text)]
    except ValueError:
        raise model.InputError(f"--weights {text}: expected numbers, as 0.4,0.3,0.2,0.1") from None


def _measured(
    every: float,
    count: int,
    chosen: prediction.Prediction,
    history: prediction.History,
    *,
    record: bool,
    quiet: bool,
) -> Readings:
    """Measure, and print each reading at once, or show a progress bar if quiet."""
    if not quiet:
        print(f"time      measured  predicted ({chosen.mode})", flush=True)
    found: Readings = []
    with progress_bar() if quiet else nullcontext() as report:
        for each in islice(grid.agent.measure(every, lambda: [os.getpid()]), count):
            past = history.past(each.end, chosen.intervals)
            predicted = chosen.predict(past, each.share, len(found) * every)
            found.append((each, predicted))
            if record:
                history.add(*each)
            if report is not None:
                report("measuring", len(found) / count, note=f"{each.share:.3f}")
            else:
                at = datetime.fromtimestamp(each.end)
                print(f"{at:%H:%M:%S}  {each.share:8.3f}  {predicted:9.3f}", flush=True)
    return found


def _mean(found: Readings) -> float:
    return sum(each.share for each, _ in found) / len(found)


def _coming(
    found: Readings, modes: list[prediction.Prediction], history: prediction.History
) -> list[tuple[str, tuple[float, ...]]]:
    """Return what each mode predicts for now and for the remaining full hours of today."""
    now = datetime.fromtimestamp(found[-1][0].end)
    hours = [now.replace(hour=hour, minute=0, second=0) for hour in range(now.hour + 1, 24)]
    times = [each.timestamp() for each in (now, *hours)]
    columns = [grid.agent.forecast(mode, history, _mean(found), times) for mode in modes]
    names = ["now", *(f"{each:%H:%M}" for each in hours)]
    return list(zip(names, zip(*columns, strict=True), strict=True))


def _show_availability(
    found: Readings, modes: list[prediction.Prediction], history: prediction.History
) -> None:
    out, intervals = console(), modes[0].intervals
    print(f"{'mean':8}  {_mean(found):8.3f}\n")
    known = history.extent(intervals)
    if known.weeks:
        weeks = counted(known.weeks, "week")
        out.print(
            f"history: {known.hours:.1f} hours in {weeks}, {known.first} to {known.last}; "
            f"{known.intervals} of the {7 * intervals} intervals of a week\n"
        )
    else:
        out.print("history: none yet; predictions repeat the present measurement\n")
    rows = (
        [name, *(f"{share:.3f}" for share in shares)]
        for name, shares in _coming(found, modes, history)
    )
    show(["expected", *(f">{mode.mode}" for mode in modes)], rows)


def _availability_json(
    found: Readings, modes: list[prediction.Prediction], history: prediction.History
) -> dict[str, Any]:
    coming = _coming(found, modes, history)
    return {
        "processors": os.cpu_count(),
        "readings": [
            {"time": each.end, "measured": each.share, "predicted": predicted}
            for each, predicted in found
        ],
        "mean": _mean(found),
        "intervals": modes[0].intervals,
        "history": history.extent(modes[0].intervals)._asdict(),
        "expected": {
            mode.mode: {name: shares[k] for name, shares in coming} for k, mode in enumerate(modes)
        },
    }
