"""Options that commands about traces have in common, and what is done with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..traces import Account, JobTrace

__all__ = [
    "Classes",
    "From",
    "Load",
    "Machines",
    "Processors",
    "To",
    "name_of",
    "say_account",
    "window",
]

ENDINGS = (".gz", ".xz", ".bz2", ".swf", ".gwf", ".csv", ".tab")

Classes = Annotated[
    str,
    typer.Option(
        help="What task classes are made by, and how many at most: user, group, executable, "
        "queue, partition, run_time; user:4.",
        metavar="BY[:N]",
        show_default=False,
    ),
]
Machines = Annotated[
    str,
    typer.Option(
        help="trace:N, the N largest partitions; 4x1,2x2.5, so many of such speeds; or a system "
        "or table of throughputs, for its matrix of rates.",
        metavar="MACHINES",
        show_default=False,
    ),
]
Processors = Annotated[
    str,
    typer.Option(
        help="Jobs on several processors: times, run time × processors is their work; ignore, run "
        "time is; single, they are left out.",
        metavar="RULE",
    ),
]
From = Annotated[
    str,
    typer.Option("--from", help="Where it begins: 6h or 2d after the first job.", metavar="TIME"),
]
To = Annotated[
    str | None,
    typer.Option("--to", help="Where it ends: 3d.", metavar="TIME", show_default=False),
]
Load = Annotated[
    float | None,
    typer.Option(
        help="Make all machines faster or slower alike, for this load. 0.8 where only relative "
        "speeds are known.",
        show_default=False,
    ),
]


def window(trace: JobTrace, begin: str, end: str | None) -> dict[str, float]:
    """Return the window that was asked for, in seconds since the first submission."""
    from ..traces.duration import moment

    first = trace.first_submission
    zero = first if first > 1e8 else _unix(trace, first)  # the times themselves may be dates
    found = {"start": moment(begin, zero) - zero}
    if end is not None:
        found["end"] = moment(end, zero) - zero
    return found


def _unix(trace: JobTrace, first: float) -> float:
    """Return the date of the first submission, where the comments tell when the log starts."""
    try:
        return first + float(trace.about.get("UnixStartTime", ""))
    except ValueError:
        return first


def say_account(out: Any, title: str, account: Account) -> None:
    """Print how many rows were kept, and why others were not."""
    from rich.markup import escape

    head, *more = str(account).splitlines()
    out.print(f"{title}: {escape(head)}")
    for line in more:
        out.print(escape(line))


def name_of(path: Path) -> str:
    """Return what a trace is called: its file's name, without what it ends in.

    >>> name_of(Path("KTH-SP2-1996-2.1-cln.swf.gz"))
    'KTH-SP2-1996-2.1-cln'
    """
    while path.suffix.lower() in ENDINGS:
        path = path.with_suffix("")
    return path.name
