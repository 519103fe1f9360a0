"""Measured throughputs: steps a second of job types on several kinds of machines."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from itertools import chain
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..model import InputError
from ..model.spreadsheet import unquoted, write_table
from .job_trace import number_of, shortest
from .trace_file import LARGEST, Account, fields, parse_file, read_table, write_text

TYPE, DEVICES = "job type", "gpus"


@dataclass(frozen=True, eq=False)
class Throughputs:
    """A matrix of measured rates [job type, kind of machine]; 0 where a job cannot run."""

    types: tuple[str, ...]
    devices: tuple[int, ...]
    """Number of devices that a job of each row uses."""
    kinds: tuple[str, ...]
    steps: NDArray[np.float64]
    account: Account

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Throughputs)
            and (self.types, self.devices, self.kinds) == (other.types, other.devices, other.kinds)
            and np.array_equal(self.steps, other.steps)
        )

    __hash__ = None  # type: ignore[assignment]

    def on(self, devices: int | None = None) -> Throughputs:
        """Return the rows of jobs with this number of devices, by default the smallest."""
        if devices is None:
            devices = min(self.devices, default=1)
        wanted = (np.array(self.devices) == devices) & (self.steps > 0).any(axis=1)
        chosen = np.flatnonzero(wanted).tolist()
        if not chosen:
            known = ", ".join(map(str, sorted(set(self.devices))))
            raise InputError(f"no job type uses {devices} devices; there are types with {known}")
        steps = self.steps[chosen]
        able = np.any(steps > 0, axis=0)
        return Throughputs(
            tuple(self.types[k] for k in chosen),
            (devices,) * len(chosen),
            tuple(kind for kind, runs in zip(self.kinds, able.tolist(), strict=True) if runs),
            steps[:, able],
            self.account,
        )


def read_throughputs(path: str | PathLike[str]) -> Throughputs:
    """Read a table of throughputs (CSV); wrong rows are left out and accounted for."""
    return parse_file(path, parse_throughputs)


def parse_throughputs(data: bytes) -> Throughputs:
    r"""Parse a table of throughputs.

    >>> found = parse_throughputs(b"job type,gpus,old,new\nvision,1,2,9.5\nspeech,1,4\n")
    >>> print(found.account)
    2 rows: 1 kept, 1 left out
      1 × not 4 fields (line 3: 3 fields)
    """
    table = read_table(data)
    names = [name.strip() for name in unquoted(next(table, (0, []))[1])]
    if names[:2] != [TYPE, DEVICES] or len(names) < 3 or len(set(names)) < len(names):
        raise InputError(f"expected a first line '{TYPE},{DEVICES},' and kinds of machines")
    account = Account()
    rows = [row for _, row in account.sift(table, lambda row: _wrong(row, names))]
    types = tuple(unquoted(row)[0].strip() for row in rows)
    devices = tuple(int(row[1]) for row in rows)
    steps = np.array([list(map(float, row[2:])) for row in rows]).reshape(-1, len(names) - 2)
    return Throughputs(types, devices, tuple(names[2:]), steps, account)


def _wrong(row: list[str], names: list[str]) -> tuple[str, str] | None:
    if len(row) != len(names):
        return f"not {len(names)} fields", fields(len(row))
    if not (row[1].strip().isascii() and row[1].strip().isdigit() and len(row[1]) < 10):
        return "not a number", f"{DEVICES} is {row[1][:20]!r}"
    for name, word in zip(names[2:], row[2:], strict=True):
        value = number_of(word)
        if value is None:
            return "not a number", f"{name} is {word[:20]!r}"
        if not (value == 0 or 1 / LARGEST < value < LARGEST):
            return "out of range", f"{name} is {word[:20]!r}"
    return None


def write_throughputs(path: str | PathLike[str], found: Throughputs) -> None:
    """Write a table of throughputs; reading it gives an equal one."""
    out = StringIO(newline="")
    each = zip(found.types, found.devices, found.steps.tolist(), strict=True)
    rows = ([name, devices, *map(shortest, steps)] for name, devices, steps in each)
    write_table(out, chain([[TYPE, DEVICES, *found.kinds]], rows), end="\n")
    write_text(path, out.getvalue())
