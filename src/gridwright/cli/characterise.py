"""``gridwright traces characterise``: describe a trace, and write a system like it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from . import options
from .options import option
from .output import UNKNOWN, check_files, console, counted, finish, known, show, table

if TYPE_CHECKING:
    from ..model import Heterogeneity, System
    from ..traces import Character, FailureCharacter, Fitted, Throughputs

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
    from .. import traces
    from ..model import InputError

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
            files={output: lambda path: _write(character.system, path)},
        )
    elif isinstance(found, traces.Throughputs):
        _throughputs(found, trace, load, output, json=json)
    elif output is not None:
        raise InputError(
            f"{trace} is a failure trace, which alone does not make a system; pass it with "
            "--failures beside a trace of jobs"
        )
    else:
        what = traces.characterise_failures(found)
        finish(lambda: {**words, **what.as_json()}, lambda: _show_failures(what), json=json)


def _write(system: System, path: Path) -> None:
    from ..model import InputError

    try:
        system.to_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _show_jobs(found: Character, failures: FailureCharacter | None) -> None:
    from ..traces.duration import in_words

    out = console()
    system = found.system
    out.print(f"Read: {found.read}\nUsed: {found.used}", markup=False)
    out.print(
        f"\n[bold]{escape(system.name)}[/bold]: {in_words(found.length)}, "
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
    heads = "class", ">jobs", ">of work", ">an hour", "interarrival", ">cv", ">KS"
    rows = table(*heads, "work", ">mean", ">median", ">cv", ">KS")
    every = [("all", found.work.size, 1.0, found.interarrival, found.work)]
    every += [(e.name, e.jobs, e.share, e.interarrival, e.work) for e in found.classes]
    for name, jobs, share, interarrival, work in every:
        counts = f"{jobs:,}", f"{100 * share:.1f} %", f"{jobs / found.length * 3600:.3g}"
        times = work.name, in_words(work.mean), in_words(work.median), *_variation(work)
        rows.add_row(escape(name), *counts, interarrival.name, *_variation(interarrival), *times)
    show(out, rows)
    out.print(
        "\nKS: largest distance between the fitted distribution, which has the mean and cv of the "
        "data, and the data."
    )
    _show_rates(out, system)
    out.print(f"\n{_in_words(found.heterogeneity)}; load {found.load:.3g}")
    if failures is not None:
        out.print("")
        _show_failures(failures)


def _in_words(found: Heterogeneity) -> str:
    kind = "consistent" if found.consistent else "inconsistent"
    measured = f"task {found.task:.2f}, machine {found.machine:.2f}, {kind}"
    return f"Heterogeneity {found.name} ({measured})"


def _variation(times: Fitted) -> tuple[str, str]:
    return known(times.cv, ".2f"), known(times.distance, ".2f")


def _show_rates(out: Any, system: System) -> None:
    """Print the speed of machines for each class, divided by its mean over the machines."""
    mean = system.rates.mean(axis=1, keepdims=True)
    shown = min(len(system.groups), MOST_COLUMNS)
    rows = table("speed ÷ mean speed", *(f">{escape(name)}" for name in system.groups[:shown]))
    for name, values in zip(system.classes, (system.rates / mean).tolist(), strict=True):
        rows.add_row(escape(name), *(f"{value:.3g}" for value in values[:shown]))
    if max(system.counts) > 1:
        rows.add_row("machines", *(f"{count:,}" for count in system.counts[:shown]))
    out.print("")
    show(out, rows)
    if shown < len(system.groups):
        out.print(f"and {len(system.groups) - shown} more kinds")


def _show_failures(found: FailureCharacter) -> None:
    from ..traces.duration import in_words

    out = console()
    out.print(f"Failures: {found.read}", markup=False)
    said = f"{counted(found.nodes, 'node')}, {counted(found.down, 'time')} down"
    if found.down:
        said += f", the worst node {counted(found.most, 'time')}"
    said += f"; up {known(100 * found.availability, '.2f')} % of the time"
    if found.mean_uptime == found.mean_uptime:
        said += f", mean time to failure {in_words(found.mean_uptime)}"
    out.print(f"\n{said}\n")
    rows = table("", ">periods", ">mean", ">median", ">largest", "fitted", ">cv", ">KS")
    for name, each in (("up between failures", found.up), ("down", found.repair)):
        if each.size:
            times = [in_words(value) for value in (each.mean, each.median, each.largest)]
            rows.add_row(name, f"{each.size:,}", *times, each.name, *_variation(each))
        else:
            rows.add_row(name, "0", *[UNKNOWN] * 6)
    show(out, rows)


def _throughputs(
    found: Throughputs, trace: Path, load: float | None, output: Path | None, *, json: bool
) -> None:
    from ..model import heterogeneity
    from ..traces import throughput_system, trace_name

    system = throughput_system(found, load=load, name=trace_name(trace))
    measured = heterogeneity(system)

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
        files={output: lambda path: _write(system, path)},
    )
