"""Failure traces: when nodes were up and down, from the Failure Trace Archive or Los Alamos."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import Floats, InputError
from ..model.spreadsheet import unquoted, write_table
from .job_trace import number_of, shortest
from .trace_file import (
    LARGEST,
    Account,
    fields,
    parse_file,
    read_bytes,
    read_lines,
    read_table,
    write_text,
)


class FailureTrace:
    """Periods in which nodes were up or down. Times are in seconds since 1970.

    >>> trace = FailureTrace(["a", "b", "a"], [0, 5, 60], [60, 9, 70], [True, False, False])
    >>> trace, trace.nodes
    (FailureTrace(2 nodes, 2 times down), ('a', 'b'))
    """

    def __init__(
        self,
        names: Any,
        start: Any,
        end: Any,
        up: Any,
        columns: dict[str, list[str]] | None = None,
        account: Account | None = None,
        places: Any = None,
    ) -> None:
        known = dict.fromkeys(names)
        self.nodes: tuple[str, ...] = tuple(known)
        numbers = {name: number for number, name in enumerate(known)}
        self.node = np.array([numbers[name] for name in names], dtype=int)
        self.start: Floats = np.asarray(start, dtype=float)
        self.end: Floats = np.asarray(end, dtype=float)
        self.up = np.asarray(up, dtype=bool)
        self.columns = {} if columns is None else columns
        """All columns of the file, as text."""
        self.account = Account(len(self)) if account is None else account
        self.seen = self._seen(list(names) if places is None else list(places))
        """First and last time that the trace covers of each node [node, 2]."""

    def __len__(self) -> int:
        return len(self.node)

    def __eq__(self, other: object) -> bool:
        parts = ("nodes", "node", "start", "end", "up")
        return isinstance(other, FailureTrace) and all(
            np.array_equal(getattr(self, part), getattr(other, part)) for part in parts
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FailureTrace({len(self.nodes):,} nodes, {int((~self.up).sum()):,} times down)"

    def _seen(self, places: list[str]) -> Floats:
        """Return the first and last time of each node's place, which is usually the node itself."""
        first: dict[str, float] = {}
        last: dict[str, float] = {}
        where: dict[int, str] = {}
        for node, place, start, end in zip(
            self.node.tolist(), places, self.start.tolist(), self.end.tolist(), strict=True
        ):
            where.setdefault(node, place)
            first[place] = min(first.get(place, start), start)
            last[place] = max(last.get(place, end), end)
        spans = [(first[where[k]], last[where[k]]) for k in range(len(self.nodes))]
        return np.array(spans, dtype=float).reshape(-1, 2)

    def down(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return node, start and end of every time down; overlapping times are joined."""
        chosen = ~self.up & (self.end > self.start)
        order = np.lexsort((self.start[chosen], self.node[chosen]))
        columns = [part[chosen][order].tolist() for part in (self.node, self.start, self.end)]
        merged: list[list[Any]] = []
        for node, start, end in zip(*columns, strict=True):
            if merged and merged[-1][0] == node and start <= merged[-1][2]:
                merged[-1][2] = max(merged[-1][2], end)
            else:
                merged.append([node, start, end])
        table = np.array(merged, dtype=float).reshape(-1, 3)
        return table[:, 0].astype(int), table[:, 1], table[:, 2]

    def spells(self) -> tuple[Floats, Floats]:
        """Return the lengths of the times up between two failures, and of the times down."""
        node, start, end = self.down()
        same = node[1:] == node[:-1]
        return (start[1:] - end[:-1])[same], end - start

    def time_up(self) -> tuple[float, int]:
        """Return the total time up of all nodes, and the number of failures.

        The time before the first failure of a node and after its last counts too. A node that is
        down at the start of its record has not failed then.
        """
        node, start, end = self.down()
        known = self.seen[:, 1] - self.seen[:, 0]
        return float(known.sum() - (end - start).sum()), int((start > self.seen[node, 0]).sum())


FIELDS = (
    "event_id",
    "component_id",
    "node_id",
    "platform_id",
    "node_name",
    "event_type",
    "event_start_time",
    "event_stop_time",
    "event_end_reason",
)
TYPES = {"0": False, "1": True}


def read_fta(path: str | PathLike[str]) -> FailureTrace:
    """Read an ``event_trace.tab`` of the Failure Trace Archive; wrong rows are left out."""
    return parse_fta(read_bytes(path))


def parse_fta(data: bytes) -> FailureTrace:
    r"""Parse an event trace. A machine is a node, whichever of its components failed.

    >>> trace = parse_fta(b"0 0 7 1 n7 0 100 160 hw\n1 0 7 1 n7 2 160 200 -\n")
    >>> print(trace.account)
    2 rows: 1 kept, 1 left out
      1 × event_type is neither 0 (down) nor 1 (up) (line 2: '2')
    """
    account = Account()
    table = []
    for number, line in read_lines(data):
        words = [word.decode("utf-8", "replace") for word in line.split()]
        if not words[0].startswith("#") and words[:2] != list(FIELDS[:2]):
            table.append((number, words))
    rows = [row for _, row in account.sift(table, _wrong)]
    several = len({row[3] for row in rows}) > 1
    return FailureTrace(
        [f"{row[3]}.{row[2]}" if several else row[2] for row in rows],
        [float(row[6]) for row in rows],
        [float(row[7]) for row in rows],
        [TYPES[row[5]] for row in rows],
        {name: [row[k] for row in rows] for k, name in enumerate(FIELDS)},
        account,
    )


def _wrong(words: list[str]) -> tuple[str, str] | None:
    """Return the reason why a row is wrong, and the detail; None if it is right."""
    if len(words) != len(FIELDS):
        return f"not {len(FIELDS)} fields", fields(len(words))
    if words[5] not in TYPES:
        return "event_type is neither 0 (down) nor 1 (up)", repr(words[5][:20])
    start, end = number_of(words[6]), number_of(words[7])
    if start is None or end is None:
        which = 6 if start is None else 7
        return "not a number", f"{FIELDS[which]} is {words[which][:20]!r}"
    if max(abs(start), abs(end)) > LARGEST:
        return "out of range", f"{words[6][:20]} to {words[7][:20]}"
    if end < start:
        return "it ends before it starts", f"{words[6]} to {words[7]}"
    return None


def write_fta(path: str | PathLike[str], trace: FailureTrace) -> None:
    """Write a trace in the event format; reading it gives an equal one.

    Unknown fields of a trace from another format are 0 or ``-``.
    """
    size = len(trace)
    words = ["_".join(name.split()) or "-" for name in trace.nodes]
    nodes = [words[k] for k in trace.node.tolist()]
    columns = {
        "event_id": [str(k) for k in range(size)],
        "component_id": ["0"] * size,
        "node_id": nodes,
        "platform_id": ["0"] * size,
        "node_name": nodes,
        "event_end_reason": ["-"] * size,
        **{name: column for name, column in trace.columns.items() if name in FIELDS},
        "event_type": ["1" if up else "0" for up in trace.up.tolist()],
        "event_start_time": [shortest(time) for time in trace.start.tolist()],
        "event_stop_time": [shortest(time) for time in trace.end.tolist()],
    }
    rows = zip(*(columns[name] for name in FIELDS), strict=True)
    write_text(path, "".join("\t".join(row) + "\n" for row in [FIELDS, *rows]))


SYSTEM, NODE, STARTED, FIXED = "System", "nodenumz", "Prob Started", "Prob Fixed"
NEEDED = (SYSTEM, NODE, STARTED, FIXED)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = 100
"""The first year that is a year and not a part of one."""


def read_lanl(path: str | PathLike[str]) -> FailureTrace:
    """Read failure records of Los Alamos (CSV); wrong rows are left out and accounted for."""
    return parse_file(path, parse_lanl)


def parse_lanl(data: bytes) -> FailureTrace:
    r"""Parse failure records. A machine is a node of a system: ``system.node``.

    Times are local, to the minute, and read as UTC. A node counts as present from the first to the
    last failure of its system.

    >>> trace = parse_lanl(b"System,nodenumz,Prob Started,Prob Fixed\n2,0,6/21/2005 10:54,\n")
    >>> print(trace.account)
    1 row: 0 kept, 1 left out
      1 × no time (line 2: Prob Fixed is '')
    """
    table = read_table(data)
    names = [name.strip() for name in unquoted(next(table, (0, []))[1])]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise InputError(f"column {missing[0]!r} is missing in the first line")
    at = {name: names.index(name) for name in NEEDED}

    def wrong(row: list[str]) -> tuple[str, str] | None:
        if len(row) != len(names):
            return f"not {len(names)} fields", fields(len(row))
        start, end = _seconds(row[at[STARTED]]), _seconds(row[at[FIXED]])
        if start is None or end is None:
            name = STARTED if start is None else FIXED
            return "no time", f"{name} is {row[at[name]][:20]!r}"
        if end < start:
            return "it is fixed before it starts", f"{row[at[STARTED]]} to {row[at[FIXED]]}"
        return None

    account = Account()
    rows = [unquoted(row) for _, row in account.sift(table, wrong)]
    return FailureTrace(
        [f"{row[at[SYSTEM]].strip()}.{row[at[NODE]].strip()}" for row in rows],
        [_seconds(row[at[STARTED]]) for row in rows],
        [_seconds(row[at[FIXED]]) for row in rows],
        [False] * len(rows),
        {name: [row[k] for row in rows] for k, name in enumerate(names)},
        account,
        places=[row[at[SYSTEM]] for row in rows],
    )


def _seconds(text: str) -> float | None:
    """Return the seconds of a time such as 6/21/2005 10:54; which century 05 is in is not known."""
    try:
        date, clock = text.split()
        month, day, year = map(int, date.split("/"))
        if year < FIRST:
            return None
        hour, minute = map(int, clock.split(":"))
        return (datetime(year, month, day, hour, minute, tzinfo=UTC) - EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return None


def _written(seconds: float) -> str:
    try:
        time = EPOCH + timedelta(minutes=round(seconds / 60))
    except OverflowError:
        raise InputError(f"{seconds:g} s is not a date in the years 1 to 9999") from None
    return f"{time.month}/{time.day}/{time.year} {time.hour}:{time.minute:02}"


def write_lanl(path: str | PathLike[str], trace: FailureTrace) -> None:
    """Write the times down of a trace as failure records, to the minute.

    Other columns of its file are written unchanged. The format has no times up.
    """
    chosen = [k for k, up in enumerate(trace.up.tolist()) if not up]
    nodes = [trace.nodes[k].partition(".") for k in trace.node.tolist()]
    own = {
        SYSTEM: [system for system, _, _ in nodes],
        NODE: [node or "0" for _, _, node in nodes],
        STARTED: [_written(time) for time in trace.start.tolist()],
        FIXED: [_written(time) for time in trace.end.tolist()],
    }
    columns = {**own, **trace.columns} if SYSTEM in trace.columns else own
    out = StringIO(newline="")
    rows = ([column[k] for column in columns.values()] for k in chosen)
    write_table(out, chain([columns], rows), end="\n")
    write_text(path, out.getvalue())
