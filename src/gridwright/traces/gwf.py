"""The Grid Workloads Format of the Grid Workloads Archive: 29 fields a job, or named ones."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from ..model import InputError
from .account import Account, fields
from .job_trace import JobTrace, shortest
from .source import Line, read_bytes, read_lines, write_text
from .swf import number_of, one_line

__all__ = ["FIELDS", "parse_gwf", "read_gwf", "write_gwf"]

OURS = {
    "JobID": "job",
    "SubmitTime": "submit",
    "WaitTime": "wait",
    "RunTime": "run_time",
    "NProcs": "processors",
    "AverageCPUTimeUsed": "cpu_time",
    "UsedMemory": "memory",
    "ReqNProcs": "requested_processors",
    "ReqTime": "requested_time",
    "ReqMemory": "requested_memory",
    "Status": "status",
    "UserID": "user",
    "GroupID": "group",
    "ExecutableID": "executable",
    "QueueID": "queue",
    "PartitionID": "partition",
}
"""What the format calls the columns that others have too."""
FIELDS = (
    *OURS,
    "OrigSiteID",
    "LastRunSiteID",
    "JobStructure",
    "JobStructureParams",
    "UsedNetwork",
    "UsedLocalDiskSpace",
    "UsedResources",
    "ReqPlatform",
    "ReqNetwork",
    "ReqLocalDiskSpace",
    "ReqResources",
    "VOID",
    "ProjectID",
)
NUMERIC = (*list(OURS)[:11], "WorkflowID")
THEIRS = {ours: theirs for theirs, ours in OURS.items()}


def read_gwf(path: str | PathLike[str]) -> JobTrace:
    """Read a log in the Grid Workloads Format; odd rows are accounted for, not guessed at."""
    try:
        return parse_gwf(read_bytes(path))
    except InputError as error:
        where = "" if str(error).startswith(str(path)) else f"{path}: "
        raise InputError(f"{where}{error}") from None


def parse_gwf(data: bytes) -> JobTrace:
    r"""Read the text of a log: 29 fields in a row, or a first line that names fields by commas.

    >>> trace = parse_gwf(b"JobID, SubmitTime, RunTime\n1, 0, 60\n2, soon, 60\n")
    >>> print(trace.account)
    2 rows: 1 kept, 1 left out
      1 × not a number (line 3: SubmitTime is 'soon')
    """
    header: list[str] = []
    body: list[Line] = []
    for number, line in read_lines(data):
        if line.lstrip().startswith(b"#"):
            header.append(line.strip()[1:].decode("utf-8", "replace").strip())
        else:
            body.append((number, line))
    names, commas = list(FIELDS), False
    if body and b"SubmitTime" in body[0][1] and b"," in body[0][1]:
        commas = True
        names = [word.strip() for word in body.pop(0)[1].decode("utf-8", "replace").split(",")]
        _check(names)
    account = Account()
    columns: list[list[Any]] = [[] for _ in names]
    lines = []
    for number, line in body:
        row = _row(number, line, names, commas, account)
        if row is not None:
            lines.append(number)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    account.kept = len(lines)
    if "Dependencies" in names:
        account.notes.append("every job comes at its own time: Dependencies are not waited for")
    found = {
        OURS.get(name, name): np.array(column, dtype=float if name in NUMERIC else object)
        for name, column in zip(names, columns, strict=True)
    }
    return JobTrace(found, tuple(header), account, lines)


def _check(names: list[str]) -> None:
    for needed in ("SubmitTime", "RunTime"):
        if needed not in names:
            raise InputError(f"no field {needed} among {', '.join(names)}")
    for name in names:
        if not name or names.count(name) > 1:
            raise InputError(f"field {name!r} has no name, or not one of its own")


def _row(
    number: int, line: bytes, names: list[str], commas: bool, account: Account
) -> list[Any] | None:
    split = [word.strip() for word in line.split(b",")] if commas else line.split()
    words = [word.decode("utf-8", "replace") for word in split]
    if len(words) != len(names):
        account.skip(f"not {len(names)} fields", number, fields(len(words)))
        return None
    values: list[Any] = []
    for name, word in zip(names, words, strict=True):
        if name in NUMERIC:
            value = number_of(word)
            if value is None:
                account.skip("not a number", number, f"{name} is {word[:20]!r}")
                return None
            values.append(value)
        else:
            values.append(word)
    return values


def write_gwf(path: str | PathLike[str], trace: JobTrace) -> None:
    """Write a trace in the Grid Workloads Format; reading it gives an equal one.

    A trace with columns besides the 29 of the format, or without some of them that are text, is
    written with a first line that names its fields.
    """
    theirs = {THEIRS.get(name, name): values for name, values in trace.columns.items()}
    named = set(theirs) != set(FIELDS)
    names = list(theirs) if named else list(FIELDS)
    lines = [f"# {one_line(line)}".rstrip() for line in trace.header]
    if named:
        lines.append(", ".join(names))
    columns = [_words(theirs[name], named=named) for name in names]
    glue = ", " if named else "\t"
    lines += [glue.join(row) for row in zip(*columns, strict=True)]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _words(values: Any, *, named: bool) -> list[str]:
    if values.dtype != object:
        return [shortest(value) for value in values.tolist()]
    if named:
        return [" ".join(word.replace(",", ";").split()) for word in values]
    return ["_".join(word.split()) or "-1" for word in values]
