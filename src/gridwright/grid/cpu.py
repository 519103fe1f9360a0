"""Who uses this computer's CPU: the grid, or others."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ..model import InputError

__all__ = ["LOAD", "Process", "Snapshot", "availability", "snapshot"]

LOAD = "gw-load"
"""The name of processes that occupy a machine on purpose: foreign, whoever started them."""

BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""What counts as taken. A processor that waits for a disk is free; one that was lent is not."""


class Process(NamedTuple):
    """A process, as it stood when a snapshot was taken."""

    parent: int
    name: str
    seconds: float
    """CPU time of its own, and of those of its children that have ended."""


class Snapshot(NamedTuple):
    """How much the processors and each process have worked so far."""

    time: float
    busy: float
    processes: Mapping[int, Process]


def snapshot() -> Snapshot:
    """Look at the processors and at every process."""
    psutil = _psutil()
    processes = {}
    for process in psutil.process_iter(["ppid", "name", "cpu_times"]):
        known, times = process.info, process.info["cpu_times"]
        if times is not None:  # else it has just ended, or is hidden from us
            seconds = times.user + times.system + times.children_user + times.children_system
            processes[process.pid] = Process(known["ppid"] or 0, known["name"] or "", seconds)
    spent = psutil.cpu_times()
    busy = sum(getattr(spent, kind, 0.0) for kind in BUSY)
    return Snapshot(time.monotonic(), busy, processes)


def availability(
    before: Snapshot, after: Snapshot, own: Collection[int], cores: int | None = None
) -> float:
    """Return the share of the processors that others left to the grid between two snapshots.

    Parameters
    ----------
    before, after
        Two snapshots.
    own
        The grid's processes. What descends from them is the grid's as well.
    cores
        How many processors there are; this computer's.

    Examples
    --------
    >>> before = Snapshot(0.0, 100.0, {7: Process(1, "grid", 5.0)})
    >>> after = Snapshot(1.0, 101.5, {7: Process(1, "grid", 6.0)})
    >>> availability(before, after, own=[7], cores=2)
    0.75
    """
    room = (cores or os.cpu_count() or 1) * (after.time - before.time)
    if not room > 0:
        return 1.0
    ours = _family(after.processes, own)
    used = sum(after.processes[pid].seconds for pid in ours) - sum(
        process.seconds
        for pid, process in before.processes.items()
        if pid in ours or _passed_on(pid, before.processes, after.processes, ours)
    )
    foreign = after.busy - before.busy - max(used, 0.0)
    return min(max(1.0 - foreign / room, 0.0), 1.0)


def _family(processes: Mapping[int, Process], roots: Collection[int]) -> set[int]:
    """Return processes and what descends from them, but for loads."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        if process.name != LOAD:
            children.setdefault(process.parent, []).append(pid)
    family: set[int] = set()
    following = [pid for pid in roots if pid in processes]
    while following:
        pid = following.pop()
        if pid not in family:
            family.add(pid)
            following += children.get(pid, ())
    return family


def _passed_on(
    pid: int, before: Mapping[int, Process], after: Mapping[int, Process], ours: set[int]
) -> bool:
    """Tell whether a process has ended, and its time is now in that of one of ours."""
    seen = set()
    while pid in before and pid not in after and pid not in seen:
        seen.add(pid)
        pid = before[pid].parent
    return bool(seen) and pid in ours


def _psutil() -> Any:
    try:
        import psutil
    except ImportError:
        raise InputError("measuring needs psutil: pip install 'gridwright[grid]'") from None
    return psutil
