"""Faults: when machines fail and for how long, drawn once, shown, edited, and run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Discriminator, Tag

from ..model import InputError, System
from ..model.record import NonNegative, Positive
from .rows import read_rows, write_rows

__all__ = [
    "Fault",
    "FaultsGiven",
    "Spells",
    "check_faults",
    "draw_faults",
    "read_faults",
    "rows_of",
    "spells",
    "write_faults",
]

COLUMNS = ["machine", "start", "end"]

Row = tuple[str, NonNegative, Positive]
"""A machine's name, a start and an end."""
FaultsGiven = Annotated[
    Annotated[str, Tag("\0one")] | Annotated[tuple[Row, ...], Tag("\0several")],
    Discriminator(lambda value: "\0several" if isinstance(value, list | tuple) else "\0one"),
]
"""How an experiment says which failures it has: a word, a path, or the trace itself."""


class Fault(NamedTuple):
    """A time during which a machine is not there."""

    machine: int
    start: float
    end: float


def draw_faults(system: System, duration: float, seed: int) -> tuple[Fault, ...]:
    """Draw the faults of every machine, from a stream of its own, in the order of their start.

    >>> system = System(arrivals=[1], rates=[[2]], failures={"mean_uptime": 9, "mean_repair": 1})
    >>> len(draw_faults(system, 30, seed=1))
    2
    """
    failures = system.failures
    if failures is None:
        return ()
    parts = (failures.mean_uptime, failures.uptime, failures.mean_repair, failures.repair)
    found = []
    for j, (up, up_shape, repair, repair_shape) in enumerate(
        zip(*map(system.per_machine, parts), strict=True)
    ):
        rng = np.random.default_rng([seed, 1_000_000 + j])
        at = 0.0
        while np.isfinite(up):
            at += float(up_shape.sample(rng)) / up_shape.mean * up
            if at >= duration:
                break
            end = at + float(repair_shape.sample(rng)) / repair_shape.mean * repair
            found.append(Fault(j, at, end))
            at = end
    return tuple(sorted(found, key=lambda fault: fault.start))


def read_faults(path: str | PathLike[str], system: System) -> tuple[Fault, ...]:
    """Read a failure trace (CSV: machine, start, end) for the machines of a system."""
    found = read_rows(path, COLUMNS, lambda row, where: _fault(row, system, where))
    return _in_order(found, system, str(path))


def check_faults(
    rows: Iterable[tuple[str, float, float]], system: System, name: str = "failures"
) -> tuple[Fault, ...]:
    """Return a trace for the machines of a system, in the order of the faults' start.

    >>> check_faults([("1", 2.0, 3.5)], System(arrivals=[1], rates=[[2]]))
    (Fault(machine=0, start=2.0, end=3.5),)
    """
    found = [
        _fault([str(word) for word in row], system, f"{name}, entry {number}")
        for number, row in enumerate(rows, start=1)
    ]
    return _in_order(found, system, name)


def rows_of(faults: Iterable[Fault], system: System) -> list[tuple[str, float, float]]:
    """Return a trace as an experiment says it: with the names of the machines."""
    return [(system.machines[each.machine], each.start, each.end) for each in faults]


class Spells(NamedTuple):
    """How long a machine is up and down in a trace, on average."""

    faults: int
    up: float
    """Time units from a repair, or from the beginning, to the next fault."""
    down: float


def spells(faults: Sequence[Fault], machine: int) -> Spells:
    """Return the mean times that a machine is up and down in a trace; nan where it never fails.

    >>> spells([Fault(0, 10.0, 12.0), Fault(0, 20.0, 21.0)], 0)
    Spells(faults=2, up=9.0, down=1.5)
    """
    own = sorted(fault for fault in faults if fault.machine == machine)
    if not own:
        return Spells(0, float("nan"), float("nan"))
    down = sum(fault.end - fault.start for fault in own)
    return Spells(len(own), (own[-1].end - down) / len(own), down / len(own))


def _in_order(found: list[Fault], system: System, path: str) -> tuple[Fault, ...]:
    found.sort(key=lambda fault: fault.start)
    last = dict.fromkeys(range(len(system.machines)), 0.0)
    for fault in found:
        if fault.start < last[fault.machine]:
            name = system.machines[fault.machine]
            raise InputError(f"{path}: two faults of machine {name} overlap at {fault.start:g}")
        last[fault.machine] = fault.end
    return tuple(found)


def write_faults(path: str | PathLike[str], faults: tuple[Fault, ...], system: System) -> None:
    """Write a failure trace, to be read or edited."""
    names = system.machines
    rows = [[names[each.machine], repr(each.start), repr(each.end)] for each in faults]
    write_rows(path, [COLUMNS, *rows])


def _fault(row: list[str], system: System, where: str) -> Fault:
    if row[0] not in system.machines:
        raise InputError(f"{where}: no machine {row[0]!r}; there are {', '.join(system.machines)}")
    try:
        start, end = float(row[1]), float(row[2])
    except ValueError:
        raise InputError(f"{where}: expected numbers for start and end") from None
    if not 0 <= start < end:
        raise InputError(f"{where}: expected an end after the start")
    return Fault(system.machines.index(row[0]), start, end)
