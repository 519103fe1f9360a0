"""Job traces: logs of jobs in the Standard Workload Format or the Grid Workloads Format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from ..model import Floats, InputError
from .trace_file import (
    Account,
    Line,
    fields,
    parse_file,
    read_bytes,
    read_lines,
    with_newlines,
    write_text,
)

LABELS = ("user", "group", "executable", "queue", "partition")
"""Columns that tell jobs apart."""
UNKNOWN = ("-1", "")


class JobTrace:
    """Jobs in the order of their rows, with a column for everything that is known of them.

    Columns hold numbers, −1 for unknown ones, or text. Their names are the same for all formats:
    ``job``, ``submit``, ``wait``, ``run_time``, ``processors``, ``cpu_time``, ``memory``,
    ``requested_processors``, ``requested_time``, ``requested_memory``,
    ``status``, ``user``, ``group``, ``executable``, ``queue``, ``partition``, ``preceding``,
    ``think_time``. Columns of one format only keep their names. Times are in seconds.

    >>> trace = JobTrace({"submit": [0, 60], "run_time": [30, 45], "user": ["ann", "bob"]})
    >>> len(trace), trace.coded("user")[0], trace.knows("partition")
    (2, ['ann', 'bob'], False)
    """

    def __init__(
        self,
        columns: dict[str, Any],
        header: tuple[str, ...] = (),
        account: Account | None = None,
        lines: Any = (),
    ) -> None:
        self.columns: dict[str, NDArray[Any]] = {
            name: np.asarray(values, dtype=object if _is_text(values) else float)
            for name, values in columns.items()
        }
        self.header = header
        """The comments, without the character that starts them."""
        self.account = Account(len(self)) if account is None else account
        """Which rows were kept, and which were left out."""
        self.lines = np.asarray(lines, dtype=int) if len(lines) else np.zeros(len(self), int)
        """The line of each job in its file; 0 if it comes from no file."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, JobTrace)
            and self.header == other.header
            and self.columns.keys() == other.columns.keys()
            and all(np.array_equal(self.columns[key], other.columns[key]) for key in self.columns)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"JobTrace({len(self):,} jobs)"

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers; all are −1 if it is missing."""
        found = self.columns.get(name)
        return np.full(len(self), -1.0) if found is None or found.dtype == object else found

    def coded(self, name: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the different texts of a column, and the number of the text of each job.

        The partition of a job of a grid is the site that ran it.
        """
        found = self.columns.get(name)
        if name == "partition" and "LastRunSiteID" in self.columns and not _says_something(found):
            found = self.columns["LastRunSiteID"]
        if found is None:
            return ["-1"], np.zeros(len(self), int)
        if found.dtype != object:
            values, codes = np.unique(found, return_inverse=True)
            return [shortest(value) for value in values.tolist()], codes
        texts = sorted(set(found.tolist()))
        number = {text: k for k, text in enumerate(texts)}
        return texts, np.array([number[text] for text in found.tolist()], dtype=int)

    def knows(self, name: str) -> bool:
        """Tell whether a label is known for any job."""
        return bool(set(self.coded(name)[0]) - set(UNKNOWN))

    @property
    def first_submission(self) -> float:
        """When the first job was submitted, even if it cannot be replayed; 0 if unknown."""
        known = self.numbers("submit")
        known = known[known >= 0]
        return float(known.min()) if len(known) else 0.0

    @property
    def about(self) -> dict[str, str]:
        """The comments of the form ``Key: value``; the first one for each key."""
        pairs = (line.partition(":") for line in reversed(self.header))
        return {key.strip(): value.strip() for key, colon, value in pairs if colon}

    def partition_names(self) -> dict[str, str]:
        """Return the names of partitions that the comments give."""
        pairs = (line.partition(":") for line in self.header)
        words = [value.split() for key, _, value in pairs if key.strip() == "Partition"]
        return {each[0]: each[1] for each in words if len(each) > 1}


