"""Arguments and options that several commands take, and how they are understood."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Json", "Policies", "SystemName", "complete_system", "listed", "plot_path"]


def complete_system(incomplete: str) -> list[str]:
    """List the systems whose names start with what was typed so far."""
    from ..catalogue import entries

    return [entry.name for entry in entries() if entry.name.startswith(incomplete)]


SystemName = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM",
        help="A name of the catalogue ('gridwright systems'), or the path of a system file.",
        autocompletion=complete_system,
        show_default=False,
    ),
]
Policies = Annotated[
    str,
    typer.Option(
        "--policies",
        "--policy",
        help="Policies, separated by commas; 'gridwright policies' lists them.",
        metavar="POLICY,…",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]


def listed(text: str) -> list[str]:
    """Return the words of a list with commas.

    >>> listed("pas, mct,")
    ['pas', 'mct']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def plot_path(path: Path) -> Path:
    """Check that a plot can be written to a path, before any work is done for it."""
    from ..model import InputError
    from ..plots import FORMATS

    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--plot {path}: expected a file that ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InputError(f"--plot {path}: there is no folder {path.parent}")
    return path
