"""``gridwright runs`` and ``gridwright export``: what past runs came to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from .argument import Json
from .output import console, known, print_json, show, table, written

if TYPE_CHECKING:
    from ..grid import Mapper
    from ..testbed import Report, Run

__all__ = ["Number", "app", "export", "picture", "show_report"]


class _Runs(TyperGroup):
    """``runs 3`` is ``runs show 3``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        is_run = bool(args) and args[0] not in self.commands and not args[0].startswith("-")
        return super().parse_args(ctx, ["show", *args] if is_run else args)


app = typer.Typer(cls=_Runs, help="List the runs of experiments; 'runs N' shows one.")
Number = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Its number in 'gridwright runs', or a journal's path."),
]


@app.callback(invoke_without_command=True)
def list_runs(context: typer.Context, json: Json = False) -> None:
    """List the runs of experiments; 'runs N' shows one."""
    if context.invoked_subcommand is not None:
        return
    from ..model import InputError
    from ..testbed import Run, runs

    rows = []
    for path in runs():
        try:
            with Run(path) as run:
                rows.append(_row(run))
        except InputError as error:
            rows.append({"run": int(path.stem), "state": "unreadable", "error": str(error)})
    if json:
        print_json({"runs": rows})
        return
    if not rows:
        print("no runs yet: 'gridwright run MGST-1' makes one")
        return
    out = table(">run", "state", "name", "system", "policy", ">units", ">finished", ">response")
    for row in rows:
        if "error" not in row:
            names = (escape(str(row[key])) for key in ("run", "state", "name", "system", "policy"))
            units, response = f"{row['time_units']:.1f}", known(row["mean_response"], ".4g")
            out.add_row(*names, units, str(row["finished"]), response)
    show(console(), out)
    for row in rows:
        if "error" in row:
            print(f"run {row['run']} cannot be read: {row['error']}")


@app.command("show")
def show_run(
    number: Number,
    expect: Annotated[
        bool,
        typer.Option("--expect/--no-expect", help="Simulate what is to be expected of such a run."),
    ] = True,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the response of every job against time.", metavar="PATH"),
    ] = None,
    json: Json = False,
) -> None:
    """Show a run beside its twin, what was to be expected, and what was published."""
    from ..testbed import Run, report
    from .argument import plot_path

    picture = plot_path(plot) if plot else None
    with Run.find(number) as run:
        found = report(run, expected=expect)
        if picture is not None:
            from ..plots import draw_run

            draw_run(run, picture)
        if json:
            print_json(found.as_json())
        else:
            show_report(found)
            written(picture)


@app.command()
def pause(number: Number, json: Json = False) -> None:
    """Let no time pass for a run: no job comes, none is started, no machine fails."""
    _stand_still(number, "pause", json=json)


@app.command()
def resume(number: Number, json: Json = False) -> None:
    """Let time pass again for a run that was paused."""
    _stand_still(number, "resume", json=json)


def _stand_still(number: str, verb: str, *, json: bool) -> None:
    from ..testbed import Run

    with Run.find(number) as run:
        changed = run.pause() if verb == "pause" else run.resume()
        if json:
            print_json({"run": run.number, "did": verb, "changed": changed, "state": run.state})
        else:
            print(f"{run.name} is {run.state}")


def export(
    number: Number,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the tables go.")],
    json: Json = False,
) -> None:
    """Write everything about a run as tables for a spreadsheet."""
    from ..testbed import Run
    from ..testbed import export as write

    with Run.find(number) as run:
        files = write(run, folder)
    if json:
        print_json({"files": [str(path) for path in files]})
    else:
        for path in files:
            print(path)


