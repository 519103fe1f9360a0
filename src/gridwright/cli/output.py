"""Print results as tables or JSON, show progress, and write the files that options name."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from .packages import experiments, model, plots, statistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Cell = str | Text
QUIET_ZERO = Text("·", "dim")
UNKNOWN = "–"
UNLIMITED = 10_000
"""Width of the console in columns where the output is not a terminal: nothing is cut."""
GAP = 2
"""Spaces between the columns of a table."""
FOLDED = 20
"""The least width of the last column of a table, if it has words."""
MANY_COLUMNS = 10
"""A matrix with more columns than this is printed with its longer side down the page."""
LONGEST_NAME = 255
"""Bytes of a file name that every usual file system accepts."""
PROGRESS_INTERVAL = 60.0
"""Seconds between two lines of progress where stderr is not a terminal."""


class StoppedError(Exception):
    """Raised after Ctrl-C, with the line to print."""


class CommandFailedError(Exception):
    """Raised if a user's command has failed, with its status, which ends this one too."""


def finish(
    words: Callable[[], Any],
    show: Callable[[], None],
    *,
    json: bool,
    files: Mapping[Path | None, Any] | None = None,
) -> None:
    """Write the files that were asked for, then print a result as JSON or show it.

    Files have the functions that write them by path; None stands for an option that was not
    given. `check_files` has checked the paths.
    """
    wanted = {path: write for path, write in (files or {}).items() if path is not None}
    for path, write in wanted.items():
        with model.error.file_errors(path, "written"):
            write(path)
    if json:
        print_json(words())
        return
    show()
    if wanted:
        print(f"\nwritten: {', '.join(map(str, wanted))}")


def check_files(**options: Path | None) -> None:
    """Check that the files which options name can be written, before any work is done."""
    before: dict[Path, str] = {}
    for name, path in options.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')} {path}"
        if (other := before.setdefault(path.absolute(), option)) != option:
            raise model.InputError(f"{other} and {option} are the same file")
        folder = path.absolute().parent
        if name == "plot" and path.suffix.lower() not in plots.FORMATS:
            raise model.InputError(
                f"{option}: expected a file that ends in {', '.join(plots.FORMATS)}"
            )
        if not os.path.isdir(folder):
            raise model.InputError(f"{option}: there is no folder {path.parent}")
        too_long = len(os.fsencode(path.name)) > LONGEST_NAME
        if too_long or os.path.isdir(path) or not os.access(folder, os.W_OK):
            raise model.InputError(f"{option}: cannot be written there")


