"""``gridwright traces characterise``: describe a trace, and write a system like it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from . import options
from .options import option
from .output import UNKNOWN, check_files, console, counted, finish, known, show
from .packages import duration, model, traces

MOST_COLUMNS = 12
"""Kinds of machines whose rates are printed."""


def characterise(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="Jobs (.swf, .gwf), failures (FTA event trace, LANL records) or throughputs "
            "(CSV), packed (.gz, .xz) or not.",
        ),
    ],
    classes: options.Classes = "",
    machines: options.Machines = "",
    processors: options.Processors = "times",
    from_: options.From = "0",
    to: options.To = None,
    load: options.Load = None,
    failures: Annotated[
        Path | None,
        option("A failure trace; the machines of the system fail like its nodes.", "TRACE"),
    ] = None,
    output: Annotated[Path | None, option("Write a system file.", "PATH", "--output", "-o")] = None,
    json: options.Json = False,
) -> None:
    """Describe a trace: arrivals, run times, classes, machines; write a system like it."""
    check_files(output=output)
    found = traces.read_trace(trace)
    words: dict[str, Any] = {"trace": str(trace)}
    if isinstance(found, traces.JobTrace):
        down = None if failures is None else traces.read_failures(failures)
        own = None if down is None else traces.characterise_failures(down)
        character = traces.characterise(
            found,
            classes,
            machines=machines,
            processors=processors,
            load=load,
            failures=None if own is None else own.failures(),
            name=traces.trace_name(trace),
            **traces.window(found, from_, to),
        )
        words |= character.as_json() | ({"failures": own.as_json()} if own else {})
        finish(
            lambda: words,
            lambda: _show_jobs(character, own),
            json=json,
            files={output: character.system.to_file},
        )
    elif isinstance(found, traces.Throughputs):
        _throughputs(found, trace, load, output, json=json)
    elif output is not None:
        raise model.InputError(
            f"{trace} is a failure trace, which alone does not make a system; pass it with "
            "--failures beside a trace of jobs"
        )
    else:
        what = traces.characterise_failures(found)
        finish(lambda: {**words, **what.as_json()}, lambda: _show_failures(what), json=json)


def _show_jobs(found: traces.Character, failures: traces.FailureCharacter | None) -> None:
    out, system = console(), found.system
    out.print(f"Read: {found.read}\nUsed: {found.used}", markup=False)
    out.print(
        f"\n[bold]{escape(system.name)}[/bold]: {duration.in_words(found.length)}, "
        f"{found.work.size / found.length * 3600:,.4g} jobs an hour, "
        f"{found.demand:,.4g} machines of speed 1 busy, {known(100 * found.serial, '.0f')} % of "
        "jobs on one processor"
    )
    if found.peak == found.peak:
        out.print(
            f"The busiest hour has {found.peak:.3g} times the jobs of a mean hour; the variance of "
            f"the jobs in an hour is {found.dispersion:.4g} times their mean (Poisson: 1)."
        )
    out.print("")
    every = [("all", found.work.size, 1.0, found.interarrival, found.work)]
    every += [(e.name, e.jobs, e.share, e.interarrival, e.work) for e in found.classes]
    rows = []
    for name, jobs, share, interarrival, work in every:
        counts = f"{jobs:,}", f"{100 * share:.1f} %", f"{jobs / found.length * 3600:.3g}"
        middle = (duration.in_words(value) for value in (work.mean, work.median))
        times = work.name, *middle, *_variation(work)
        rows.append([name, *counts, interarrival.name, *_variation(interarrival), *times])
    columns = "class", ">jobs", ">of work", ">an hour", "interarrival", ">cv", ">KS"
    show((*columns, "work", ">mean", ">median", ">cv", ">KS"), rows)
    out.print(
        "\nKS: largest distance between the fitted distribution, which has the mean and cv of the "
        "data, and the data."
    )
    _show_rates(out, system)
    out.print(f"\n{_in_words(found.heterogeneity)}; load {found.load:.3g}")
    if failures is not None:
        out.print("")
        _show_failures(failures)


def _in_words(found: model.Heterogeneity) -> str:
    kind = "consistent" if found.consistent else "inconsistent"
    measured = f"task {found.task:.2f}, machine {found.machine:.2f}, {kind}"
    return f"Heterogeneity {found.name} ({measured})"


def _variation(times: traces.Fitted) -> tuple[str, str]:
    return known(times.cv, ".2f"), known(times.distance, ".2f")


def _show_rates(out: Any, system: model.System) -> None:
    """Print the speed of machines for each class, divided by its mean over the machines."""
    mean = system.rates.mean(axis=1, keepdims=True)
    shown = min(len(system.groups), MOST_COLUMNS)
    speeds = zip(system.classes, (system.rates / mean).tolist(), strict=True)
    rows = [[name, *(f"{value:.3g}" for value in values[:shown])] for name, values in speeds]
    if max(system.counts) > 1:
        rows.append(["machines", *(f"{count:,}" for count in system.counts[:shown])])
    out.print("")
    show(["speed ÷ mean speed", *(f">{name}" for name in system.groups[:shown])], rows)
    if shown < len(system.groups):
        out.print(f"and {len(system.groups) - shown} more kinds")


def _show_failures(found: traces.FailureCharacter) -> None:
    out = console()
    out.print(f"Failures: {found.read}", markup=False)
    said = f"{counted(found.nodes, 'node')}, {counted(found.down, 'time')} down"
    if found.down:
        said += f", the worst node {counted(found.most, 'time')}"
    said += f"; up {known(100 * found.availability, '.2f')} % of the time"
    if found.mean_uptime == found.mean_uptime:
        said += f", mean time to failure {duration.in_words(found.mean_uptime)}"
    out.print(f"\n{said}\n")
    rows = []
    for name, each in (("up between failures", found.up), ("down", found.repair)):
        times = [duration.in_words(value) for value in (each.mean, each.median, each.largest)]
        cells = [f"{each.size:,}", *times, each.name, *_variation(each)]
        rows.append([name, *(cells if each.size else ["0", *[UNKNOWN] * 6])])
    show(("", ">periods", ">mean", ">median", ">largest", "fitted", ">cv", ">KS"), rows)


def _throughputs(
    found: traces.Throughputs,
    trace: Path,
    load: float | None,
    output: Path | None,
    *,
    json: bool,
) -> None:
    system = traces.throughput_system(found, load=load, name=traces.trace_name(trace))
    measured = model.heterogeneity(system)

    def show_system() -> None:
        out = console()
        out.print(f"Read: {found.account}", markup=False)
        out.print(
            f"{counted(len(system.classes), 'job type')} on "
            f"{counted(len(system.groups), 'kind')} of machines. {_in_words(measured)}"
        )
        _show_rates(out, system)

    finish(
        lambda: {
            "trace": str(trace),
            "rows": found.account.as_json(),
            "classes": list(system.classes),
            "machines": list(system.machines),
            "rates": system.rates.tolist(),
            "heterogeneity": {**measured._asdict(), "name": measured.name},
        },
        show_system,
        json=json,
        files={output: system.to_file},
    )
