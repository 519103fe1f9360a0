"""Spellings of commands from before they were grouped; they work for one release."""

from contextlib import suppress
from itertools import pairwise
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
    new = MOVED.get(old) or ("traces replay" if _replays_a_trace(others) else "runs replay")
    warn(f"'gridwright {old}' is now 'gridwright {new}'; the old name goes with the next release")
    return [*new.split(), *others]


def _replays_a_trace(words: list[str]) -> bool:
    """Tell whether the arguments of the old ``replay`` name a trace instead of a run."""
    bare = [word for word in words if not word.startswith("-")]
    values = {word for option, word in pairwise(words) if option.startswith("-")}
    return any(map(_is_trace, [word for word in bare if word not in values] or bare))


def _is_trace(word: str) -> bool:
    file = Path(word)
    with suppress(OSError):
        if not word.isdigit() and file.is_file():
            with file.open("rb") as opened:
                return opened.read(len(SQLITE)) != SQLITE
    return any(ending in file.suffixes for ending in (".swf", ".gwf"))
