"""Options that simulations have in common, and what is done with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..experiments import Result, Store

__all__ = [
    "Csv",
    "Horizon",
    "On",
    "Plot",
    "Replications",
    "Seed",
    "Threads",
    "Trace",
    "Warmup",
    "kept_results",
    "progress_bar",
    "writable",
    "write_csv",
    "write_rows",
    "write_trace",
]

Horizon = Annotated[
    float | None,
    typer.Option(help="Length of a run: as published, else 20,000.", show_default=False),
]
Warmup = Annotated[float, typer.Option(help="Time at the start of a run that does not count.")]
Replications = Annotated[int, typer.Option(help="Independent runs.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Threads = Annotated[
    int | None, typer.Option(help="Runs at once: as many as processors.", show_default=False)
]
On = Annotated[
    str | None,
    typer.Option(help="Run on a Dask cluster: tcp://HOST:PORT.", metavar="ADDRESS"),
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", help="Write the replications' values.", metavar="PATH"),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw means, classes, and the number in system.", metavar="PATH"),
]
Trace = Annotated[
    Path | None,
    typer.Option(help="Write the first replication's event log (CSV).", metavar="PATH"),
]

LONGEST_NAME = 255
"""Bytes of a file's name, on every file system in use."""


@contextmanager
def progress_bar() -> Iterator[Callable[..., None]]:
    """Show on stderr how far a simulation is, with its interval as it shrinks, or with a note.

    Into a file or a pipe goes a line every minute.
    """
    if not sys.stderr.isatty():
        yield _now_and_then()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from ..statistics import estimate

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[interval]}"),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def report(policy: Any, done: float, runs: Sequence[Any] = (), note: str = "") -> None:
        name = str(policy)
        if name not in tasks:
            tasks[name] = bar.add_task(name, total=1.0, interval="")
        interval = f"mean number {estimate([r.mean_number for r in runs])}" if runs else note
        bar.update(tasks[name], completed=done, interval=interval)

    with bar:
        yield report


SELDOM = 60.0
"""Seconds between lines on how far a simulation is."""


def _now_and_then() -> Callable[..., None]:
    last = monotonic()

    def report(policy: Any, done: float, runs: Sequence[Any] = (), note: str = "") -> None:
        nonlocal last
        if monotonic() - last >= SELDOM:
            last = monotonic()
            print(f"gridwright: {policy}: {100 * done:.0f} % {note}".rstrip(), file=sys.stderr)

    return report


def kept_results(*, fresh: bool = False) -> Store | None:
    """Open the store of results; where there can be none, say so and go on without."""
    from ..experiments import Store
    from ..model import InputError

    try:
        return Store(fresh=fresh)
    except InputError as error:
        print(f"gridwright: {error}; going on without", file=sys.stderr)
        return None


def writable(path: Path | None, option: str) -> Path | None:
    """Check that a file can be written, before any work is done for it."""
    from ..model import InputError

    if path is not None:
        folder = path.absolute().parent
        too_long = len(os.fsencode(path.name)) > LONGEST_NAME
        unfit = os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK)
        if too_long or unfit:
            raise InputError(f"{option} {path}: cannot be written there")
    return path


def write_csv(results: tuple[Result, ...], path: Path) -> None:
    """Write one row a replication: what a spreadsheet needs to check the intervals."""
    names = results[0].system.classes
    header = ["policy", "replication", "tasks", "mean_number", "mean_response"]
    header += [f"mean_response {name}" for name in names]
    header += [f"throughput {name}" for name in names]
    header += results[0].further
    rows = []
    for result in results:
        overall = result.values("mean_response")
        further = [result.values(name) for name in result.further]
        for number, run in enumerate(result.replications):
            head = [str(result.policy), number + 1, run.tasks, run.mean_number, overall[number]]
            own = [values[number] for values in further]
            rows.append([*head, *run.response.tolist(), *run.throughput.tolist(), *own])
    write_rows(path, header, rows)


def write_rows(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a table for a spreadsheet."""
    from ..model import InputError
    from ..model.spreadsheet import write_table

    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            write_table(file, chain([header], rows))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def write_trace(result: Result, path: Path) -> None:
    """Write the event log of the first replication, in the order of time."""
    from ..simulation import KINDS

    events = result.replications[0].trace
    system = result.system
    rows = (
        [
            repr(float(event.time)),
            KINDS[event.kind],
            int(event.task) + 1 if event.task >= 0 else "",
            system.classes[event.task_class] if event.task_class >= 0 else "",
            system.machines[event.machine] if event.machine >= 0 else "",
        ]
        for event in events[events["time"].argsort(kind="stable")]
    )
    write_rows(path, ["time", "event", "task", "class", "machine"], rows)
