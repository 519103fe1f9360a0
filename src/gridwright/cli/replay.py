"""``gridwright replay``: what once happened once more, a run of ours or a trace of others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from .argument import Json, listed, plot_path
from .conduct import Address, Executor, Expect, Unit, conduct_and_show, given_options
from .output import print_json, written
from .replayed import Scene, as_json, show_replays, write_jobs
from .run import progress_bar, writable
from .trace import Classes, From, Load, Machines, Processors, To, name_of, window

__all__ = ["replay"]

USUAL = "fcfs,mct,gcmu,lpas_dg"
SQLITE = b"SQLite format 3"
MINUTE = 60.0
"""Seconds that the replay of a trace on real machines takes, unless a time unit is given."""


def replay(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TRACE",
            help="A run, by its number in 'gridwright runs' or its journal's path; or a trace of "
            "jobs (.swf, .gwf).",
            show_default=False,
        ),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "--policies",
            help=f"A run: another policy. A trace: policies to be compared; {USUAL}.",
            metavar="POLICY,…",
            show_default=False,
        ),
    ] = None,
    executor: Executor = None,
    address: Address = None,
    time_unit: Unit = None,
    expect: Expect = True,
    classes: Classes = "",
    machines: Machines = "",
    processors: Processors = "times",
    from_: From = "0",
    to: To = None,
    scale: Annotated[
        float, typer.Option(help="Multiply times between arrivals: below 1 it gets busier.")
    ] = 1.0,
    load: Load = None,
    failures: Annotated[
        Path | None,
        typer.Option(help="A failure trace, whose nodes the machines fail like.", metavar="TRACE"),
    ] = None,
    failures_from: Annotated[
        str | None,
        typer.Option(
            help="Where in the failure trace it begins: a date, or 30d after its start; where "
            "most fail.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    failures_scale: Annotated[
        float, typer.Option(help="Multiply the failure trace's times: below 1 more failures.")
    ] = 1.0,
    nodes: Annotated[
        str,
        typer.Option(help="Which nodes: spread over all, or the worst.", metavar="spread|worst"),
    ] = "spread",
    save: Annotated[
        Path | None,
        typer.Option(help="Only write an experiment, for 'gridwright run'.", metavar="FOLDER"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write every job's times.", metavar="PATH")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the policies side by side.", metavar="PATH")
    ] = None,
    json: Json = False,
) -> None:
    """Replay a run's jobs and failures, or those of a trace, under other policies."""
    about_failures = {
        "failures-from": failures_from is not None,
        "failures-scale": failures_scale != 1,
        "nodes": nodes != "spread",
    }
    tables = {"csv": csv is not None, "plot": plot is not None}
    real = given_options(executor=executor, address=address, time_unit=time_unit)
    if not _is_trace(what):
        about_trace = {
            "classes": bool(classes),
            "machines": bool(machines),
            "processors": processors != "times",
            "from": from_ != "0",
            "to": to is not None,
            "scale": scale != 1,
            "load": load is not None,
            "failures": failures is not None,
            "save": save is not None,
        }
        why = f"is for traces, and {what!r} is no file of one"
        _refuse({**about_trace, **about_failures, **tables}, why)
        _replay_run(what, given_options(policy=policy, **real), json=json, expect=expect)
        return
    if failures is None:
        _refuse(about_failures, "is about a failure trace; give one: --failures TRACE")
    if save is not None or real:
        _refuse(tables, "is for policies that are compared in the model's time")
    picture = plot_path(plot) if plot else None
    writable(csv, "--csv")
    scene = _scene(
        Path(what),
        (classes, machines, processors, load),
        (from_, to, scale),
        (failures, failures_from, failures_scale, nodes),
    )
    names = listed(policy or USUAL)
    if save is not None:
        _save(scene, names, real, save, json=json)
    elif real:
        experiment = _experiment(scene, names, real)
        faults = scene.outages.faults if scene.outages else ()
        same = {"jobs": scene.jobs, "faults": faults}
        conduct_and_show(experiment, same, json=json, expect=False)
    else:
        _compare(scene, names, picture, csv, json=json)


