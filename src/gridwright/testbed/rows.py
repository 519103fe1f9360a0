"""Tables in files, for people and spreadsheets to read and edit."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from ..model import InputError
from ..model.spreadsheet import unquoted, write_table

__all__ = ["read_rows", "write_rows"]

T = TypeVar("T")


def read_rows(
    path: str | PathLike[str], columns: Sequence[str], parse: Callable[[list[str], str], T]
) -> list[T]:
    """Read a CSV file with these columns; ``parse`` is given every row and where it stands."""
    found = []
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.reader(file)
            if next(table, None) != list(columns):
                raise InputError(f"{path}: expected a first line {','.join(columns)}")
            for number, row in enumerate(table, start=2):
                where = f"{path}, line {number}"
                if len(row) != len(columns):
                    raise InputError(f"{where}: {len(row)} fields; expected {', '.join(columns)}")
                found.append(parse(unquoted(row), where))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return found


def write_rows(path: str | PathLike[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file; its first row is the columns' names."""
    try:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            write_table(file, rows)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
