"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a job."""

from __future__ import annotations

import re
from os import PathLike
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

from .account import Account, fields
from .job_trace import JobTrace, shortest
from .source import Line, read_bytes, read_lines, with_newlines, write_text

__all__ = ["COLUMNS", "parse_swf", "read_swf", "write_swf"]

COLUMNS = (
    "job",
    "submit",
    "wait",
    "run_time",
    "processors",
    "cpu_time",
    "memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think_time",
)
WIDTH = len(COLUMNS)
HEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:;[^\n]*)?\n)*")
"""The comments and blank lines at the top."""
NEWLINE, SPACE = ord("\n"), ord(" ")


def read_swf(path: str | PathLike[str]) -> JobTrace:
    """Read a log in the Standard Workload Format; odd rows are accounted for, not guessed at."""
    return parse_swf(read_bytes(path))


def parse_swf(data: bytes) -> JobTrace:
    r"""Read the text of a log.

    >>> trace = parse_swf(b"; Computer: ours\n1 0 5 60 1" + b" -1" * 13 + b"\n2 3 4\n")
    >>> trace, trace.about["Computer"]
    (JobTrace(1 jobs), 'ours')
    >>> print(trace.account)
    2 rows: 1 kept, 1 left out
      1 × not 18 fields (line 3: 3 fields)
    """
    header: list[str] = []
    body: list[Line] = []
    account = Account()
    data = with_newlines(data)
    found = _all_at_once(data)
    for number, line in read_lines(data if found is None else data[: found.begin]):
        if line.lstrip().startswith(b";"):
            header.append(line.strip()[1:].decode("utf-8", "replace").strip())
        else:
            body.append((number, line))
    lines, flat = _one_by_one(body, account) if found is None else (found.lines, found.flat)
    table = flat.reshape(-1, WIDTH)
    account.kept = len(table)
    columns = {name: np.ascontiguousarray(table[:, k]) for k, name in enumerate(COLUMNS)}
    return JobTrace(columns, tuple(header), account, lines)


class _Whole(NamedTuple):
    """The rows of a log in which nothing is odd."""

    begin: int
    """Where they begin: behind the comments."""
    lines: Any
    flat: Any


def _all_at_once(data: bytes) -> _Whole | None:
    """Read all rows in one go, where all are as they should be: five times as fast."""
    head = HEAD.match(data)
    begin = head.end() if head else 0
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
    return _Whole(begin, filled + 1 + data.count(b"\n", 0, begin), flat)


def _one_by_one(body: list[Line], account: Account) -> tuple[list[int], Any]:
    kept: list[int] = []
    found: list[float] = []
    for number, line in body:
        words = line.split()
        values = [number_of(word) for word in words]
        if len(words) != WIDTH:
            account.skip(f"not {WIDTH} fields", number, fields(len(words)))
        elif None in values:
            k = values.index(None)
            shown = words[k][:20].decode("utf-8", "replace")
            account.skip("not a number", number, f"{COLUMNS[k]} is {shown!r}")
        else:
            kept.append(number)
            found += values  # type: ignore[arg-type]
    return kept, np.array(found, dtype=float)


def number_of(word: bytes | str) -> float | None:
    """Return the number that a word stands for, if it does for a finite one."""
    try:
        value = float(word)
    except ValueError:
        return None
    under = b"_" if isinstance(word, bytes) else "_"
    return value if abs(value) < float("inf") and under not in word else None  # type: ignore[operator]


def write_swf(path: str | PathLike[str], trace: JobTrace) -> None:
    """Write a trace in the Standard Workload Format; reading it gives an equal one.

    The format has numbers only and no more than its columns: text is numbered in the order in
    which it comes, and comments say which number is what, and what was left out.
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
