"""The event format of the Failure Trace Archive: when nodes were up and down."""

from __future__ import annotations

from os import PathLike

from .account import LARGEST, Account, fields
from .failure_trace import FailureTrace
from .job_trace import shortest
from .source import read_bytes, read_lines, write_text
from .swf import number_of

__all__ = ["FIELDS", "parse_fta", "read_fta", "write_fta"]

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
    """Read an ``event_trace.tab``; odd rows are accounted for, not guessed at."""
    return parse_fta(read_bytes(path))


def parse_fta(data: bytes) -> FailureTrace:
    r"""Read the text of an event trace. A machine is a node, whatever component failed.

    >>> trace = parse_fta(b"0 0 7 1 n7 0 100 160 hw\n1 0 7 1 n7 2 160 200 -\n")
    >>> print(trace.account)
    2 rows: 1 kept, 1 left out
      1 × event_type is neither 0 (down) nor 1 (up) (line 2: '2')
    """
    account = Account()
    kept: list[tuple[list[str], float, float, int]] = []
    for number, line in read_lines(data):
        words = [word.decode("utf-8", "replace") for word in line.split()]
        if words[0].startswith("#") or words[:2] == list(FIELDS[:2]):
            continue
        why, what = _wrong(words)
        if why:
            account.skip(why, number, what)
        else:
            kept.append((words, float(words[6]), float(words[7]), number))
    account.kept = len(kept)
    rows = [row for row, *_ in kept]
    several = len({row[3] for row in rows}) > 1
    return FailureTrace(
        [f"{row[3]}.{row[2]}" if several else row[2] for row in rows],
        [start for _, start, _, _ in kept],
        [end for _, _, end, _ in kept],
        [TYPES[row[5]] for row in rows],
        {name: [row[k] for row in rows] for k, name in enumerate(FIELDS)},
        account,
        [number for *_, number in kept],
    )


def _wrong(words: list[str]) -> tuple[str, str]:
    """Say what is wrong with a row, and what exactly, if something is."""
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
    return "", ""


def write_fta(path: str | PathLike[str], trace: FailureTrace) -> None:
    """Write a trace in the event format; reading it gives an equal one.

    What a trace read from elsewhere does not know is 0, or ``-``.
    """
    size = len(trace)
    nodes = [_word(trace.nodes[k]) for k in trace.node.tolist()]
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


def _word(name: str) -> str:
    return "_".join(name.split()) or "-"
