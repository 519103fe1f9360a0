"""Systems that were saved on the page: a file each in $GRIDWRIGHT_HOME."""

from __future__ import annotations

import re
from pathlib import Path

from ..grid.journal import home
from ..model import InputError, System

__all__ = ["load_saved", "save", "saved_names"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")


def save(system: System, name: str) -> Path:
    """Keep a system under a name; one that was kept under it before makes way."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        system.to_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return path


def load_saved(name: str) -> System:
    """Return a system that was saved."""
    return System.from_file(_path(name))


def saved_names() -> list[str]:
    """List the systems that were saved."""
    return sorted(path.stem for path in _folder().glob("*.toml") if NAME.fullmatch(path.stem))


def _folder() -> Path:
    return home() / "systems"


def _path(name: str) -> Path:
    """Return the file of a name, which is nothing but a name."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"name {name[:40]!r}; expected letters, digits, spaces, points, dashes, at most 80"
        )
    return _folder() / f"{name}.toml"
