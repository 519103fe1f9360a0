"""How results look on a terminal: one console, one way to print JSON, one kind of table."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ..experiments import Result

__all__ = [
    "QUIET_ZERO",
    "StoppedError",
    "console",
    "counted",
    "known",
    "number",
    "percent",
    "print_json",
    "show",
    "table",
    "with_verdict",
    "written",
]

QUIET_ZERO = "[dim]·[/dim]"
UNKNOWN = "–"


ENDLESS = 10_000
"""Columns of a page that is not a terminal, where nothing need be cut."""


class StoppedError(Exception):
    """Raised after Ctrl-C, with the line to be said."""


def console() -> Console:
    """Make a console for results; colours and a narrow page only where somebody is looking."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else ENDLESS
    return Console(highlight=False, soft_wrap=True, width=width, emoji=False)


def show(out: Console, rows: Table) -> None:
    """Print a table, without the spaces that fill its lines up."""
    with out.capture() as page:
        out.print(rows)
    for line in page.get().splitlines():
        print(line.rstrip())


def counted(count: int, one: str, many: str) -> str:
    """Write a number of things.

    >>> counted(1, "class", "classes"), counted(3, "class", "classes")
    ('1 class', '3 classes')
    """
    return f"{count} {one if count == 1 else many}"


def table(*columns: str) -> Table:
    """Make a plain table; columns whose title starts with '>' hold numbers."""
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        right, last = column.startswith(">"), column == columns[-1]
        justify: Literal["left", "right"] = "right" if right else "left"
        result.add_column(column.removeprefix(">"), justify=justify, no_wrap=right or not last)
    return result


def number(value: float, form: str) -> str:
    """Write a number in a form such as '.4f', a zero as a quiet dot."""
    return QUIET_ZERO if value == 0 else f"{value:{form}}"


def percent(share: float) -> str:
    """Write a share in percent.

    >>> percent(0.75), percent(1.0351)
    ('75.0 %', '103.5 %')
    """
    return f"{100 * share:.1f} %"


def known(value: float, form: str) -> str:
    """Write a number in a form such as '.4f', or a dash where there is none.

    >>> known(0.5, ".2f"), known(float("nan"), ".2f")
    ('0.50', '–')
    """
    return UNKNOWN if value != value else f"{value:{form}}"


def with_verdict(result: "Result", name: str) -> str:
    """Write a figure of a result, marked if the policy is undecided; "unstable" in its place.

    The number in system and the response of an unstable policy depend on the horizon only. What
    is counted over a run, such as tasks on time, needs no mark.
    """
    if result.stable or name in result.more_is_better:
        return result.written(name)
    return f"{result.written(name)} undecided" if result.has_interval(name) else "unstable"


def written(*paths: Path | None) -> None:
    """Say which files were written, of those that could be."""
    if names := [str(path) for path in paths if path is not None]:
        print(f"\nwritten: {', '.join(names)}")


def print_json(value: Any) -> None:
    """Print one JSON object; what is not a finite number is null."""
    json.dump(_finite(value), sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