def write_rows(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a table for a spreadsheet (CSV)."""
    model.spreadsheet.write_rows(path, chain([header], rows))


def print_json(value: Any) -> None:
    """Print one JSON object; numbers that are not finite become null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    is_utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    json.dump(finite, sys.stdout, ensure_ascii=not is_utf8)
    sys.stdout.write("\n")


def warn(line: str) -> None:
    """Print one line on stderr."""
    print(f"gridwright: {line}", file=sys.stderr)


@contextmanager
def progress_bar() -> Iterator[Callable[..., None]]:
    """Show progress on stderr: a bar on a terminal, else a line every minute.

    The bar shows the confidence interval of the mean number so far, or a note.
    """
    if not sys.stderr.isatty():
        last = monotonic()

        def say(policy: Any, done: float, runs: Sequence[Any] = (), note: str = "") -> None:
            nonlocal last
            if monotonic() - last >= PROGRESS_INTERVAL:
                last = monotonic()
                warn(f"{policy}: {100 * done:.0f} % {note}".rstrip())

        yield say
        return
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    bar = Progress(
        "{task.description}",
        BarColumn(),
        "{task.percentage:3.0f} %",
        TimeRemainingColumn(compact=True),
        "{task.fields[interval]}",
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def report(policy: Any, done: float, runs: Sequence[Any] = (), note: str = "") -> None:
        name = str(policy)
        if name not in tasks:
            tasks[name] = bar.add_task(name, total=1.0, interval="")
        so_far = [run.mean_number for run in runs]
        interval = f"mean number {statistics.estimate(so_far)}" if runs else note
        bar.update(tasks[name], completed=done, interval=interval)

    with bar:
        yield report


def kept_results(path: Path | None = None, *, fresh: bool = False) -> experiments.Store | None:
    """Open the store of results; warn and continue without it if it cannot be opened.

    One that a user names may come from any computer, and must open.
    """
    if path is not None:
        return experiments.Store(path, fresh=fresh, anywhere=True)
    try:
        return experiments.Store(fresh=fresh)
    except model.InputError as error:
        warn(f"{error}; continuing without it")
        return None


def console() -> Console:
    """Return a console for results; only a terminal gets colours and a limited width."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else UNLIMITED
    return Console(highlight=False, soft_wrap=True, width=width, emoji=False)


def show(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table without trailing spaces.

    Only the last column is folded, if it has words. A terminal that is too narrow for the others
    folds the lines; else whole columns would be missing.
    """
    out, made = console(), table(columns, rows)
    kept = [each for each in made.columns if each.no_wrap]
    out.width = max(out.width, sum(map(_width, kept)) + GAP * len(made.columns) + FOLDED)
    with out.capture() as page:
        out.print(made)
    for line in page.get().splitlines():
        print(line.rstrip())


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Return a plain table; columns whose title starts with '>' hold numbers."""
    result = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for k, column in enumerate(columns, 1):
        right, last = column.startswith(">"), k == len(columns)
        justify: Literal["left", "right"] = "right" if right else "left"
        title = Text(column.removeprefix(">"))
        result.add_column(title, justify=justify, no_wrap=right or not last, overflow="fold")
    for row in rows:
        result.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return result


def _width(column: Column) -> int:
    return max(cell_len(str(each)) for each in (column.header, *column.cells))


def show_matrix(
    system: model.System, values: NDArray[np.float64], write: Callable[[float], str]
) -> None:
    """Print a matrix [class, machine] as a table that fits a terminal.

    Neighbours of a group with equal values share a column. Zeros are dots.
    """
    runs = list(_runs(system, values))
    names = [system.machines[first] for first, _ in runs]
    for k, (first, last) in enumerate(runs):
        if first < last:
            names[k] += f" … {system.machines[last].rpartition('.')[2]}"
    columns = values[:, [first for first, _ in runs]]
    pairs = zip(system.classes, system.arrival_rates, strict=True)
    classes = [f"{name} ({rate:g}/t)" for name, rate in pairs]
    title, heads, sides, cells = "class (arrivals)", names, classes, columns
    if len(runs) > max(len(classes), MANY_COLUMNS):
        title, heads, sides, cells = "machine", classes, names, columns.T
    rows = (
        [side, *(write(float(value)) if value else QUIET_ZERO for value in row)]
        for side, row in zip(sides, cells, strict=True)
    )
    show([title, *(f">{head}" for head in heads)], rows)


def _runs(system: model.System, values: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield the first and last machine of every run of equal columns in a group."""
    first = 0
    for j in range(1, len(system.machines)):
        same_group = system.column[j] == system.column[first]
        if not same_group or (values[:, j] != values[:, first]).any():
            yield first, j - 1
            first = j
    yield first, len(system.machines) - 1


def counted(count: int, one: str, many: str = "") -> str:
    """Write a number of things.

    >>> counted(1, "class", "classes"), counted(3, "class", "classes"), counted(1200, "job")
    ('1 class', '3 classes', '1,200 jobs')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def headline(result: experiments.Result, under: str = "") -> str:
    """Return the system, the number and length of the runs, and their seed."""
    runs = counted(len(result.replications), "replication")
    name = f"[bold]{escape(result.system.name)}[/bold]{under}"
    return f"{name}: {runs} of {result.length}, seed {result.seed}"


def percent(share: float) -> str:
    """Write a share in percent.

    >>> percent(0.75), percent(1.0351)
    ('75.0 %', '103.5 %')
    """
    return f"{100 * share:.1f} %"


def known(value: float | None, form: str) -> str:
    """Write a number in a form such as '.4f', and NaN and None as a dash.

    >>> known(0.5, ".2f"), known(float("nan"), ".2f")
    ('0.50', '–')
    """
    return UNKNOWN if value is None or value != value else f"{value:{form}}"


def show_tails(tails: Mapping[str, Mapping[str, float]]) -> None:
    """Print the percentiles of the response and the shares within times, a row a class."""
    names = list(next(iter(tails.values())))
    rows = [(name, *(known(found[each], ".4g") for each in names)) for name, found in tails.items()]
    show(("response", *(f">{name}" for name in names)), rows)


def with_verdict(result: experiments.Result, name: str) -> str:
    """Write a measure of a result; "undecided" after it, or "unstable" in its place.

    The mean number and the response of an unstable policy depend on the horizon only. Measures
    that are counted over a run, such as tasks on time, need no mark.
    """
    if result.stable or name in result.more_is_better:
        return result.written(name)
    return f"{result.written(name)} undecided" if result.has_interval(name) else "unstable"
