"""``gridwright demo``: the main job, from a published system to a picture."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]

SYSTEM = "3.A:alpha1:5"
POLICIES = ("fcfs", "gcmu", "lpas_dg")
HORIZON = 1000.0


def demo(
    output: Annotated[
        Path, typer.Option(help="The folder for the pictures.", metavar="FOLDER")
    ] = Path("gridwright-demo"),
) -> None:
    """Solve a published system, System 3.A, then simulate three policies on it."""
    from ..allocation import allocate
    from ..catalogue import load
    from ..experiments import compare
    from ..model import InputError
    from ..plots import draw_allocation, draw_results
    from .allocate import show_allocation
    from .output import console
    from .run import progress_bar
    from .simulate import show_comparison

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {output} cannot be made: {error.strerror}") from None
    allocation = allocate(load(SYSTEM))
    show_allocation(allocation)
    picture = output / "allocation.png"
    draw_allocation(allocation, picture)
    console().print(f"\nThe allocation as a heat map: {picture}\n", markup=False)
    with progress_bar() as report:
        found = compare(SYSTEM, POLICIES, horizon=HORIZON, replications=10, progress=report)
    show_comparison(found, reference="gcmu")
    picture = output / "policies.png"
    draw_results(found.results, picture)
    console().print(f"\nThe comparison as a picture: {picture}", markup=False)
