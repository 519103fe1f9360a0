"""Read a trace of any format; the first lines of the file tell which."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, TypeVar

from ..model import InputError
from .failure_trace import FailureTrace, parse_fta, parse_lanl
from .job_trace import JobTrace, parse_gwf, parse_swf
from .throughput import Throughputs, parse_throughputs
from .trace_file import read_bytes, suffix

Trace = JobTrace | FailureTrace | Throughputs
KINDS = {JobTrace: "a trace of jobs", FailureTrace: "failures", Throughputs: "throughputs"}
T = TypeVar("T")

FORMATS: dict[str, tuple[str, Callable[[bytes], Any]]] = {
    "swf": ("Standard Workload Format", parse_swf),
    "gwf": ("Grid Workloads Format", parse_gwf),
    "fta": ("Failure Trace Archive, event trace", parse_fta),
    "lanl": ("Los Alamos failure records", parse_lanl),
    "throughputs": ("measured throughputs", parse_throughputs),
}
"""Formats by name: their title, and the function that parses them."""
BY_SUFFIX = {".swf": "swf", ".gwf": "gwf", ".tab": "fta"}


def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a trace of any kind: of jobs, of failures, or measured throughputs.

    Its ``account`` says which rows were left out and why. A file without a usable row is an error.
    """
    data = read_bytes(path)
    name = format_of(data, suffix(path))
    if name is None:
        known = ", ".join(said for said, _ in FORMATS.values())
        raise InputError(f"{path} is not a trace; expected one of: {known}")
    said, parse = FORMATS[name]
    try:
        found: Trace = parse(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not found.account.kept:
        reasons = "; ".join(line.strip() for line in str(found.account).splitlines()[1:])
        why = reasons or "there are no rows"
        raise InputError(f"{path}: no row can be used ({said}); {why}")
    return found


def read_jobs(path: str | PathLike[str]) -> JobTrace:
    """Read a trace of jobs."""
    return _read_a(JobTrace, path, "a trace of jobs (.swf, .gwf)")


def read_failures(path: str | PathLike[str]) -> FailureTrace:
    """Read a failure trace."""
    return _read_a(FailureTrace, path, "a failure trace")


def _read_a(kind: type[T], path: str | PathLike[str], expected: str) -> T:
    found = read_trace(path)
    if not isinstance(found, kind):
        raise InputError(f"{path}: expected {expected}, not {KINDS[type(found)]}")
    return found


def format_of(data: bytes, ending: str = "") -> str | None:
    """Return the format of a file by its first lines, else by the ending of its name."""
    lines = [line for line in data[:65536].removeprefix(b"\xef\xbb\xbf").splitlines() if line]
    for line in lines:
        words = line.split()
        if not words or line.startswith(b";"):
            continue
        if line.startswith(b"System,") or b"Prob Started" in line:
            return "lanl"
        if line.startswith(b"job type,"):
            return "throughputs"
        if b"event_start_time" in line:
            return "fta"
        if b"SubmitTime" in line:
            return "gwf"
        if line.startswith(b"#"):
            continue
        by_width = {18: "swf", 29: "gwf", 9: "fta"}
        return BY_SUFFIX.get(ending, by_width.get(len(words)))
    return BY_SUFFIX.get(ending)
