"""``gridwright traces replay``: replay the jobs and failures of a trace under policies."""

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
    progress_bar,
    show,
    write_rows,
)
from .packages import allocation, duration, model, plots, policies, testbed, traces
from .run import conduct_and_show, given_options, place

DEFAULT_POLICIES = "fcfs,mct,gcmu,lpas_dg"
REAL_SECONDS = 60.0
"""Length of a replay on real machines, unless a time unit is given."""
FIGURES = {
    "mean_response": "mean response",
    "median_response": "median response",
    "response_95": "95th percentile",
    "mean_waiting": "mean waiting",
    "mean_slowdown": "mean slowdown",
    "utilisation": "utilisation",
    "makespan": "makespan",
    "lost": "lost to failures",
    "unfinished": "unfinished",
}
"""Measures of a replay, and their names in the table."""


class Scene(NamedTuple):
    """The jobs and failures to replay, and the system to replay them on."""

    work: traces.Workload
    system: model.System
    jobs: testbed.JobList
    outages: traces.Outages | None
    faults: tuple[testbed.Fault, ...]


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
        files = {"csv": csv is not None, "plot": plot is not None}
        _refuse(files, "cannot be combined with --save, --on or --time-unit")
    check_files(plot=plot, csv=csv)
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
    found = _replay(scene, names)
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


def _replay(scene: Scene, names: list[str]) -> list[traces.Replay]:
    chosen = [policies.find(name) for name in names]  # all are checked before any is replayed
    found = []
    with progress_bar() as report:
        for policy in chosen:
            tell = partial(report, policy)
            one = traces.replay(scene.system, scene.jobs, policy, scene.faults, progress=tell)
            found.append(one)
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
    measures = FIGURES.items()
    show(
        ["", *names],
        ([word, *(_figure(name, each) for each in found)] for name, word in measures),
    )
    out.print("")
    rows = []
    for i, name in enumerate(system.classes):
        count = int((scene.jobs.task_classes == i).sum())
        means = [each.by_class[i] for each in found]
        said = [UNKNOWN if mean != mean else duration.in_words(mean) for mean in means]
        rows.append([name, f"{count:,}", *said])
    show(["mean response", ">jobs", *names], rows)


def _figure(name: str, replay: traces.Replay) -> str:
    """Write a measure of a replay; only counts are known if no job finished."""
    value = replay.figures.get(name)
    if value is None:
        return UNKNOWN
    if name in ("lost", "unfinished"):
        return f"{value:,}"
    if name == "mean_slowdown":
        return f"{value:.4g}"
    return f"{100 * value:.0f} %" if name == "utilisation" else duration.in_words(value)
