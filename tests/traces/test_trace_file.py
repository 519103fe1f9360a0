"""Packed files: all that is in them, or why not."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from gridwright import InputError
from gridwright.traces import trace_file as source
from gridwright.traces.trace_file import read_bytes

PACKERS = pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
Pack = Callable[[bytes], bytes]


@PACKERS
def test_streams_follow_one_another(pack: Pack, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    for padding in (b"", bytes(512)):
        file.write_bytes(pack(b"one ") + pack(b"") + pack(b"two") + padding)
        assert read_bytes(file) == b"one two"


@PACKERS
def test_nothing_is_dropped_silently(pack: Pack, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    whole = pack(b"one two three")
    for data, why in (
        (whole + b"garbage", "the last 7 bytes are not packed"),
        (whole + bytes(4) + b"garbage", "the last 7 bytes are not packed"),
        (whole + whole[:-5], "it ends too early"),
        (whole[:-1], "it ends too early"),
        (whole[: len(whole) // 2] + bytes(40), "trace cannot be unpacked: "),
    ):
        file.write_bytes(data)
        with pytest.raises(InputError, match=why):
            read_bytes(file)


@PACKERS
def test_little_may_not_stand_for_too_much(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LARGEST_FILE", 1000)
    file = tmp_path / "trace"
    file.write_bytes(pack(bytes(600)) + pack(bytes(400)))
    assert len(read_bytes(file)) == 1000
    for data in (pack(bytes(10_000_000)), pack(bytes(600)) + pack(bytes(401))):
        file.write_bytes(data)
        with pytest.raises(InputError, match="it has more than 1,000 bytes"):
            read_bytes(file)
