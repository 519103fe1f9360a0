"""Read CSV tables, and write them so that a spreadsheet runs no cell as a formula.

Spreadsheets run cells that begin with =, +, - or @, and names and messages may come from others.
Writing puts an apostrophe in front of such a cell; reading removes it.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, TypeVar

from .error import InputError, file_errors

T = TypeVar("T")
_FIRST = ("=", "+", "-", "@", "\t", "\r", "'")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def read_rows(
    path: str | PathLike[str],
    columns: Sequence[str],
    parse: Callable[[list[str], str], T],
    name: str = "",
) -> list[T]:
    """Read a CSV file with these columns; ``parse`` gets each row and its place in the file."""
    found, name, expected = [], name or str(path), ",".join(columns)
    try:
        with (
            file_errors(path, "read", name),
            Path(path).open(newline="", encoding="utf-8-sig") as file,
        ):
            table = csv.reader(file)
            first = ",".join(next(table, []))
            if first != expected:
                raise InputError(f"{name}: the first line is {first!r}; expected {expected}")
            for row in table:
                where = f"{name}, line {table.line_num}"
                if len(row) != len(columns):
                    raise InputError(f"{where}: {len(row)} fields; expected {expected}")
                found.append(parse(unquoted(row), where))
    except UnicodeDecodeError:
        raise InputError(f"{name} is not a text file; expected CSV in UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{name} cannot be read: {error}") from None
    return found


def write_rows(path: str | PathLike[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file; the first row has the names of the columns."""
    with file_errors(path, "written"), Path(path).open("w", newline="", encoding="utf-8") as file:
        write_table(file, rows)


def write_table(file: TextIO, rows: Iterable[Iterable[Any]], end: str = "\r\n") -> None:
    r"""Write rows as CSV.

    >>> from io import StringIO
    >>> file = StringIO()
    >>> write_table(file, [["=1+1", "-1.5", -1.5, "a=b"]], end="\n")
    >>> file.getvalue()
    "'=1+1,-1.5,-1.5,a=b\n"
    """
    csv.writer(file, lineterminator=end).writerows(
        [_quoted(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )


def unquoted(row: Sequence[str]) -> list[str]:
    """Remove the apostrophes that ``write_table`` added to a row.

    >>> unquoted(["'=1+1", "-1.5", "it's"])
    ['=1+1', '-1.5', "it's"]
    """
    return [cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell for cell in row]


def _quoted(cell: str) -> str:
    if not cell.startswith(_FIRST):  # most cells, quickly
        return cell
    return f"'{cell}" if _FORMULA.match(cell) and not _is_number(cell) else cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
