"""``gridwright runs``: past and present runs of experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from . import options
from .options import path_option, policy_option
from .output import check_files, console, finish, known, show, table
from .run import conduct_and_show, given_options, place, show_report

if TYPE_CHECKING:
    from ..testbed import Run


class _Runs(TyperGroup):
    """Accept ``runs`` for ``runs list`` and ``runs 3`` for ``runs show 3``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not args or args == ["--json"]:
            args = ["list", *args]
        elif args[0] not in self.commands and not args[0].startswith("-"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Runs, help="List, show, pause, export and replay the runs of experiments.")


@app.command("list")
def list_runs(json: options.Json = False) -> None:
    """List the runs of experiments."""
    from ..model import InputError
    from ..testbed import Run, runs

    rows = []
    for path in runs():
        try:
            with Run(path) as run:
                rows.append(_row(run))
        except InputError as error:
            rows.append({"run": int(path.stem), "state": "unreadable", "error": str(error)})
    finish(lambda: {"runs": rows}, lambda: _show_runs(rows), json=json)


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


def _show_runs(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print("There are no runs yet; 'gridwright run MGST-1' makes one.")
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
    number: options.RunNumber,
    expect: options.Expect = True,
    plot: Annotated[
        Path | None, path_option("Draw the response time of every job over time.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show a run beside its simulated twin, its expected result and published numbers."""
    from ..plots import draw_run
    from ..testbed import Run, report

    check_files(plot=plot)
    with Run.find(number) as run:
        found = report(run, expected=expect)
        finish(
            found.as_json,
            lambda: show_report(found),
            json=json,
            files={plot: lambda path: draw_run(run, path)},
        )


@app.command()
def pause(number: options.RunNumber, json: options.Json = False) -> None:
    """Stop the clock of a run: no job arrives or starts, and no machine fails."""
    _change_clock(number, "pause", json=json)


@app.command()
def resume(number: options.RunNumber, json: options.Json = False) -> None:
    """Start the clock of a paused run again."""
    _change_clock(number, "resume", json=json)


def _change_clock(number: str, verb: str, *, json: bool) -> None:
    from ..testbed import Run

    with Run.find(number) as run:
        changed = run.pause() if verb == "pause" else run.resume()
        words = {"run": run.number, "did": verb, "changed": changed, "state": run.state}
        finish(lambda: words, lambda: print(f"{run.name} is {run.state}"), json=json)


@app.command()
def export(
    number: options.RunNumber,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the tables.")],
    json: options.Json = False,
) -> None:
    """Write everything about a run as CSV tables."""
    from ..testbed import Run
    from ..testbed import export as write

    with Run.find(number) as run:
        files = [str(path) for path in write(run, folder)]
    finish(lambda: {"files": files}, lambda: print(*files, sep="\n"), json=json)


@app.command()
def replay(
    number: options.RunNumber,
    policy: Annotated[
        str | None,
        policy_option("A policy, by name or by the path of a file, instead of that of the run."),
    ] = None,
    on: options.RunOn = None,
    time_unit: options.TimeUnit = None,
    expect: options.Expect = True,
    json: options.Json = False,
    executor: options.OldExecutor = None,
    address: options.OldAddress = None,
) -> None:
    """Run the jobs and failures of a run again, under another policy or on other machines."""
    from ..testbed import Run

    given = given_options(policy=policy, time_unit=time_unit)
    with Run.find(number) as old:
        old.journal.check()
        chosen = old.experiment.replace(**given, **place(on, executor, address))
        same = {"jobs": old.jobs, "faults": old.faults}
    conduct_and_show(chosen, same, json=json, expect=expect)
