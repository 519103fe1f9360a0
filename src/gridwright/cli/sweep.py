"""``gridwright sweep``: vary one property of a system, or look at it through its day."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from . import options
from .options import option
from .output import (
    check_files,
    console,
    finish,
    headline,
    kept_results,
    progress_bar,
    show,
    with_verdict,
    write_rows,
)
from .packages import experiments, model, plots
from .packages import policies as library


def sweep(
    system: options.SystemName,
    policies: options.Policies,
    vary: Annotated[
        str,
        option(
            "What to vary: load, arrivals, machines, machines.GROUP, mean_uptime, "
            "mean_repair, delays.before, delays.after, delays.detection, delays.reporting, "
            "mean_interval, inaccuracy.arrivals, inaccuracy.rates, "
            "inaccuracy.availability, queue_limit, tasks, deadline_factor, assumed.shift, "
            "assumed.scale, assumed.execution, a parameter of the policies, or time: the time of "
            "the day of a system whose arrivals change.",
            "WHAT",
        ),
    ],
    values: Annotated[
        str,
        option(
            "Its values: 0.5,0.7,0.9 or FIRST:LAST:STEP; of time, when intervals begin, by default "
            "at least 12.",
            "VALUES",
        ),
    ] = "",
    horizon: options.Horizon = None,
    warmup: options.Warmup = 0.0,
    delays: options.Delays = None,
    replications: options.Replications = 10,
    seed: options.Seed = 1,
    threads: options.Threads = None,
    on: options.SimulateOn = None,
    csv: options.Csv = None,
    plot: options.Plot = None,
    json: options.Json = False,
) -> None:
    """Vary one property of a system, or one parameter, under several policies."""
    check_files(plot=plot, csv=csv)
    chosen = [library.find(name) for name in options.listed(policies)]
    if not values and vary != "time":
        raise model.InputError(f"there is no value of {vary}; add --values VALUES")
    points = values_of(values)
    if vary == "time":
        if on is not None:
            raise model.InputError("--on: a sweep over time runs on this computer only")
        how = {"warmup": warmup, "delays": options.delays_of(delays), "threads": threads}
        when = _numbers(points)
        over = _sweep_over_time(system, chosen, when, horizon, replications, seed, **how)
        files = {
            csv: partial(_write_over_time, over),
            plot: lambda path: plots.draw_over_time(over, path),
        }
        finish(over.as_json, partial(_show_over_time, over), json=json, files=files)
        return
    names = [str(policy) for policy in chosen]
    with progress_bar() as report:

        def tell(value: float | str, policy: object, done: float) -> None:
            before = points.index(value) * len(names) + names.index(str(policy))
            share = (before + done) / (len(points) * len(names))
            report("sweep", share, note=f"{vary} {_word(value)}, {policy}")

        what, length = (system, chosen, vary, points), (horizon, replications, seed)
        found = experiments.sweep(
            *what,
            *length,
            warmup=warmup,
            delays=options.delays_of(delays),
            threads=threads,
            on=on,
            store=kept_results(),
            progress=tell,
        )
    files = {csv: partial(_write_sweep, found), plot: lambda path: plots.draw_sweep(found, path)}
    finish(found.as_json, partial(_show_sweep, found), json=json, files=files)


def _sweep_over_time(
    system: str, chosen: list[library.Policy], *given: Any, **how: Any
) -> experiments.SweepOverTime:
    names = [str(policy) for policy in chosen]
    with progress_bar() as report:

        def tell(policy: object, done: float) -> None:
            share = (names.index(str(policy)) + done) / len(names)
            report("sweep", share, note=str(policy))

        return experiments.sweep_over_time(system, chosen, *given, progress=tell, **how)


def _numbers(values: list[float | str]) -> list[float]:
    """Refuse words among values."""
    for value in values:
        if isinstance(value, str):
            raise model.InputError(f"--values has {value!r}; expected times, as 0,6,12 or 0:24:1")
    return [float(value) for value in values]


def values_of(text: str) -> list[float | str]:
    """Parse values: separated by commas, or from a first to a last by a step.

    >>> values_of("0.5:0.9:0.2"), values_of("1,2.5,vertex")
    ([0.5, 0.7, 0.9], [1.0, 2.5, 'vertex'])
    """
    wrong = model.InputError(f"--values {text}: expected values, as 0.5,0.7,0.9 or 0.5:0.9:0.1")
    if ":" not in text:
        return [_number(word) for word in options.listed(text)]
    try:
        first, last, step = (float(word) for word in text.split(":"))
    except ValueError:
        raise wrong from None
    if not (step > 0 and last >= first and (last - first) / step < 10_000):
        raise wrong
    return [round(first + k * step, 12) for k in range(int((last - first) / step + 1e-9) + 1)]


def _word(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _write_sweep(found: experiments.Sweep, path: Path) -> None:
    header = [found.vary, "policy", "stable", "long_run_load"]
    criteria = found.points[0].results[0].criteria
    keys = ("value", "policy", "stable", "long_run_load")
    rows = [
        [*(row[key] for key in keys), *(number for name in criteria for number in row[name])]
        for row in found.rows()
    ]
    header += [name + end for name in criteria for end in ("", " low", " high")]
    write_rows(path, header, rows)


def _write_over_time(found: experiments.SweepOverTime, path: Path) -> None:
    keys, metrics = (
        ("time", "until", "arrivals", "policy", "stable"),
        ("mean_number", "mean_response"),
    )
    header = [*keys, *(name + end for name in metrics for end in ("", " low", " high"))]
    rows = [
        [*(row[key] for key in keys), *(number for name in metrics for number in row[name])]
        for row in found.rows()
    ]
    write_rows(path, header, rows)


def _show_over_time(found: experiments.SweepOverTime) -> None:
    """Print an interval of the cycle a row: the number in system and the response by policy."""
    out = console()
    out.print(
        f"{headline(found.results[0])}, common random numbers; mean number in system, and mean "
        "response of the tasks that arrive in the interval\n"
    )
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in found.rows():
        times = tuple(f"{row[name]:.4g}" for name in ("time", "until", "arrivals"))
        rows.setdefault(times, []).extend([str(row["mean_number"]), str(row["mean_response"])])
    heads = [
        f">{result.policy} {word}" for result in found.results for word in ("number", "response")
    ]
    show(
        ["time", ">until", ">arrivals", *heads], [[*times, *cells] for times, cells in rows.items()]
    )
    for result in found.results:
        if not result.stable:
            out.print(f"\n{result.policy} is {result.verdict}", markup=False)


def _show_sweep(found: experiments.Sweep) -> None:
    out = console()
    first = found.points[0].results[0]
    metric = first.criteria[-1]
    out.print(f"{headline(first)}, common random numbers; {experiments.in_words(metric)}\n")
    full = [max(point.results, key=lambda r: r.long_run_load or 0.0) for point in found.points]
    extra = [">long-run load"] if any(each.long_run_load for each in full) else []
    rows = []
    for point, fullest in zip(found.points, full, strict=True):
        cells = [with_verdict(r, metric) for r in point.results]
        rows.append([_word(point.value), *([fullest.load_words] if extra else []), *cells])
    show([found.vary, *extra, *(f">{policy}" for policy in found.policies)], rows)
    unranked = [r for point in found.points for r in point.results if not r.is_ranked]
    if needed := max((r.stability.needed or 0.0 for r in unranked), default=0.0):
        out.print(f"\nUndecided: a horizon of {needed:,g} time units would probably tell.")
