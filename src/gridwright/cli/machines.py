"""``gridwright machines``: show and control the machines of a running grid."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from .options import Json, option
from .output import finish, show
from .packages import grid, model

app = typer.Typer(help="Show, control and measure machines.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="MACHINE", help="Its name in 'gridwright machines list'.")
]
Which = Annotated[
    str | None,
    option(
        "Number of a run, or path of the journal of a grid; needed if several are running.",
        "RUN",
        "--run",
    ),
]
PATIENCE = 10.0
"""Seconds within which a grid must answer."""


@app.command("list")
def list_machines(run: Which = None, json: Json = False) -> None:
    """List the machines of a running grid: state, running job, jobs finished and lost."""
    with closing(_journal(run)) as journal, journal.blamed():
        states = grid.machine_states(journal)
    columns = "machine", "state", ">since", "running", ">finished", ">lost", ">CPU", ">expected"
    rows = []
    for each in states:
        doing = "" if each.running is None else f"job {each.running}"
        found = (each.measured, each.predicted)
        shares = ["" if share is None else f"{share:.2f}" for share in found]
        counts = str(each.finished), str(each.lost)
        rows.append((each.name, each.state, f"{each.since:.1f}", doing, *counts, *shares))
    words = {"machines": [each._asdict() for each in states]}
    finish(lambda: words, lambda: show(columns, rows), json=json)


VERBS = {
    "start": (
        "{machine} is started",
        "Start a machine that was killed or has failed; its paused state does not change.",
    ),
    "pause": (
        "{machine} is paused",
        "Give a machine no further jobs; the job that it is running continues.",
    ),
    "resume": (
        "{machine} is resumed",
        "Give a machine jobs again; start it again if it was killed.",
    ),
    "drain": (
        "{machine} is drained",
        "Give a machine no further jobs, and wait until it has finished the one it is running.",
    ),
    "ping": (
        "{machine} answers in {milliseconds:.2f} ms",
        "Measure how long a machine takes to answer, in milliseconds.",
    ),
    "kill": (
        "{machine} is killed",
        "End a machine at once, and the job that it is running, until it is started or resumed.",
    ),
}
"""Commands for one machine: what they print, and their help."""


def _command(verb: str) -> Callable[..., None]:
    """Return the command that asks a running grid to do something to a machine."""

    def command(machine: Name, run: Which = None, json: Json = False) -> None:
        patience = float("inf") if verb == "drain" else PATIENCE
        with closing(_journal(run)) as journal:
            answer = grid.request(journal, verb, machine, patience=patience)
        seconds = float(answer) if verb == "ping" else None
        line = VERBS[verb][0].format(machine=machine, milliseconds=1000 * (seconds or 0.0))
        finish(
            lambda: {"machine": machine, "did": verb, "answer": answer, "seconds": seconds},
            lambda: print(line),
            json=json,
        )

    return command


for _verb, (_, _help) in VERBS.items():
    app.command(_verb, help=_help)(_command(_verb))


def _journal(which: str | None) -> grid.Journal:
    """Open the journal of a running grid."""
    found = grid.find_running(which)
    if len(found) == 1:
        return found[0]
    for journal in found:
        journal.close()
    if not found:
        if which is None:
            raise model.InputError("no grid is running; 'gridwright run' starts one")
        name = f"run {which}" if which.isdigit() else which
        raise model.InputError(f"{name} is not running, so it has no machines")
    names = " or ".join(f"--run {_name(journal.path)}" for journal in found)
    raise model.InputError(f"{len(found)} grids are running; choose one: {names}")


def _name(path: Path) -> str:
    """Return the value of --run for a journal: its number if it is that of a run."""
    return path.stem if path.parent.name == "runs" and path.stem.isdigit() else str(path)
