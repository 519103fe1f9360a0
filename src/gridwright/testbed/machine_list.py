"""Read and write machine lists and files of rates, also those of the original testbed.

A line of a machine list is ``address; credential; minutes; iterations``: where the machine is, its
secret, and how long it took for how many iterations of the loop. Error messages never quote a line,
because the credential may be in the wrong field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hmac import compare_digest
from math import inf, nan
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..model import InputError
from ..model.error import file_errors
from .adjuster import Calibration

FIELDS = "address; credential; minutes; iterations"
TINY, HUGE = 1e-20, 1e20
"""Numbers beyond these are mistakes."""


class Credential:
    """A secret that is hidden when it is printed.

    >>> Credential("open sesame")
    Credential(hidden)
    >>> Credential("open sesame").reveal()
    'open sesame'
    """

    __slots__ = ("__secret",)

    def __init__(self, secret: str) -> None:
        self.__secret = secret

    def reveal(self) -> str:
        """Return the secret; do not store it."""
        return self.__secret

    def __repr__(self) -> str:
        return "Credential(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Credential) and compare_digest(
            self.__secret.encode(), other.__secret.encode()
        )

    __hash__ = None  # type: ignore[assignment]  # a hash would reveal something

    def __copy__(self) -> Credential:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Credential:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a credential cannot be pickled: it would be stored in the journal")


@dataclass(frozen=True)
class Listed:
    """A machine of a list."""

    address: str
    credential: Credential | None = None
    calibration: Calibration | None = None
    """How long it took for the loop, if that was measured."""


def read_machines(path: str | PathLike[str]) -> tuple[Listed, ...]:
    """Read a machine list; ignore blank lines and lines that begin with #."""
    return parse_machines(_text(Path(path)), str(path))


def parse_machines(text: str, path: str) -> tuple[Listed, ...]:
    r"""Parse a machine list: four fields on each line, or the address alone.

    >>> [each.address for each in parse_machines("a\nb; ; 1; 500", "the list")]
    ['a', 'b']
    """
    found: dict[str, tuple[int, Listed]] = {}
    for number, line in _lines(text):
        where = f"{path}, line {number}"
        fields = [field.strip() for field in line.split(";")]
        if len(fields) == 1:
            fields += ["", "", ""]
        if len(fields) != 4:
            raise InputError(f"{where}: {len(fields)} fields; expected 4: {FIELDS}")
        address, secret, minutes, iterations = fields
        if not address or len(address.split()) > 1:
            raise InputError(f"{where}: expected an address in the first field: {FIELDS}")
        if address in found:
            raise InputError(f"{where}: the machine of line {found[address][0]} once more")
        calibration = None
        if minutes or iterations:
            taken = _positive(minutes, where, "minutes, the third field,")
            rounds = _positive(iterations, where, "iterations, the fourth field,")
            calibration = Calibration(iterations=rounds, seconds=60 * taken)
        credential = Credential(secret) if secret else None
        found[address] = number, Listed(address, credential, calibration)
    if not found:
        raise InputError(f"{path}: no machine in it; expected one a line: {FIELDS}")
    return tuple(listed for _, listed in found.values())


def write_machines(path: str | PathLike[str], machines: Iterable[Listed]) -> None:
    """Write a machine list, without the credentials."""
    lines = [f"# {FIELDS}"]
    for each in machines:
        if not each.address or ";" in each.address or each.address[0] == "#":
            raise InputError(f"machine {each.address!r} cannot stand in a list: {FIELDS}")
        if len(each.address.split()) > 1:
            raise InputError(f"machine {each.address!r} cannot stand in a list: it has spaces")
        known = each.calibration
        figures = f"{known.seconds / 60:.9g}; {known.iterations:g}" if known else ";"
        lines.append(f"{each.address}; ; {figures}")
    with file_errors(path, "written"):
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_rates(path: str | PathLike[str]) -> NDArray[np.float64]:
    """Read rates [class, machine]: a line for each class, its numbers separated by commas."""
    return parse_rates(_text(Path(path)), str(path))


def parse_rates(text: str, name: str) -> NDArray[np.float64]:
    r"""Parse rates; error messages use the name.

    >>> parse_rates("2.2, 7\n1, 0.5", "rates")
    array([[2.2, 7. ],
           [1. , 0.5]])
    """
    rows: list[list[float]] = []
    first = 0
    for number, line in _lines(text):
        where = f"{name}, line {number}"
        row = []
        for k, word in enumerate(map(str.strip, line.split(",")), start=1):
            row.append(_number(word))
            if not 0 <= row[-1] < inf:
                raise InputError(f"{where}: rate {k} is {word!r}; expected a number, 0 or more")
        first = first or number
        if rows and len(row) != len(rows[0]):
            raise InputError(f"{where}: {len(row)} rates; expected {len(rows[0])}, as line {first}")
        rows.append(row)
    if not rows:
        raise InputError(f"{name}: no rates in it; expected a row for each class: 2.2, 7, 10.25")
    return np.array(rows)


def _text(path: Path) -> str:
    try:
        with file_errors(path, "read"):
            return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file; expected UTF-8") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines that are neither blank nor comments, with their numbers."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _positive(word: str, where: str, what: str) -> float:
    value = _number(word)
    if not TINY < value < HUGE:
        raise InputError(f"{where}: {what} should be a number above 0")
    return value


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return nan
