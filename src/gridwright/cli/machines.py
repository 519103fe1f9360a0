"""``gridwright machines``: look at the machines of a running grid, and step in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json
from .output import console, print_json, show, table

if TYPE_CHECKING:
    from ..grid import Journal

__all__ = ["app"]

app = typer.Typer(help="Look at the machines of a running grid, and step in.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(metavar="MACHINE", help="Its name, as 'gridwright machines list' has it."),
]
Which = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="The number of a run, or the path of a grid's journal; needed if several are running.",
        metavar="RUN",
        show_default=False,
    ),
]
PAST = {
    "start": "started",
    "pause": "paused",
    "resume": "resumed",
    "drain": "drained",
    "kill": "killed",
}
PATIENCE = 10.0
"""Seconds in which a grid must answer."""


@app.command("list")
def list_machines(run: Which = None, json: Json = False) -> None:
    """List the machines, what they are running, and what has become of them."""
    from ..grid import machine_states

    journal = _journal(run)
    try:
        with journal.blamed():
            states = machine_states(journal)
    finally:
        journal.close()
    if json:
        print_json({"machines": [each._asdict() for each in states]})
        return
    rows = table("machine", "state", ">since", "running", ">finished", ">lost", ">CPU", ">expected")
    for each in states:
        doing = "" if each.running is None else f"job {each.running}"
        found = (each.measured, each.predicted)
        shares = ["" if share is None else f"{share:.2f}" for share in found]
        since = f"{each.since:.1f}"
        counts = str(each.finished), str(each.lost)
        rows.add_row(each.name, each.state, since, doing, *counts, *shares)
    show(console(), rows)


@app.command()
def start(machine: Name, run: Which = None, json: Json = False) -> None:
    """Start a machine that was killed or has failed; whether it takes jobs is as it was."""
    _ask("start", machine, run, json=json)


@app.command()
def pause(machine: Name, run: Which = None, json: Json = False) -> None:
    """Let a machine take no further jobs; what it is running goes on."""
    _ask("pause", machine, run, json=json)


@app.command()
def resume(machine: Name, run: Which = None, json: Json = False) -> None:
    """Let a machine take jobs again; one that was killed is started again."""
    _ask("resume", machine, run, json=json)


@app.command()
def drain(machine: Name, run: Which = None, json: Json = False) -> None:
    """Let a machine take no further jobs, and wait until it has ended what it is running."""
    _ask("drain", machine, run, json=json, patience=float("inf"))


@app.command()
def ping(machine: Name, run: Which = None, json: Json = False) -> None:
    """Measure how long a machine takes to answer."""
    _ask("ping", machine, run, json=json)


@app.command()
def kill(machine: Name, run: Which = None, json: Json = False) -> None:
    """End a machine, in the middle of a job too, until it is resumed."""
    _ask("kill", machine, run, json=json)


def _journal(which: str | None) -> Journal:
    """Open the journal of a grid that is running."""
    from ..grid import find_running
    from ..model import InputError

    found = find_running(which)
    if len(found) == 1:
        return found[0]
    for journal in found:
        journal.close()
    if not found:
        if which is None:
            raise InputError("no grid is running; 'gridwright run' starts one")
        name = f"run {which}" if which.isdigit() else which
        raise InputError(f"{name} is not running; its machines are gone")
    names = " or ".join(f"--run {_name(journal.path)}" for journal in found)
    raise InputError(f"{len(found)} grids are running; choose one: {names}")


def _name(path: Path) -> str:
    """Return what --run may call a journal: its number if it is that of a run."""
    return path.stem if path.parent.name == "runs" and path.stem.isdigit() else str(path)


def _ask(
    verb: str, machine: str, run: str | None, *, json: bool, patience: float = PATIENCE
) -> None:
    from ..grid import request

    journal = _journal(run)
    try:
        answer = request(journal, verb, machine, patience=patience)
    finally:
        journal.close()
    if json:
        seconds = float(answer) if verb == "ping" else None
        print_json({"machine": machine, "did": verb, "answer": answer, "seconds": seconds})
    elif verb == "ping":
        print(f"{machine} answers in {1000 * float(answer):.2f} ms")
    else:
        print(f"{machine} is {PAST[verb]}")
