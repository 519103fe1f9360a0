"""Saved systems and experiments: each is a file in $GRIDWRIGHT_HOME."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from ..grid.ownership import home
from ..model import GridwrightError, InputError, System
from ..model.error import file_errors
from ..model.file import read
from ..testbed import Experiment
from .summary import brief

OWN = "own: "
"""Starts the names of saved systems in lists that also show the catalogue."""
MOST_SAVED = 500
"""Files; anybody may save some without the token."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")


def save(found: System | Experiment, name: str) -> Path:
    """Save a system, or an experiment with its system, replacing any of that name."""
    path = _path(name)
    if not path.exists() and len(saved_names()) >= MOST_SAVED:
        raise InputError(f"{MOST_SAVED} are saved already; delete some first")
    with file_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = found.to_toml(path.parent) if isinstance(found, System) else found.to_toml()
        path.write_text(text, encoding="utf-8")
    return path


def load_saved(name: str) -> System:
    """Return a saved system, or the system of a saved experiment."""
    path = _path(name)
    try:
        whole = "system" in read(path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Experiment.from_file(path).system if whole else System.from_file(path)


def is_saved(name: str) -> bool:
    """Tell whether something is saved under a name; refuse names that cannot be."""
    return _path(name).exists()


def remove_saved(name: str) -> bool:
    """Delete what is saved under a name; return False if there is nothing."""
    path = _path(name)
    known = path.is_file()
    path.unlink(missing_ok=True)
    return known


def saved_names() -> list[str]:
    """List the names of saved systems and experiments."""
    files = (home() / "systems").glob("*.toml")
    return sorted(path.stem for path in files if NAME.fullmatch(path.stem))


def saved_lines() -> dict[str, str]:
    """Return the saved systems and experiments with what a list says of each."""
    return {name: f"{name} (saved) – {_about(name)}" for name in saved_names()}


def _about(name: str) -> str:
    try:
        return _brief(name, _path(name).stat().st_mtime_ns)
    except (OSError, GridwrightError) as error:
        return f"cannot be read: {error}"


@lru_cache(maxsize=MOST_SAVED)
def _brief(name: str, changed: int) -> str:
    """Read a file once, until it is changed."""
    return brief(load_saved(name))


def _path(name: str) -> Path:
    """Return the file of a name; refuse names that could leave the folder."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"name {name[:40]!r}; expected letters, digits, spaces, points, dashes, at most 80"
        )
    return home() / "systems" / f"{name}.toml"


def own_experiments() -> list[str]:
    """List the saved experiments, without systems alone."""
    return [name for name in saved_names() if _is_experiment(_path(name))]


def load_own(name: str) -> Experiment:
    """Return a saved experiment."""
    if name not in own_experiments():
        raise InputError(f"no experiment {name[:80]!r} was saved")
    return Experiment.from_file(_path(name))


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
