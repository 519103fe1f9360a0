"""Measured execution times from a CSV file: class, machine, time."""

import csv
from pathlib import Path

from .spreadsheet import unquoted

__all__ = ["read_times"]

COLUMNS = ["class", "machine", "time"]


def read_times(path: Path) -> dict[str, dict[str, list[float]]]:
    """Read measured times by the names of class and machine (or group of machines)."""
    found: dict[str, dict[str, list[float]]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            if header != COLUMNS:
                raise ValueError(
                    f"{path.name}: the first line is {','.join(header)!r}; expected "
                    "class,machine,time"
                )
            for row in rows:
                where = f"{path.name}, line {rows.line_num}"
                if len(row) != len(COLUMNS):
                    raise ValueError(f"{where}: {len(row)} values; expected class,machine,time")
                task_class, machine, time = unquoted(row)
                found.setdefault(task_class, {}).setdefault(machine, []).append(_time(time, where))
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not a text file; expected CSV in UTF-8") from None
    if not found:
        raise ValueError(f"{path.name} has no times")
    return found


def _time(word: str, where: str) -> float:
    try:
        time = float(word)
    except ValueError:
        time = -1.0
    if not 0 < time < float("inf"):
        raise ValueError(f"{where}: the time is {word!r}; expected a number > 0")
    return time
