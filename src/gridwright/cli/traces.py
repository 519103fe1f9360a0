"""``gridwright traces``: describe a trace, and replay its jobs and failures under policies."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from . import options
from .options import option, path_option, policies_option
from .output import (
    UNKNOWN,
    check_files,
    console,
    counted,
    finish,
    known,
    percent,
    progress_bar,
    show,
    write_rows,
)
from .packages import allocation, duration, model, plots, policies, statistics, testbed, traces
from .run import conduct_and_show, given_options, place

app = typer.Typer(help="Describe and replay logs of real clusters and grids.")
DEFAULT_POLICIES = "fcfs,mct,gcmu,lpas_dg"
REAL_SECONDS = 60.0
"""Length of a replay on real machines, unless a time unit is given."""
FIGURES = {
    "mean_response": "mean response",
    "mean_waiting": "mean waiting",
    "mean_slowdown": "mean slowdown",
    "utilisation": "utilisation",
    "makespan": "makespan",
    "lost": "lost to failures",
    "unfinished": "unfinished",
}
"""Measures of a replay beside its tails, and their names in the table."""
MOST_COLUMNS = 12
"""Kinds of machines whose rates are printed."""


@app.command()
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
    profile: Annotated[
        bool, option("Let the arrivals of the system change with the hours of the day.")
    ] = False,
    output: Annotated[Path | None, option("Write a system file.", "PATH", "--output", "-o")] = None,
    json: options.Json = False,
) -> None:
    """Describe a trace: arrivals, run times, classes, machines; write a system like it."""
    check_files(output=output)
    if output is not None and output.exists() and output.samefile(trace):
        raise model.InputError(f"--output {output} is the trace itself")
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
            profile=profile,
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
    if system.profile is not None:
        busiest = ", ".join(
            f"{name} {row.max():.3g} times the mean in hour {row.argmax() + 1}"
            for name, row in zip(system.classes, system.profile.factors, strict=True)
        )
        out.print(f"\nThe mean day, from the start: {busiest}.", markup=False)
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


class Scene(NamedTuple):
    """The jobs and failures to replay, and the system to replay them on."""

    work: traces.Workload
    system: model.System
    jobs: testbed.JobList
    outages: traces.Outages | None
    faults: tuple[testbed.Fault, ...]


@app.command()
def replay(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A trace of jobs (.swf, .gwf), packed or not.")
    ],
    policies: Annotated[
        list[str] | None,
        policies_option(
            f"Policies to compare, separated by commas; by default {DEFAULT_POLICIES}."
        ),
    ] = None,
    on: options.RunOn = None,
    time_unit: options.TimeUnit = None,
    classes: options.Classes = "",
    machines: options.Machines = "",
    processors: options.Processors = "times",
    from_: options.From = "0",
    to: options.To = None,
    scale: Annotated[
        float, option("Multiply the times between arrivals; below 1 the load is higher.")
    ] = 1.0,
    load: options.Load = None,
    failures: Annotated[
        Path | None, option("A failure trace; each machine fails like one of its nodes.", "TRACE")
    ] = None,
    failures_from: Annotated[
        str | None,
        option(
            "Start in the failure trace: a date, or 30d after its start; by default the time "
            "with most failures.",
            "TIME",
        ),
    ] = None,
    failures_scale: Annotated[
        float, option("Multiply the times of the failure trace; below 1 failures are denser.")
    ] = 1.0,
    nodes: Annotated[
        str, option("Nodes to take: spread evenly over all, or the worst.", "spread|worst")
    ] = "spread",
    within: Annotated[
        str, option("Also print the share of jobs that respond within times: 90,15m.", "TIMES")
    ] = "",
    save: Annotated[
        Path | None, path_option("Write an experiment for 'gridwright run', run nothing.", "FOLDER")
    ] = None,
    csv: Annotated[Path | None, path_option("Write start and end of every job as CSV.")] = None,
    plot: Annotated[Path | None, path_option("Draw the policies side by side.")] = None,
    json: options.Json = False,
    executor: options.OldExecutor = None,
    address: options.OldAddress = None,
) -> None:
    """Replay the jobs of a trace, and the failures of another, under several policies.

    With --on or --time-unit, real machines run the jobs under one policy.
    """
    real = {**given_options(time_unit=time_unit), **place(on, executor, address)}
    if failures is None:
        about_failures = {
            "failures-from": failures_from is not None,
            "failures-scale": failures_scale != 1,
            "nodes": nodes != "spread",
        }
        _refuse(about_failures, "needs a failure trace; add --failures TRACE")
    if save is not None or real:
        files = {"csv": csv is not None, "plot": plot is not None, "within": bool(within)}
        _refuse(files, "cannot be combined with --save, --on or --time-unit")
    check_files(plot=plot, csv=csv)
    limits = [duration.seconds(word) for word in options.listed(within)]
    scene = _scene(
        trace,
        (classes, machines, processors, load),
        (from_, to, scale),
        (failures, failures_from, failures_scale, nodes),
    )
    names = options.listed(policies or DEFAULT_POLICIES)
    if save is not None:
        _save(scene, names, real, save, json=json)
        return
    if real:
        same = {"jobs": scene.jobs, "faults": scene.faults}
        conduct_and_show(_experiment(scene, names, real), same, json=json, expect=False)
        return
    found = _replay(scene, names, limits)
    finish(
        lambda: _replays_json(scene, found),
        lambda: _show_replays(scene, found),
        json=json,
        files={
            csv: lambda path: _write_jobs(found, path),
            plot: lambda path: plots.draw_replays(found, scene.work.length, path),
        },
    )


def _refuse(given: dict[str, bool], why: str) -> None:
    """Refuse options that would have no effect."""
    for name, was_given in given.items():
        if was_given:
            raise model.InputError(f"--{name} {why}")


def _scene(
    path: Path,
    how: tuple[str, str, str, float | None],
    when: tuple[str, str | None, float],
    failing: tuple[Path | None, str | None, float, str],
) -> Scene:
    classes, machines, processors, load = how
    begin, end, scale = when
    trace = traces.read_jobs(path)
    window = traces.window(trace, begin, end)
    work = traces.workload(trace, classes, processors=processors, scale=scale, **window)
    work.account.take_over(trace.account)
    kinds = traces.machines_for(work, machines)
    system = traces.system_of(work, kinds, name=traces.trace_name(path), load=load)
    file, start, failures_scale, nodes = failing
    if file is None:
        return Scene(work, system, work.jobs(), None, ())
    known = traces.read_failures(file)
    found = traces.outages(
        known,
        system.shape[1],
        work.length,
        start=None if start is None else duration.moment(start, float(known.start.min())),
        scale=failures_scale,
        nodes=nodes,
    )
    return Scene(work, system, work.jobs(), found, found.faults)


def _experiment(scene: Scene, names: list[str], real: dict[str, Any]) -> testbed.Experiment:
    if len(names) != 1:
        raise model.InputError("real machines run one policy at a time; add --policy POLICY")
    return testbed.Experiment(system=scene.system, **_words(scene, names[0], real, failures="none"))


def _words(scene: Scene, policy: str, real: dict[str, Any], **more: str) -> dict[str, Any]:
    """Return the keys of an experiment."""
    length = scene.work.length
    words = {"name": scene.system.name, "policy": policy, "duration": length, **more}
    return {**words, "time_unit": REAL_SECONDS / length, **real}


def _save(
    scene: Scene, names: list[str], real: dict[str, Any], folder: Path, *, json: bool
) -> None:
    """Write a system, its jobs and failures, and the experiment that names them."""
    _experiment(scene, names, real)  # check it before anything is written
    failures = "failures.csv" if scene.outages else "none"
    files = {"system": "system.toml", "jobs": "jobs.csv", "failures": failures}
    path = folder / "experiment.toml"
    with model.error.file_errors(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        scene.system.to_file(folder / "system.toml")
        scene.jobs.write(folder / "jobs.csv", scene.system)
        if scene.outages:
            testbed.write_faults(folder / failures, scene.faults, scene.system)
        path.write_text(model.toml.format_toml(_words(scene, names[0], real, **files)), "utf-8")
    finish(
        lambda: {"experiment": str(path), "jobs": len(scene.jobs)},
        lambda: print(f"written: {path}, {counted(len(scene.jobs), 'job')}"),
        json=json,
    )


def _replay(scene: Scene, names: list[str], limits: list[float]) -> list[traces.Replay]:
    chosen = [policies.find(name) for name in names]  # all are checked before any is replayed
    found = []
    with progress_bar() as report:
        for policy in chosen:
            how: dict[str, Any] = {"within": limits, "progress": partial(report, policy)}
            found.append(traces.replay(scene.system, scene.jobs, policy, scene.faults, **how))
    return found


def _replays_json(scene: Scene, found: list[traces.Replay]) -> dict[str, Any]:
    """Return the replays as ``--json`` prints them."""
    words: dict[str, Any] = {
        "trace": scene.system.name,
        "jobs": scene.work.account.as_json(),
        "length": scene.work.length,
        "classes": list(scene.system.classes),
        "machines": list(scene.system.machines),
        "load": allocation.allocate(scene.system).load,
        "policies": [each.as_json() for each in found],
    }
    if scene.outages is not None:
        words["failures"] = {
            "count": len(scene.outages.faults),
            "nodes": list(scene.outages.nodes),
            "start": scene.outages.start,
            "span": scene.outages.span,
        }
    return words


def _write_jobs(found: list[traces.Replay], path: Path) -> None:
    """Write one row for every job and policy."""
    rows = []
    for each in found:
        system, jobs = each.system, each.jobs
        for k, (at, i, start, end, j) in enumerate(
            zip(jobs.times, jobs.task_classes, each.started, each.ended, each.machines, strict=True)
        ):
            where = system.machines[j] if j >= 0 else ""
            done = ["" if time != time else float(time) for time in (start, end)]
            rows.append([str(each.policy), k + 1, system.classes[i], float(at), where, *done])
    write_rows(path, ["policy", "job", "class", "arrived", "machine", "started", "ended"], rows)


def _show_replays(scene: Scene, found: list[traces.Replay]) -> None:
    """Print the policies side by side, for all jobs and by class."""
    out, system = console(), scene.system
    classes, machines = system.shape
    out.print(f"Jobs: {scene.work.account}", markup=False)
    if scene.outages is not None:
        out.print(f"Failures: {scene.outages}")
    out.print(
        f"\n[bold]{escape(scene.system.name)}[/bold]: {len(scene.jobs):,} jobs in "
        f"{duration.in_words(scene.work.length)}, {counted(classes, 'class', 'classes')}, "
        f"{counted(machines, 'machine')}, load {allocation.allocate(system).load:.3g}\n"
    )
    names = [f">{each.policy}" for each in found]
    tails = statistics.tail_names(found[0].within)
    (first, *rest) = FIGURES.items()
    words = [first, *((name, f"response {name}") for name in tails), *rest]
    figures = [each.figures for each in found]
    rows = [[word, *(_figure(name, each.get(name)) for each in figures)] for name, word in words]
    show(["", *names], rows)
    out.print("")
    rows = []
    for i, name in enumerate(system.classes):
        count = int((scene.jobs.task_classes == i).sum())
        for k, each in enumerate(found):
            own = each.figures_of(i)
            cells = [_figure(key, own[key]) for key in ("mean_response", *tails)]
            rows.append([*((name, f"{count:,}") if k == 0 else ("", "")), str(each.policy), *cells])
    show(["class", ">jobs", "policy", ">mean response", *(f">{name}" for name in tails)], rows)


def _figure(name: str, value: float | None) -> str:
    """Write a measure of a replay; only counts are known if no job finished."""
    if value is None or value != value:
        return UNKNOWN
    if name in ("lost", "unfinished"):
        return f"{value:,}"
    if name == "mean_slowdown":
        return f"{value:.4g}"
    if name.startswith(statistics.WITHIN):
        return percent(value)
    return f"{100 * value:.0f} %" if name == "utilisation" else duration.in_words(value)
