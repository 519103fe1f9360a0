"""The failure records of Los Alamos National Laboratory, 1996 to 2005: a row a failure."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import chain
from os import PathLike

from ..model import InputError
from ..model.spreadsheet import unquoted, write_table
from .account import Account, fields
from .failure_trace import FailureTrace
from .source import read_bytes, write_text

__all__ = ["parse_lanl", "read_lanl", "write_lanl"]

SYSTEM, NODE, STARTED, FIXED = "System", "nodenumz", "Prob Started", "Prob Fixed"
NEEDED = (SYSTEM, NODE, STARTED, FIXED)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_lanl(path: str | PathLike[str]) -> FailureTrace:
    """Read the failure records (CSV); odd rows are accounted for, not guessed at."""
    try:
        return parse_lanl(read_bytes(path))
    except InputError as error:
        where = "" if str(error).startswith(str(path)) else f"{path}: "
        raise InputError(f"{where}{error}") from None


def parse_lanl(data: bytes) -> FailureTrace:
    r"""Read the text of the records. A machine is a node of a system: ``system.node``.

    Times are the laboratory's own, to the minute, read as if they were UTC. A node is taken to be
    there as long as its system has failures at all.

    >>> trace = parse_lanl(b"System,nodenumz,Prob Started,Prob Fixed\n2,0,6/21/2005 10:54,\n")
    >>> print(trace.account)
    1 row: 0 kept, 1 left out
      1 × no time (line 2: Prob Fixed is '')
    """
    table = csv.reader(StringIO(data.decode("utf-8-sig", "replace").replace("\0", ""), newline=""))
    account = Account()
    try:
        names = [name.strip() for name in unquoted(next(table, []))]
        missing = [name for name in NEEDED if name not in names]
        if missing:
            raise InputError(f"no column {missing[0]!r} in the first line")
        at = {name: names.index(name) for name in NEEDED}
        rows: list[list[str]] = []
        times: list[tuple[float, float]] = []
        lines = []
        for row in table:
            if not "".join(row).strip():
                continue
            why, what, span = _look_at(row, at, len(names))
            if why:
                account.skip(why, table.line_num, what)
            else:
                rows.append(unquoted(row))
                times.append(span)
                lines.append(table.line_num)
    except csv.Error as error:
        raise InputError(f"line {table.line_num}: {error}") from None
    account.kept = len(rows)
    return FailureTrace(
        [f"{row[at[SYSTEM]].strip()}.{row[at[NODE]].strip()}" for row in rows],
        [start for start, _ in times],
        [end for _, end in times],
        [False] * len(rows),
        {name: [row[k] for row in rows] for k, name in enumerate(names)},
        account,
        lines,
        places=[row[at[SYSTEM]] for row in rows],
    )


def _look_at(
    row: list[str], at: dict[str, int], width: int
) -> tuple[str, str, tuple[float, float]]:
    """Say what is wrong with a row, if something is, and from when to when it is."""
    none = (0.0, 0.0)
    if len(row) != width:
        return f"not {width} fields", fields(len(row)), none
    start, end = _seconds(row[at[STARTED]]), _seconds(row[at[FIXED]])
    if start is None or end is None:
        name = STARTED if start is None else FIXED
        return "no time", f"{name} is {row[at[name]][:20]!r}", none
    if end < start:
        return "it is fixed before it starts", f"{row[at[STARTED]]} to {row[at[FIXED]]}", none
    return "", "", (start, end)


def _seconds(text: str) -> float | None:
    """Return the seconds of a time such as 6/21/2005 10:54."""
    try:
        date, clock = text.split()
        month, day, year = map(int, date.split("/"))
        hour, minute = map(int, clock.split(":"))
        return (datetime(year, month, day, hour, minute, tzinfo=UTC) - EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return None


def _written(seconds: float) -> str:
    try:
        time = EPOCH + timedelta(minutes=round(seconds / 60))
    except OverflowError:
        raise InputError(f"{seconds:g} s is no date of the years 1 to 9999") from None
    return f"{time.month}/{time.day}/{time.year} {time.hour}:{time.minute:02}"


def write_lanl(path: str | PathLike[str], trace: FailureTrace) -> None:
    """Write the times down of a trace as such records, to the minute.

    Columns that its file had besides are written as they were. Times up have no place in this
    format.
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
