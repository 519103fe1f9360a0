"""Trace files as they lie about: plain, or packed with gzip, xz or bzip2."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from ..model import InputError

__all__ = ["Line", "read_bytes", "read_lines", "suffix", "write_text"]

Line = tuple[int, bytes]
"""A line's number, from 1, and what stands on it."""

UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
    b"BZh": bz2.decompress,
}
"""How a packed file begins, and what unpacks it."""
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
BROKEN = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Read a file, unpacked; how it is packed is told by its first bytes."""
    file = Path(path)
    if not file.exists():
        raise InputError(f"{path}: there is no such file")
    if not file.is_file():
        raise InputError(f"{path}: this is not a regular file; expected a trace")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    for magic, unpack in UNPACK.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except BROKEN as error:
                raise InputError(f"{path} cannot be unpacked: {error}") from None
    return data


def read_lines(data: bytes) -> list[Line]:
    """Return the lines that are not blank, with their numbers."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    return [(n, line) for n, line in enumerate(text.split(b"\n"), 1) if line and line.strip()]


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
