"""What all pictures have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..model import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "save"]

FORMATS = (".png", ".svg", ".pdf")


def save(figure: Figure, path: Path) -> None:
    """Write a figure, in the format that the path ends in."""
    try:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