def show_report(found: Report) -> None:
    """Print a run beside everything there is to set beside it."""
    run, experiment = found.run, found.run.experiment
    unit = experiment.time_unit
    print(
        f"{run.name}: {experiment.name or run.system.name} under {run.about['policy']}, "
        f"{found.statistics.until:g} time units of {unit:g} s, {run.state}"
    )
    jobs = found.statistics.overall
    print(
        f"{jobs.arrived} jobs arrived, {jobs.finished} finished, {jobs.failed} failed, "
        f"{jobs.unfinished} unfinished; lost with a machine {jobs.lost}, timed out {jobs.timed_out}"
    )
    print()
    _response_table(found)
    print()
    if found.gap.relative == found.gap.relative:
        shares = ", ".join(f"{name} {value:+.4f}" for name, value in found.gap.shares.items())
        print(f"The run is {100 * found.gap.relative:+.1f} % from its twin: {shares}.")
        low, high = found.gap.low, found.gap.high
        print(f"Twins whose jobs come a moment earlier or later have {low:.3f} to {high:.3f}.")
    elif found.gap.twin == 0:
        print("Jobs are too short for the twin to tell their response from 0.")
    else:
        print("Too few jobs have finished to set the run beside its twin.")
    if found.expected is not None and found.expected.low == found.expected.low:
        low, high = found.expected.low, found.expected.high
        long_run = f"the mean response is {found.expected.long_run:.4g}"
        print(
            f"In the long run {long_run if found.expected.settles else 'jobs wait without end'}; "
            f"19 of 20 runs of this length are within {low:.4g} to {high:.4g}."
        )


def _response_table(found: Report) -> None:
    published = found.published
    columns = ["class", ">waiting", ">delay", ">response", ">twin", ">arrivals", ">desired"]
    platforms = [name for name in ("testbed", "simulation") if published]
    rows = table(*columns, *(f">published {name}" for name in platforms))
    desired = [*found.run.system.arrival_rates, found.run.system.arrival_rates.sum()]
    measured: dict[str, Any] = {**found.statistics.classes, "overall": found.statistics.overall}
    twins = {**found.twin.classes, "overall": found.twin.overall}
    for (name, figures), rate in zip(measured.items(), desired, strict=True):
        rows.add_row(
            escape(name),
            known(figures.waiting, ".3f"),
            known(figures.communication, ".4f"),
            known(figures.response, ".3f"),
            known(twins[name].response, ".3f"),
            known(figures.arrival_rate, ".2f"),
            f"{rate:.2f}",
            *(published.get(name, {}).get(each, "") for each in platforms),
        )
    show(console(), rows)


def picture(run: Run, mapper: Mapper) -> Any:
    """Draw how a run that goes on is doing."""
    from rich.console import Group
    from rich.text import Text

    book, journal = mapper.book, run.journal
    finished = journal.count().get("finished", 0)
    now, length = mapper.now(), run.experiment.duration
    head = Text(
        f"{run.name}: {run.about['policy']}  {now:.1f} of {length:g} time units  "
        f"{finished} finished, mean response {known(journal.mean_response(), '.3f')}"
    )
    classes = table("class", ">waiting", ">arrived", "")
    for i, name in enumerate(mapper.classes):
        alone = "nobody can run it now" if i in mapper.stuck else ""
        arrived = str(int(book.classes[i].arrived))
        classes.add_row(name, str(len(book.waiting[i])), arrived, alone)
    machines = table("machine", "state", "running", ">queued")
    for j, name in enumerate(mapper.executor.machines):
        job = book.running[j]
        state = "down" if not book.machines[j].up else "paused" if book.closed[j] else "up"
        doing = "" if job is None else f"job {job.number} of class {mapper.classes[job.task_class]}"
        machines.add_row(name, state, doing, str(len(book.own[j])))
    return Group(head, classes, machines)


def _row(run: Run) -> dict[str, Any]:
    said = run.about["experiment"]
    return {
        "run": run.number,
        "state": run.state,
        "name": said.get("name", ""),
        "system": said["system"].get("name", ""),
        "policy": run.about["policy"],
        "time_unit": run.about["unit"],
        "time_units": run.until,
        "finished": run.journal.count().get("finished", 0),
        "mean_response": run.journal.mean_response(),
    }