def _says_something(column: Any) -> bool:
    return column is not None and bool(set(np.unique(column.astype(str))) - {*UNKNOWN, "-1.0"})


def shortest(value: float) -> str:
    """Write a number in the shortest form that reads back as the same number.

    >>> shortest(3.0), shortest(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _is_text(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype.kind not in "iufb"
    return any(isinstance(value, str) for value in values)


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
"""Names that the Grid Workloads Format has for the usual columns."""
COLUMNS = (*OURS.values(), "preceding", "think_time")
"""Columns of the Standard Workload Format, in order."""
WIDTH = len(COLUMNS)
HEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:;[^\n]*)?\n)*")
"""Matches the comments and blank lines at the top."""
NEWLINE, SPACE = ord("\n"), ord(" ")


def read_swf(path: str | PathLike[str]) -> JobTrace:
    """Read a log in the Standard Workload Format; wrong rows are left out and accounted for."""
    return parse_swf(read_bytes(path))


def parse_swf(data: bytes) -> JobTrace:
    r"""Parse a log in the Standard Workload Format: 18 numbers for each job.

    >>> trace = parse_swf(b"; Computer: ours\n1 0 5 60 1" + b" -1" * 13 + b"\n2 3 4\n")
    >>> trace, trace.about["Computer"]
    (JobTrace(1 jobs), 'ours')
    >>> print(trace.account)
    2 rows: 1 kept, 1 left out
      1 × not 18 fields (line 3: 3 fields)
    """
    account = Account()
    data = with_newlines(data)
    head = HEAD.match(data)
    begin = head.end() if head else 0
    found = _all_at_once(data, begin)
    header, body = _comments_apart(data if found is None else data[:begin], b";")
    lines, columns = found or _rows(body, COLUMNS, COLUMNS, None, account)
    account.kept = len(lines)
    named = zip(COLUMNS, columns, strict=True)
    found_columns = {name: np.ascontiguousarray(column, dtype=float) for name, column in named}
    return JobTrace(found_columns, header, account, lines)


def _comments_apart(data: bytes, mark: bytes) -> tuple[tuple[str, ...], list[Line]]:
    """Return the comments, without the character that starts them, and the other lines."""
    lines = [(number, line, line.lstrip().startswith(mark)) for number, line in read_lines(data)]
    comments = [line.strip()[1:] for _, line, is_comment in lines if is_comment]
    header = tuple(line.decode("utf-8", "replace").strip() for line in comments)
    return header, [(number, line) for number, line, is_comment in lines if not is_comment]


def _all_at_once(data: bytes, begin: int) -> tuple[Any, Any] | None:
    """Return the lines and columns of all rows, five times as fast; None if a row is wrong."""
    body = data[begin:]
    if not body or body.translate(None, b"0123456789.+-eE \t\n"):
        return None
    letters = np.frombuffer(body, np.uint8)
    firsts = np.concatenate([[0], np.flatnonzero(letters == NEWLINE) + 1])
    firsts = firsts[firsts < len(letters)]
    begins = letters > SPACE
    begins[1:] &= letters[:-1] <= SPACE
    words = np.add.reduceat(begins, firsts, dtype=np.int64)
    filled = np.flatnonzero(words)
    if not len(filled) or (words[filled] != WIDTH).any():
        return None
    with catch_warnings():
        simplefilter("error")
        try:
            flat = np.fromstring(body, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    if len(flat) != WIDTH * len(filled) or not np.isfinite(flat).all():
        return None
    return filled + 1 + data.count(b"\n", 0, begin), flat.reshape(-1, WIDTH).T


def _rows(
    body: list[Line],
    names: Sequence[str],
    numeric: Sequence[str],
    separator: bytes | None,
    account: Account,
) -> tuple[list[int], list[list[Any]]]:
    """Return the lines and columns of the rows that are right; account for the others."""
    lines: list[int] = []
    columns: list[list[Any]] = [[] for _ in names]
    are_numbers = [name in numeric for name in names]
    for number, line in body:
        words = [word.strip().decode("utf-8", "replace") for word in line.split(separator)]
        if len(words) != len(names):
            account.skip(f"not {len(names)} fields", number, fields(len(words)))
            continue
        pairs = zip(words, are_numbers, strict=True)
        row = [number_of(word) if is_number else word for word, is_number in pairs]
        if None in row:
            k = row.index(None)
            account.skip("not a number", number, f"{names[k]} is {words[k][:20]!r}")
            continue
        lines.append(number)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return lines, columns


def number_of(word: str) -> float | None:
    """Return the finite number that a word stands for, or None."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if abs(value) < float("inf") and "_" not in word and word.isascii() else None


