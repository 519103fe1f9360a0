"""``gridwright characterise``: what a trace is like, and a system like it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .argument import Json
from .trace import Classes, From, Load, Machines, Processors, To, name_of, say_account, window

if TYPE_CHECKING:
    from ..model import System
    from ..traces import Character, FailureCharacter, Fitted, Throughputs

__all__ = ["characterise"]

MOST_COLUMNS = 12
"""Kinds of machines of which the rates are printed."""


def characterise(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="Jobs (.swf, .gwf), failures (FTA event trace, LANL records) or throughputs; "
            "packed too (.gz, .xz).",
            show_default=False,
        ),
    ],
    classes: Classes = "",
    machines: Machines = "",
    processors: Processors = "times",
    from_: From = "0",
    to: To = None,
    load: Load = None,
    failures: Annotated[
        Path | None,
        typer.Option(help="A failure trace: machines of the system fail so.", metavar="TRACE"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a system file.", metavar="PATH"),
    ] = None,
    json: Json = False,
) -> None:
    """Say what a trace is like: arrivals, run times, classes, machines; write a system like it."""
    from ..model import InputError
    from ..traces import JobTrace, Throughputs, characterise_failures, read_failures, read_trace
    from ..traces import characterise as look
    from .output import print_json
    from .run import writable

    writable(output, "--output")
    found = read_trace(trace)
    if isinstance(found, JobTrace):
        own = None if failures is None else characterise_failures(read_failures(failures))
        character = look(
            found,
            classes,
            machines=machines,
            processors=processors,
            load=load,
            failures=None if own is None else own.failures(),
            name=name_of(trace),
            **window(found, from_, to),
        )
        words = {"trace": str(trace), **character.as_json()}
        if own is not None:
            words["failures"] = own.as_json()
        _write(character.system, output)
        if json:
            print_json(words)
        else:
            _show_jobs(character, own, output)
        return
    if isinstance(found, Throughputs):
        _throughputs(found, trace, load, output, json=json)
        return
    if output is not None:
        raise InputError(
            f"{trace} is a failure trace, which alone makes no system; give it with --failures to "
            "a trace of jobs"
        )
    what = characterise_failures(found)
    print_json({"trace": str(trace), **what.as_json()}) if json else _show_failures(what)


def _write(system: System, output: Path | None) -> None:
    from ..model import InputError

    if output is not None:
        try:
            system.to_file(output)
        except OSError as error:
            raise InputError(f"{output} cannot be written: {error.strerror}") from None


def _show_jobs(found: Character, failures: FailureCharacter | None, output: Path | None) -> None:
    from rich.markup import escape

    from ..traces.duration import in_words
    from .output import console, known, show, table, written

    out = console()
    system = found.system
    say_account(out, "Read", found.read)
    say_account(out, "Used", found.used)
    out.print(
        f"\n[bold]{escape(system.name)}[/bold]: {in_words(found.length)}, "
        f"{found.work.size / found.length * 3600:,.4g} jobs an hour, "
        f"{found.demand:,.4g} machines of speed 1 busy, {known(100 * found.serial, '.0f')} % on "
        "one processor"
    )
    if found.peak == found.peak:
        out.print(
            f"The busiest hour has {found.peak:.3g} times the jobs of a mean one; variance ÷ mean "
            f"of the jobs in an hour is {found.dispersion:.4g} (Poisson: 1)"
        )
    out.print("")
    rows = table(
        "class",
        ">jobs",
        ">of work",
        ">an hour",
        "interarrival",
        ">cv",
        ">KS",
        "work",
        ">mean",
        ">median",
        ">cv",
        ">KS",
    )
    every = [("all", found.work.size, 1.0, found.interarrival, found.work)]
    every += [
        (each.name, each.jobs, each.share, each.interarrival, each.work) for each in found.classes
    ]
    for name, jobs, share, interarrival, work in every:
        rows.add_row(
            escape(name),
            f"{jobs:,}",
            f"{100 * share:.1f} %",
            f"{jobs / found.length * 3600:.3g}",
            interarrival.name,
            *_variation(interarrival),
            work.name,
            in_words(work.mean),
            in_words(work.median),
            *_variation(work),
        )
    show(out, rows)
    out.print(
        "\nKS: how far the fitted distribution, which has their mean and cv, is from the data."
    )
    _show_rates(out, system)
    kind = "consistent" if found.heterogeneity.consistent else "inconsistent"
    out.print(
        f"\nHeterogeneity {found.heterogeneity.name} (task {found.heterogeneity.task:.2f}, machine "
        f"{found.heterogeneity.machine:.2f}, {kind}); load {found.load:.3g}"
    )
    if failures is not None:
        out.print("")
        _show_failures(failures)
    written(output)


def _variation(times: Fitted) -> tuple[str, str]:
    from .output import known

    return known(times.cv, ".2f"), known(times.distance, ".2f")


def _show_rates(out: Any, system: System) -> None:
    """Print how fast machines are for each class, compared with the mean of the class."""
    from rich.markup import escape

    from .output import show, table

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
        out.print(f"and {len(system.groups) - shown} kinds more")


def _show_failures(found: FailureCharacter) -> None:
    from ..traces.duration import in_words
    from .output import UNKNOWN, console, known, show, table

    out = console()
    say_account(out, "Failures", found.read)
    said = f"{found.nodes:,} {'node' if found.nodes == 1 else 'nodes'}, {_times(found.down)} down"
    if found.down:
        said += f", the worst {_times(found.most)}"
    said += f"; up {known(100 * found.availability, '.2f')} % of the time"
    if found.mean_uptime == found.mean_uptime:
        said += f", {in_words(found.mean_uptime)} in the mean until a failure"
    out.print(f"\n{said}\n")
    rows = table("", ">periods", ">mean", ">median", ">largest", "fitted", ">cv", ">KS")
    for name, each in (("up between failures", found.up), ("down", found.repair)):
        if each.size:
            times = [in_words(value) for value in (each.mean, each.median, each.largest)]
            rows.add_row(name, f"{each.size:,}", *times, each.name, *_variation(each))
        else:
            rows.add_row(name, "0", *[UNKNOWN] * 6)
    show(out, rows)


def _times(count: int) -> str:
    return "1 time" if count == 1 else f"{count:,} times"


def _throughputs(
    found: Throughputs, trace: Path, load: float | None, output: Path | None, *, json: bool
) -> None:
    from ..model import heterogeneity
    from ..traces import throughput_system
    from .output import console, print_json, written

    system = throughput_system(found, load=load, name=name_of(trace))
    _write(system, output)
    measured = heterogeneity(system)
    if json:
        words = {
            "trace": str(trace),
            "rows": found.account.as_json(),
            "classes": list(system.classes),
            "machines": list(system.machines),
            "rates": system.rates.tolist(),
            "heterogeneity": {**measured._asdict(), "name": measured.name},
        }
        print_json(words)
        return
    out = console()
    say_account(out, "Read", found.account)
    kind = "consistent" if measured.consistent else "inconsistent"
    out.print(
        f"{len(system.classes)} job types on {len(system.groups)} kinds of machines; heterogeneity "
        f"{measured.name} (task {measured.task:.2f}, machine {measured.machine:.2f}, {kind})"
    )
    _show_rates(out, system)
    written(output)
