"""``gridwright runs``: past and present runs of experiments."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from . import options
from .options import path_option, policy_option
from .output import check_files, finish, known, show
from .packages import grid, plots, testbed
from .run import conduct_and_show, given_options, place, show_report


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
    found = [testbed.overview(path) for path in testbed.runs()]
    rows = [
        each._asdict()
        if each.state != "unreadable"
        else {"run": each.run, "state": each.state, "error": each.name}
        for each in found
    ]
    finish(lambda: {"runs": rows}, lambda: _show_runs(found), json=json)


def _show_runs(found: list[testbed.Overview]) -> None:
    if not found:
        print("There are no runs yet; 'gridwright run MGST-1' makes one.")
        return
    rows, unreadable = [], []
    for each in found:
        if each.state == "unreadable":
            unreadable.append(f"run {each.run} cannot be read: {each.name}")
            continue
        names = str(each.run), each.state, each.name, each.system, each.policy
        response = known(each.mean_response, ".4g")
        rows.append((*names, f"{each.time_units:.1f}", str(each.finished), response))
    columns = ">run", "state", "name", "system", "policy", ">units", ">finished", ">response"
    show(columns, rows)
    print(*unreadable, sep="\n", end="\n" if unreadable else "")


@app.command("show")
def show_run(
    number: options.RunNumber,
    expect: options.Expect = True,
    within: options.WithinLive = "",
    plot: Annotated[
        Path | None, path_option("Draw the response time of every job over time.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show a run beside its simulated twin, its expected result and published numbers."""
    check_files(plot=plot)
    with testbed.Run.find(number) as run:
        limits = options.limits_of(within)
        found = testbed.report(run, expected=expect, within=limits)
        files = {plot: lambda path: plots.draw_run(run, path)}
        finish(found.as_json, partial(show_report, found), json=json, files=files)


@app.command()
def pause(number: options.RunNumber, json: options.Json = False) -> None:
    """Stop the clock of a run: no job arrives or starts, and no machine fails."""
    _change_clock(number, "pause", json=json)


@app.command()
def resume(number: options.RunNumber, json: options.Json = False) -> None:
    """Start the clock of a paused run again."""
    _change_clock(number, "resume", json=json)


def _change_clock(number: str, verb: str, *, json: bool) -> None:
    with testbed.Run.find(number) as run:
        changed = run.pause() if verb == "pause" else run.resume()
        words = {"run": run.number, "did": verb, "changed": changed, "state": run.state}
        finish(lambda: words, lambda: print(f"{run.name} is {run.state}"), json=json)


@app.command()
def export(
    number: options.RunNumber,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the tables.")],
    json: options.Json = False,
) -> None:
    """Write everything about a run, or about a grid with this name or journal, as CSV tables."""
    files = [str(path) for path in _exported(number, folder)]
    finish(lambda: {"files": files}, lambda: print(*files, sep="\n"), json=json)


def _exported(number: str, folder: Path) -> list[Path]:
    if not number.isdecimal():
        with closing(grid.find_journal(number)) as journal:
            if journal.told("kind").get("kind") == "grid":
                return grid.export(journal, folder)
    with testbed.Run.find(number) as run:
        return testbed.export(run, folder)


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
    given = given_options(policy=policy, time_unit=time_unit)
    with testbed.Run.find(number) as old:
        old.journal.check()
        chosen = old.experiment.replace(**given, **place(on, executor, address))
        same = {"jobs": old.jobs, "faults": old.faults}
    conduct_and_show(chosen, same, json=json, expect=expect)