def write_swf(path: str | PathLike[str], trace: JobTrace) -> None:
    """Write a trace in the Standard Workload Format; reading it gives an equal one.

    The format has 18 columns of numbers. Text is numbered in order of appearance; comments give the
    text of each number, and the columns that were left out.
    """
    notes: list[str] = []
    columns = []
    for name in COLUMNS:
        values = trace.columns.get(name, np.full(len(trace), -1.0))
        if values.dtype == object:
            values, said = _numbered(name, values)
            notes += said
        columns.append([shortest(value) for value in values.tolist()])
    left = [name for name in trace.columns if name not in COLUMNS]
    notes += [f"Note: left out: {', '.join(left)}"] if left else []
    lines = [f"; {one_line(line)}".rstrip() for line in (*trace.header, *notes)]
    lines += [" ".join(row) for row in zip(*columns, strict=True)]
    write_text(path, "".join(f"{line}\n" for line in lines))


def one_line(text: str) -> str:
    """Write a comment on one line."""
    return text.replace("\n", " ").strip()


def _numbered(name: str, values: Any) -> tuple[Any, list[str]]:
    known = dict.fromkeys(value for value in values if value not in ("-1", ""))
    numbers: dict[str, int] = {value: n for n, value in enumerate(known, 1)}
    said = [f"Note: {name} {n} is {one_line(value)}" for value, n in numbers.items()]
    return np.array([numbers.get(value, -1) for value in values], dtype=float), said


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
    """Read a log in the Grid Workloads Format; wrong rows are left out and accounted for."""
    return parse_file(path, parse_gwf)


def parse_gwf(data: bytes) -> JobTrace:
    r"""Parse a log in the Grid Workloads Format: 29 fields, or fields named by the first line.

    >>> trace = parse_gwf(b"JobID, SubmitTime, RunTime\n1, 0, 60\n2, soon, 60\n")
    >>> print(trace.account)
    2 rows: 1 kept, 1 left out
      1 × not a number (line 3: SubmitTime is 'soon')
    """
    header, body = _comments_apart(data, b"#")
    names, separator = list(FIELDS), None
    if body and b"SubmitTime" in body[0][1] and b"," in body[0][1]:
        separator = b","
        names = [word.strip() for word in body.pop(0)[1].decode("utf-8", "replace").split(",")]
        _check(names)
    account = Account()
    lines, columns = _rows(body, names, NUMERIC, separator, account)
    account.kept = len(lines)
    if "Dependencies" in names:
        account.notes.append("Dependencies are ignored: every job arrives at its submission time")
    found = {
        OURS.get(name, name): np.array(column, dtype=float if name in NUMERIC else object)
        for name, column in zip(names, columns, strict=True)
    }
    return JobTrace(found, header, account, lines)


def _check(names: list[str]) -> None:
    for needed in ("SubmitTime", "RunTime"):
        if needed not in names:
            raise InputError(f"field {needed} is missing; fields are {', '.join(names)}")
    for name in names:
        if not name or names.count(name) > 1:
            raise InputError(f"field {name!r} is empty or there twice")


def write_gwf(path: str | PathLike[str], trace: JobTrace) -> None:
    """Write a trace in the Grid Workloads Format; reading it gives an equal one.

    The first line names the fields unless they are exactly the 29 of the format.
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
