"""The published experiments of the testbed, each a file that can be run."""

from functools import cache
from importlib.resources import files
from pathlib import Path

__all__ = ["experiment_names", "experiment_path"]


@cache
def experiment_names() -> tuple[str, ...]:
    """List the experiments by name, in their order.

    >>> experiment_names()[0], len(experiment_names())
    ('MGST-1', 20)
    """
    found = [path.name.removesuffix(".toml") for path in _folder().iterdir()]
    return tuple(sorted(found, key=lambda name: (int(name.split("-")[1]), name)))


def experiment_path(name: str) -> Path:
    """Return the file of an experiment."""
    return _folder() / f"{name}.toml"


def _folder() -> Path:
    return Path(str(files(__package__))) / "experiments"
