"""``gridwright demo``: the main job, from a published system to a picture."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]

SYSTEM = "3.A:alpha1:1"


def demo(
    output: Annotated[
        Path, typer.Option(help="The folder for the pictures.", metavar="FOLDER")
    ] = Path("gridwright-demo"),
) -> None:
    """Solve a published system, System 3.A, and draw who should serve whom."""
    from ..allocation import allocate
    from ..catalogue import load
    from ..model import InputError
    from ..plots import draw_allocation
    from .allocate import show_allocation
    from .output import console

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {output} cannot be made: {error.strerror}") from None
    allocation = allocate(load(SYSTEM))
    show_allocation(allocation)
    picture = output / "allocation.png"
    draw_allocation(allocation, picture)
    console().print(f"\nThe allocation as a heat map: {picture}", markup=False)
