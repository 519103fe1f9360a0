"""Faults: when machines fail and for how long, drawn once, shown, edited, and run again."""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

import numpy as np

from ..model import InputError, System
from .rows import read_rows, write_rows

__all__ = ["Fault", "draw_faults", "read_faults", "write_faults"]

COLUMNS = ["machine", "start", "end"]


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
