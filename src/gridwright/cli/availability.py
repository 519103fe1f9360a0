"""``gridwright machines availability``: measure and predict the free share of the CPU."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, listed, option, path_option
from .output import check_files, console, counted, finish, progress_bar, show
from .packages import grid, model, plots, prediction

if TYPE_CHECKING:
    Readings = list[tuple[grid.agent.Measurement, float]]


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
    json: Json = False,
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
    finish(
        lambda: _availability_json(found, modes, history),
        lambda: _show_availability(found, modes, history),
        json=json,
        files={plot: lambda path: plots.draw_availability(history.week(intervals), path)},
    )


def _weights(text: str) -> list[float]:
    try:
        return [float(word) for word in listed(text)]
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


def _show_availability(found: Readings, modes: list[prediction.Prediction], history: prediction.History) -> None:
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
