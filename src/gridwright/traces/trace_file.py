"""Read and write trace files, plain or packed, and account for their rows."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from ..model import InputError
from ..model.error import file_errors

Trace = TypeVar("Trace")
Row = TypeVar("Row")
Line = tuple[int, bytes]
"""The number of a line, from 1, and its text."""

UNPACK: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
    b"BZh": bz2.BZ2Decompressor,
}
"""The first bytes of a packed file, and what unpacks a stream of it."""
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
ENDINGS = (*PACK, ".swf", ".gwf", ".csv", ".tab")
"""Endings that are no part of the name of a trace."""
BROKEN = (OSError, EOFError, ValueError, MemoryError, lzma.LZMAError, zlib.error)
LARGEST_FILE = 4 * 2**30
"""Largest number of bytes that a packed file may expand to."""


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Read a file, and unpack it if its first bytes say that it is packed."""
    file = Path(path)
    if not os.path.exists(file):
        raise InputError(f"{path}: there is no such file")
    if not file.is_file():
        raise InputError(f"{path}: this is not a regular file; expected a trace")
    with file_errors(path, "read"):
        data = file.read_bytes()
    for magic in UNPACK:
        if data.startswith(magic):
            try:
                return _unpack(data, magic)
            except BROKEN as error:
                why = str(error) or "there is not enough memory"
                raise InputError(f"{path} cannot be unpacked: {why}") from None
    return data


def parse_file(path: str | PathLike[str], parse: Callable[[bytes], Trace]) -> Trace:
    """Parse a file; errors name it."""
    data = read_bytes(path)
    try:
        return parse(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_table(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not blank, and their line numbers."""
    text = data.decode("utf-8-sig", "replace").replace("\0", "")
    table = csv.reader(StringIO(text, newline=""))
    try:
        for row in table:
            if "".join(row).strip():
                yield table.line_num, row
    except csv.Error as error:
        raise InputError(f"line {table.line_num}: {error}") from None


def _unpack(data: bytes, magic: bytes) -> bytes:
    """Unpack all streams of a file: packed files may be joined together."""
    parts, left = [], LARGEST_FILE
    while data:
        if not data.startswith(magic):
            raise ValueError(f"the last {len(data):,} bytes are not packed like the rest")
        stream = UNPACK[magic]()
        parts.append(stream.decompress(data, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise ValueError(f"it has more than {LARGEST_FILE:,} bytes; unpack it and use a part")
        if not stream.eof:
            raise EOFError("it ends too early")
        data = stream.unused_data.lstrip(b"\0")  # files may be padded with zeros
    return b"".join(parts)


def read_lines(data: bytes) -> list[Line]:
    """Return the lines that are not blank, and their numbers."""
    text = with_newlines(data).removeprefix(b"\xef\xbb\xbf")
    return [(n, line) for n, line in enumerate(text.split(b"\n"), 1) if line and line.strip()]


def with_newlines(data: bytes) -> bytes:
    r"""Return a text with lines that end in ``\n`` instead of ``\r\n`` or ``\r``."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def suffix(path: str | PathLike[str]) -> str:
    """Return the ending of the name of a trace, without that of its packing.

    >>> suffix("LCG.swf.gz"), suffix("event_trace.tab")
    ('.swf', '.tab')
    """
    file = Path(path)
    return (Path(file.stem) if file.suffix.lower() in PACK else file).suffix.lower()


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a file, packed as its name says (.gz, .xz, .bz2)."""
    pack = PACK.get(Path(path).suffix.lower(), bytes)
    with file_errors(path, "written"):
        Path(path).write_bytes(pack(text.encode("utf-8", "replace")))


LARGEST = 1e12
"""Numbers beyond this are mistakes: in seconds, they are more than 30,000 years."""
SHOWN = 3
"""Number of rows that are named for every reason."""


def fields(count: int) -> str:
    """Write a number of fields."""
    return "1 field" if count == 1 else f"{count} fields"


@dataclass
class Skipped:
    """Rows that were left out for one reason."""

    count: int = 0
    first: list[str] = field(default_factory=list)
    """The first few: line, and what is wrong."""


class Account:
    """Count the rows of a file that were kept, and those that were left out, with the reasons.

    >>> account = Account(kept=7)
    >>> account.skip("not 18 fields", 12, "3 fields")
    >>> account.rows, account.skipped["not 18 fields"].first
    (8, ['line 12: 3 fields'])
    >>> print(account)
    8 rows: 7 kept, 1 left out
      1 × not 18 fields (line 12: 3 fields)
    """

    def __init__(self, kept: int = 0, notes: Iterable[str] = ()) -> None:
        self.kept = kept
        self.skipped: dict[str, Skipped] = {}
        self.notes = list(notes)
        """Assumptions about rows that were kept."""

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return self.kept + sum(each.count for each in self.skipped.values())

    def skip(self, why: str, line: int, what: str = "", count: int = 1) -> None:
        """Count a row, or several, as left out."""
        if count <= 0:
            return
        found = self.skipped.setdefault(why, Skipped())
        found.count += count
        if len(found.first) < SHOWN and line > 0:
            found.first.append(f"line {line}: {what}" if what else f"line {line}")

    def sift(
        self, rows: Iterable[tuple[int, Row]], wrong: Callable[[Row], tuple[str, str] | None]
    ) -> Iterator[tuple[int, Row]]:
        """Yield the rows that are right; count the others by what is wrong with them."""
        for line, row in rows:
            if found := wrong(row):
                self.skip(found[0], line, found[1])
            else:
                self.kept += 1
                yield line, row

    def take_over(self, other: Account) -> None:
        """Add the rows that an earlier account left out."""
        own, self.skipped = self.skipped, {}
        for skipped in (other.skipped, own):
            for why, each in skipped.items():
                found = self.skipped.setdefault(why, Skipped())
                found.count += each.count
                found.first = (found.first + each.first)[:SHOWN]
        self.notes = [*other.notes, *self.notes]

    def __str__(self) -> str:
        left = self.rows - self.kept
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        lines = [f"{rows}: {self.kept:,} kept, {left:,} left out"]
        for why, each in self.skipped.items():
            where = f" ({'; '.join(each.first)}{'; …' * (each.count > len(each.first))})"
            lines.append(f"  {each.count:,} × {why}{where if each.first else ''}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def as_json(self) -> dict[str, Any]:
        """Return the account as ``--json`` prints it."""
        skipped = {why: asdict(each) for why, each in self.skipped.items()}
        return {"rows": self.rows, "kept": self.kept, "skipped": skipped, "notes": self.notes}


def trace_name(path: str | PathLike[str]) -> str:
    """Return the name of a trace: that of its file without the usual endings.

    >>> trace_name("KTH-SP2-1996-2.1-cln.swf.gz")
    'KTH-SP2-1996-2.1-cln'
    """
    file = Path(path)
    while file.suffix.lower() in ENDINGS:
        file = file.with_suffix("")
    return file.name
