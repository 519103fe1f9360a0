"""Give the machines of a replay the failures of real nodes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from ..model import InputError
from ..testbed import Fault
from .duration import check_scale, in_words
from .failure_trace import FailureTrace

NODES = ("spread", "worst")
"""Which nodes to take: spread evenly over all, or those that failed most."""

YEAR = 365 * 86_400.0


class Outages(NamedTuple):
    """The failures of the machines of a replay, and the nodes that they come from."""

    faults: tuple[Fault, ...]
    nodes: tuple[str, ...]
    """The node whose failures each machine has."""
    start: float
    """Start of the window, in the time of the failure trace."""
    span: float
    """Length of the window in the failure trace, in seconds."""
    known: int
    """Number of nodes that the trace covers throughout the window."""

    def __str__(self) -> str:
        count = "1 failure" if len(self.faults) == 1 else f"{len(self.faults)} failures"
        down = sum(fault.end - fault.start for fault in self.faults)
        return (
            f"{count} of {len(self.nodes)} of {self.known:,} nodes, "
            f"{in_words(self.span)} from {date(self.start)}, {in_words(down)} down together"
        )


def date(time: float) -> str:
    """Write a moment in UTC, or in seconds if the trace does not count from 1970.

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
    """Give every machine the failures of a node.

    Parameters
    ----------
    machines
        Number of machines.
    length
        Length of the replay in seconds. A machine that is down at its end is repaired later.
    start
        Start in the failure trace; by default that of the window with most failures.
    scale
        Factor for the times of the trace: below 1, failures are more frequent and shorter.
    nodes
        ``spread``: nodes spread evenly over those that the trace covers throughout the window;
        ``worst``: those that fail most often in it.

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
    if len(known) < machines:  # also take those that it covers in part
        known = np.flatnonzero((trace.seen[:, 0] < start + span) & (trace.seen[:, 1] > start))
    if len(known) < machines:
        raise InputError(
            f"the failure trace covers {len(known)} nodes in the {in_words(span)} from "
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
    """Return the start of the window of this length in which most failures begin."""
    if not len(begin):
        return 0.0
    times = np.sort(begin)
    behind = np.searchsorted(times, times + span)
    return float(times[np.argmax(behind - np.arange(len(times)))])
