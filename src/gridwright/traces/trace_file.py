"""Trace files as they lie about: plain, or packed with gzip, xz or bzip2."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..model import InputError

__all__ = [
    "LARGEST",
    "Account",
    "Line",
    "Skipped",
    "fields",
    "read_bytes",
    "read_lines",
    "suffix",
    "with_newlines",
    "write_text",
]

Line = tuple[int, bytes]
"""A line's number, from 1, and what stands on it."""

UNPACK: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
    b"BZh": bz2.BZ2Decompressor,
}
"""How a packed file begins, and what unpacks a stream of it."""
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
ENDINGS = (*PACK, ".swf", ".gwf", ".csv", ".tab")
"""Endings that are no part of the name of a trace."""
BROKEN = (OSError, EOFError, ValueError, MemoryError, lzma.LZMAError, zlib.error)
LARGEST_FILE = 4 * 2**30
"""Bytes that a packed file may have when it is unpacked: a few may stand for any number."""


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Read a file, unpacked; how it is packed is told by its first bytes."""
    file = Path(path)
    if not os.path.exists(file):
        raise InputError(f"{path}: there is no such file")
    if not file.is_file():
        raise InputError(f"{path}: this is not a regular file; expected a trace")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    for magic in UNPACK:
        if data.startswith(magic):
            try:
                return _unpack(data, magic)
            except BROKEN as error:
                why = str(error) or "there is not enough memory"
                raise InputError(f"{path} cannot be unpacked: {why}") from None
    return data


def _unpack(data: bytes, magic: bytes) -> bytes:
    """Unpack one stream after the other, as packed files may be put together, to the last byte."""
    parts, left = [], LARGEST_FILE
    while data:
        if not data.startswith(magic):
            raise ValueError(f"{len(data):,} bytes after its end are not packed as the rest is")
        stream = UNPACK[magic]()
        parts.append(stream.decompress(data, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise ValueError(f"it has more than {LARGEST_FILE:,} bytes; unpack it and take a part")
        if not stream.eof:
            raise EOFError("it ends too early")
        data = stream.unused_data.lstrip(b"\0")  # a file may be filled up with zeros
    return b"".join(parts)


def read_lines(data: bytes) -> list[Line]:
    """Return the lines that are not blank, with their numbers."""
    text = with_newlines(data).removeprefix(b"\xef\xbb\xbf")
    return [(n, line) for n, line in enumerate(text.split(b"\n"), 1) if line and line.strip()]


def with_newlines(data: bytes) -> bytes:
    r"""Return a text the lines of which end in ``\n``: others end them in ``\r\n`` or in ``\r``."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def suffix(path: str | PathLike[str]) -> str:
    """Return what a trace's name ends in, packing aside.

    >>> suffix("LCG.swf.gz"), suffix("event_trace.tab")
    ('.swf', '.tab')
    """
    file = Path(path)
    return (Path(file.stem) if file.suffix.lower() in PACK else file).suffix.lower()


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a file, packed as its name says (.gz, .xz, .bz2)."""
    pack = PACK.get(Path(path).suffix.lower(), bytes)
    try:
        Path(path).write_bytes(pack(text.encode("utf-8", "replace")))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


LARGEST = 1e12
"""Numbers beyond this are mistakes: as seconds, they are more than 30,000 years."""
SHOWN = 3
"""Rows that are told of for every reason."""


def fields(count: int) -> str:
    """Write a number of fields."""
    return "1 field" if count == 1 else f"{count} fields"


@dataclass
class Skipped:
    """Rows that were left out for one reason."""

    count: int = 0
    first: list[str] = field(default_factory=list)
    """The first few of them: line and what is wrong."""


class Account:
    """Rows kept and rows left out; the two always add up to all of them.

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
        """What was assumed of rows that were kept."""

    @property
    def rows(self) -> int:
        """How many there were."""
        return self.kept + sum(each.count for each in self.skipped.values())

    def skip(self, why: str, line: int, what: str = "", count: int = 1) -> None:
        """Leave a row out, or some."""
        if count <= 0:
            return
        found = self.skipped.setdefault(why, Skipped())
        found.count += count
        if len(found.first) < SHOWN and line > 0:
            found.first.append(f"line {line}: {what}" if what else f"line {line}")

    def take_over(self, other: Account) -> None:
        """Count the rows that another account left out, before those that this one did."""
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
        """Return it as ``--json`` prints it."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "skipped": {
                why: {"count": each.count, "first": each.first}
                for why, each in self.skipped.items()
            },
            "notes": self.notes,
        }


def trace_name(path: str | PathLike[str]) -> str:
    """Return the name of a trace: that of its file without the usual endings.

    >>> trace_name("KTH-SP2-1996-2.1-cln.swf.gz")
    'KTH-SP2-1996-2.1-cln'
    """
    file = Path(path)
    while file.suffix.lower() in ENDINGS:
        file = file.with_suffix("")
    return file.name
