"""Write CSV tables whose cells a spreadsheet does not run as formulas.

Spreadsheets run cells that begin with =, +, - or @, and names and messages may come from others.
Writing puts an apostrophe in front of such a cell; reading removes it.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

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
    """Remove the apostrophes that ``write_table`` added to a row.

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
