"""Looking at a grid from another process, through its journal."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ..model import InputError
from .journal import Journal, home

__all__ = ["MachineState", "find_running", "machine_states", "request"]

STATES = {"up": "up", "resumed": "up", "down": "down", "paused": "paused", "killed": "killed"}
"""What an event makes of a machine."""


class MachineState(NamedTuple):
    """A machine as the journal has it."""

    name: str
    state: str
    since: float
    """Time units since the grid began."""
    running: int | None
    finished: int
    lost: int
    """Jobs that were running when it went down."""
    availability: float | None
    """The last reading of its CPU, if there was one."""


def find_running(which: str | None = None) -> list[Journal]:
    """Open the journals of the grids that are running: one by number or path, or all."""
    if which is None:
        paths = sorted([*(home() / "runs").glob("*.sqlite"), *(home() / "grids").glob("*.sqlite")])
    elif which.isdigit():
        paths = [home() / "runs" / f"{which}.sqlite"]
        if not paths[0].is_file():
            raise InputError(f"there is no run {which}; 'gridwright runs' lists those that are")
    else:
        paths = [Path(which)]
    found = []
    for path in paths:
        try:
            journal = Journal(path, new=False)
        except InputError:
            if which is not None:
                raise
            continue
        if journal.is_claimed():
            found.append(journal)
        else:
            journal.close()
    return found


def machine_states(journal: Journal) -> list[MachineState]:
    """Read off a journal how its machines are."""
    names = list(journal.told("machines").get("machines", ()))
    states: dict[str, tuple[str, float]] = {}
    readings: dict[str, float] = {}
    for entry in journal.events(*STATES, "availability", "timed out"):
        if entry.machine is None:
            continue
        if entry.kind == "availability":
            readings[entry.machine] = float(entry.detail.split()[-1])
            continue
        state = "down" if entry.kind == "timed out" else STATES[entry.kind]
        if (state, states.get(entry.machine, ("",))[0]) != ("down", "killed"):
            states[entry.machine] = (state, entry.time)
    names += [name for name in states if name not in names]
    counted = "machine, {} FROM job WHERE stage = ? GROUP BY machine"
    running = dict(journal.select(counted.format("min(number)"), ("sent",)))
    finished = dict(journal.select(counted.format("count(*)"), ("finished",)))
    losses = Counter(entry.machine for entry in journal.events("lost"))
    return [
        MachineState(
            name,
            *states.get(name, ("not yet up", 0.0)),
            running.get(name),
            finished.get(name, 0),
            losses.get(name, 0),
            readings.get(name),
        )
        for name in names
    ]


def request(
    journal: Journal, verb: str, machine: str, value: str = "", patience: float = 10.0
) -> str:
    """Ask something of the grid that writes a journal, and wait so many seconds for its answer."""
    if not journal.is_claimed():
        raise InputError("the grid is not running")
    number = journal.ask(verb, machine, value)
    began = time.monotonic()
    while (answer := journal.answered(number)) is None:
        if not journal.is_claimed():
            raise InputError("the grid has ended before it answered")
        if time.monotonic() - began > patience:
            raise InputError(f"the grid did not answer within {patience:g} seconds")
        time.sleep(0.05)
    if answer.startswith("error: "):
        raise InputError(answer.removeprefix("error: "))
    return answer
