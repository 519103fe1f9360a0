"""What was saved on the page: a file each in $GRIDWRIGHT_HOME, a system or a whole experiment."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ..grid.journal import home
from ..model import InputError, System
from ..testbed import Experiment

__all__ = [
    "OWN",
    "load_experiment",
    "load_saved",
    "remove_experiment",
    "save",
    "save_experiment",
    "saved_experiments",
    "saved_names",
]

OWN = "own: "
"""Begins the name of what was saved, where it stands beside the catalogue's."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")


def save(system: System, name: str) -> Path:
    """Keep a system under a name; what was kept under it before makes way."""
    path = _path("systems", name)
    _write(path, lambda: system.to_toml(path.parent))
    _path("experiments", name).unlink(missing_ok=True)
    return path


def save_experiment(experiment: Experiment, name: str) -> Path:
    """Keep an experiment with its system under a name; what was there before makes way."""
    path = _path("experiments", name)
    _write(path, experiment.to_toml)
    _path("systems", name).unlink(missing_ok=True)
    return path


def load_saved(name: str) -> System:
    """Return a system that was saved, by itself or in an experiment."""
    if _path("experiments", name).is_file():
        return load_experiment(name).system
    return System.from_file(_path("systems", name))


def load_experiment(name: str) -> Experiment:
    """Return an experiment that was saved."""
    return Experiment.from_file(_path("experiments", name))


def remove_experiment(name: str) -> bool:
    """Throw an experiment away; False where there is none."""
    path = _path("experiments", name)
    known = path.is_file()
    path.unlink(missing_ok=True)
    return known


def saved_names() -> list[str]:
    """List the systems that were saved, by themselves or in experiments."""
    return sorted({*_names("systems"), *_names("experiments")})


def saved_experiments() -> list[str]:
    """List the experiments that were saved."""
    return sorted(_names("experiments"))


def _names(kind: str) -> list[str]:
    found = (home() / kind).glob("*.toml")
    return [path.stem for path in found if NAME.fullmatch(path.stem)]


def _path(kind: str, name: str) -> Path:
    """Return the file of a name, which is nothing but a name."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"name {name[:40]!r}; expected letters, digits, spaces, points, dashes, at most 80"
        )
    return home() / kind / f"{name}.toml"


def _write(path: Path, text: Callable[[], str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