def _is_trace(what: str) -> bool:
    file = Path(what)
    if what.isdigit() or not os.path.isfile(what):
        if any(ending in file.suffixes for ending in (".swf", ".gwf")):
            from ..model import InputError

            raise InputError(f"{what}: there is no such file")
        return False
    with file.open("rb") as opened:
        return opened.read(len(SQLITE)) != SQLITE


def _refuse(given: dict[str, bool], why: str) -> None:
    """Refuse options that would have no effect."""
    from ..model import InputError

    for name, was_given in given.items():
        if was_given:
            raise InputError(f"--{name} {why}")


def _replay_run(number: str, given: dict[str, Any], *, json: bool, expect: bool) -> None:
    from ..testbed import Run

    with Run.find(number) as old:
        old.journal.check()
        chosen, same = old.experiment.replace(**given), {"jobs": old.jobs, "faults": old.faults}
    conduct_and_show(chosen, same, json=json, expect=expect)


def _scene(
    path: Path,
    how: tuple[str, str, str, float | None],
    when: tuple[str, str | None, float],
    failing: tuple[Path | None, str | None, float, str],
) -> Scene:
    from ..traces import machines_for, outages, read_failures, read_jobs, system_of, workload
    from ..traces.duration import moment

    classes, machines, processors, load = how
    begin, end, scale = when
    trace = read_jobs(path)
    work = workload(trace, classes, processors=processors, scale=scale, **window(trace, begin, end))
    work.account.take_over(trace.account)
    system = system_of(work, machines_for(work, machines), name=name_of(path), load=load)
    file, start, failures_scale, nodes = failing
    found = None
    if file is not None:
        known = read_failures(file)
        first = float(known.start.min())
        found = outages(
            known,
            system.shape[1],
            work.length,
            start=None if start is None else moment(start, first),
            scale=failures_scale,
            nodes=nodes,
        )
    return Scene(system.name, work, system, work.jobs(), found)


def _experiment(scene: Scene, names: list[str], real: dict[str, Any]) -> Any:
    from ..model import InputError
    from ..testbed import Experiment

    if len(names) != 1:
        raise InputError("real machines run one policy at a time; expected --policy POLICY")
    unit = {"time_unit": MINUTE / scene.work.length, **real}
    return Experiment(
        name=scene.name,
        system=scene.system,
        policy=names[0],
        duration=scene.work.length,
        failures="none",
        **unit,
    )


def _save(
    scene: Scene, names: list[str], real: dict[str, Any], folder: Path, *, json: bool
) -> None:
    """Write a system, its jobs and failures, and the experiment that names them."""
    from ..model import InputError
    from ..model.toml import format_toml
    from ..testbed import write_faults

    words: dict[str, Any] = {
        "name": scene.name,
        "system": "system.toml",
        "policy": names[0],
        "duration": scene.work.length,
        "time_unit": MINUTE / scene.work.length,
        "jobs": "jobs.csv",
        "failures": "failures.csv" if scene.outages else "none",
        **real,
    }
    _experiment(scene, names, real)  # it is checked before anything is written
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scene.system.to_file(folder / "system.toml")
        scene.jobs.write(folder / "jobs.csv", scene.system)
        if scene.outages:
            write_faults(folder / "failures.csv", scene.outages.faults, scene.system)
        (folder / "experiment.toml").write_text(format_toml(words), "utf-8")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from None
    if json:
        print_json({"experiment": str(folder / "experiment.toml"), "jobs": len(scene.jobs)})
        return
    print(f"written: {folder / 'experiment.toml'}, {len(scene.jobs):,} jobs")


def _compare(
    scene: Scene, names: list[str], picture: Path | None, csv: Path | None, *, json: bool
) -> None:
    from ..policies import find
    from ..traces import replay as run

    chosen = [find(name) for name in names]  # all are checked before any time is spent
    faults = scene.outages.faults if scene.outages else ()
    found = []
    with progress_bar() as report:
        for name, policy in zip(names, chosen, strict=True):
            found.append(
                run(
                    scene.system,
                    scene.jobs,
                    policy,
                    faults,
                    progress=lambda done, name=name: report(name, done),  # type: ignore[misc]
                )
            )
    if csv:
        write_jobs(found, csv)
    if picture:
        from ..plots import draw_replays

        draw_replays(found, scene.work.length, picture)
    if json:
        print_json(as_json(scene, found))
    else:
        show_replays(scene, found)
        written(csv, picture)
