"""Experiments of one's own: files among the definitions that were saved on the page."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ..grid.journal import home
from ..model import InputError
from ..testbed import Experiment
from .saved import saved_names

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
        words = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return "system" in words and "policy" in words
