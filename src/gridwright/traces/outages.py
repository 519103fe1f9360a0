"""Times down of real nodes, for the machines of a replay."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from ..model import InputError
from ..testbed import Fault
from .duration import check_scale, in_words
from .failure_trace import FailureTrace

__all__ = ["NODES", "Outages", "outages"]

NODES = ("spread", "worst")
"""Which nodes are taken: evenly spread over all, or those that failed most."""

YEAR = 365 * 86_400.0


class Outages(NamedTuple):
    """What happens to the machines of a replay, and where that comes from."""

    faults: tuple[Fault, ...]
    nodes: tuple[str, ...]
    """The node whose history each machine has."""
    start: float
    """When it begins, in the time of the failure trace."""
    span: float
    """How much of the failure trace it is, in seconds."""
    known: int
    """Nodes that the trace knows of throughout that time."""

    def __str__(self) -> str:
        count = "1 failure" if len(self.faults) == 1 else f"{len(self.faults)} failures"
        down = sum(fault.end - fault.start for fault in self.faults)
        return (
            f"{count} of {len(self.nodes)} of {self.known:,} nodes, "
            f"{in_words(self.span)} from {date(self.start)}, {in_words(down)} down together"
        )


def date(time: float) -> str:
    """Write a moment, in UTC; a trace that does not count from 1970 has a clock of its own.

    >>> date(1.7e9), date(1000)
    ('2023-11-14 22:13', '1000 s on its clock')
    """
    if 0 <= time < YEAR:
        return f"{time:g} s on its clock"
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return f"{time:g} s"


def outages(
    trace: FailureTrace,
    machines: int,
    length: float,
    *,
    start: float | None = None,
    scale: float = 1.0,
    nodes: str = "spread",
) -> Outages:
    """Give every machine the history of a node.

    Parameters
    ----------
    machines
        How many machines there are.
    length
        Seconds of the replay. What is down at its end comes back when it did.
    start
        When in the failure trace it begins. Without it, the time of that length in which most
        failures begin.
    scale
        The trace's times are multiplied by this: below 1 it fails more often, and for less long.
    nodes
        ``spread``: nodes evenly spread over those known throughout; ``worst``: those that fail
        most often in that time.

    Examples
    --------
    >>> trace = FailureTrace(["a", "a", "b", "b"], [0, 50, 5, 95], [9, 60, 6, 99], [False] * 4)
    >>> outages(trace, 1, 40, start=20).faults
    (Fault(machine=0, start=30.0, end=40.0),)
    """
    if nodes not in NODES:
        raise InputError(f"nodes is {nodes!r}; expected {' or '.join(NODES)}")
    check_scale("scale of failures", scale)
    node, begin, end = trace.down()
    span = length / scale
    if start is None:
        start = _busiest(begin, span)
    known = np.flatnonzero((trace.seen[:, 0] <= start) & (trace.seen[:, 1] >= start + span))
    if len(known) < machines:  # those of whom only a part of the time is known
        known = np.flatnonzero((trace.seen[:, 0] < start + span) & (trace.seen[:, 1] > start))
    if len(known) < machines:
        raise InputError(
            f"the failure trace knows {len(known)} nodes in the {in_words(span)} from "
            f"{date(start)}, for {machines} machines; choose another time or fewer machines"
        )
    inside = (begin < start + span) & (end > start)
    chosen = known[(np.arange(machines) * len(known)) // machines]
    if nodes == "worst":
        often = np.bincount(node[inside], minlength=len(trace.nodes))[known]
        chosen = known[np.lexsort((known, -often))[:machines]]
    machine = {int(k): j for j, k in enumerate(chosen)}
    found = [
        Fault(machine[k], max(first - start, 0.0) * scale, (last - start) * scale)
        for k, first, last in zip(
            node[inside].tolist(), begin[inside].tolist(), end[inside].tolist(), strict=True
        )
        if k in machine
    ]
    found.sort(key=lambda fault: (fault.start, fault.machine))
    return Outages(tuple(found), tuple(trace.nodes[k] for k in chosen), start, span, len(known))


def _busiest(begin: np.ndarray[tuple[int], np.dtype[np.float64]], span: float) -> float:
    """Return the start of the time of this length in which most failures begin."""
    if not len(begin):
        return 0.0
    times = np.sort(begin)
    behind = np.searchsorted(times, times + span)
    return float(times[np.argmax(behind - np.arange(len(times)))])
