"""Experiments of one's own: files among the definitions that were saved on the page."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path

from ..grid.journal import home
from ..model import InputError
from ..testbed import Experiment
from .saved import MOST_SAVED, saved_names

__all__ = ["load_own", "own_experiments"]


def own_experiments() -> list[str]:
    """List the definitions that say how they are to be run, not only what the system is."""
    return [name for name in saved_names() if _is_experiment(_path(name))]


def load_own(name: str) -> Experiment:
    """Return an experiment that was saved."""
    if name not in own_experiments():
        raise InputError(f"no experiment {name[:80]!r} was saved")
    return Experiment.from_file(_path(name))


def _path(name: str) -> Path:
    return home() / "systems" / f"{name}.toml"


def _is_experiment(path: Path) -> bool:
    try:
        return _has_policy(path, path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return False


@lru_cache(maxsize=MOST_SAVED)
def _has_policy(path: Path, changed: int) -> bool:
    """Read a file once, until it is changed."""
    words = tomllib.loads(path.read_text("utf-8"))
    return "system" in words and "policy" in words
