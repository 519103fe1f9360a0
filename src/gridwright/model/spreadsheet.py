"""Tables for spreadsheets: CSV in which no cell is a formula.

A spreadsheet runs a cell that begins with =, +, - or @ as a formula, and class names, machine names
and error messages are other people's words. Such a cell gets an apostrophe in front, which shows
that it is text. Reading takes the apostrophe away again.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

__all__ = ["unquoted", "write_table"]

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def write_table(file: TextIO, rows: Iterable[Iterable[Any]], end: str = "\r\n") -> None:
    r"""Write rows as CSV.

    >>> from io import StringIO
    >>> file = StringIO()
    >>> write_table(file, [["=1+1", "-1.5", -1.5, "a=b"]], end="\n")
    >>> file.getvalue()
    "'=1+1,-1.5,-1.5,a=b\n"
    """
    csv.writer(file, lineterminator=end).writerows([_quoted(cell) for cell in row] for row in rows)


def unquoted(row: Sequence[str]) -> list[str]:
    """Return the cells of a row as they were before they were written.

    >>> unquoted(["'=1+1", "-1.5", "it's"])
    ['=1+1', '-1.5', "it's"]
    """
    return [cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell for cell in row]


def _quoted(cell: Any) -> Any:
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _is_number(cell):
        return cell
    return f"'{cell}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
