"""Spellings of commands from before they were grouped; they work for one release."""

from __future__ import annotations

from pathlib import Path

from .output import warn

MOVED = {
    "adversary": "research adversary",
    "availability": "machines availability",
    "calibrate": "machines calibrate",
    "characterise": "traces characterise",
    "contest": "research contest",
    "export": "runs export",
    "optimum": "research optimum",
    "reproduce": "research reproduce",
    "workers": "dask workers",
}
SQLITE = b"SQLite format 3"


def translate(arguments: list[str]) -> list[str]:
    """Return arguments in the present spelling, and print that spelling if they were in an old one.

    >>> translate(["simulate", "2.B"])
    ['simulate', '2.B']
    """
    if not arguments or arguments[0] not in (*MOVED, "replay"):
        return arguments
    old, *others = arguments
    new = MOVED.get(old) or ("traces replay" if any(map(_is_trace, others)) else "runs replay")
    warn(f"'gridwright {old}' is now 'gridwright {new}'; the old name goes with the next release")
    return [*new.split(), *others]


def _is_trace(word: str) -> bool:
    """Tell whether an argument of the old ``replay`` names a trace instead of a run."""
    file = Path(word)
    if word.isdigit() or not file.is_file():
        return any(ending in file.suffixes for ending in (".swf", ".gwf"))
    with file.open("rb") as opened:
        return opened.read(len(SQLITE)) != SQLITE
