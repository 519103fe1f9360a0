"""Trace files as they lie about: plain, or packed with gzip, xz or bzip2."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from ..model import InputError

__all__ = ["Line", "read_bytes", "read_lines", "suffix", "with_newlines", "write_text"]

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
BROKEN = (OSError, EOFError, ValueError, MemoryError, lzma.LZMAError, zlib.error)
LARGEST = 4 * 2**30
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
    parts, left = [], LARGEST
    while data:
        if not data.startswith(magic):
            raise ValueError(f"{len(data):,} bytes after its end are not packed as the rest is")
        stream = UNPACK[magic]()
        parts.append(stream.decompress(data, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise ValueError(f"it has more than {LARGEST:,} bytes; unpack it and take a part")
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
