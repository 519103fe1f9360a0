"""What all pictures have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

from ..model import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..experiments import Result

__all__ = ["FORMATS", "literal", "mark", "save"]

FORMATS = (".png", ".svg", ".pdf")


def literal(name: str) -> str:
    """Write a name so that nothing in it is taken for a formula."""
    return name.replace("$", r"\$").encode("utf-8", "replace").decode()


def mark(result: Result) -> str:
    """Return what follows the name of a policy that is unstable or undecided."""
    return "" if result.stable else f"\n({result.stability.word})"


def save(figure: Figure, path: Path | None) -> Figure:
    """Write a figure, in the format that the path ends in; without a path only return it."""
    if path is None:
        return figure
    import matplotlib

    dated = (
        {}
        if path.suffix.lower() == ".png"
        else {"Date" if path.suffix == ".svg" else "CreationDate": None}
    )
    try:
        with matplotlib.rc_context({"svg.hashsalt": "gridwright"}), catch_warnings():
            simplefilter("ignore")  # a name in a script that no font here has
            figure.savefig(path, dpi=150, bbox_inches="tight", metadata=dated)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return figure
