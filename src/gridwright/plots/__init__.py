"""Pictures of results. Nothing here computes; matplotlib is loaded when something is drawn."""

from typing import Any

from ..allocation import Allocation
from ..experiments import Adversary, Comparison, Contest, Optimum, Result, Sweep, SweepOverTime
from .allocation import draw_adversary, draw_allocation
from .figure import FORMATS
from .machines import draw_availability, draw_calibration, draw_run, draw_runs
from .reproduction import draw_reproduction, draw_testbed
from .results import (
    draw_contest,
    draw_optimum,
    draw_over_time,
    draw_replays,
    draw_results,
    draw_sweep,
)

__all__ = [
    "FORMATS",
    "draw",
    "draw_adversary",
    "draw_allocation",
    "draw_availability",
    "draw_calibration",
    "draw_contest",
    "draw_optimum",
    "draw_over_time",
    "draw_replays",
    "draw_reproduction",
    "draw_results",
    "draw_run",
    "draw_runs",
    "draw_sweep",
    "draw_testbed",
]

PAINTERS: dict[type, Any] = {
    Allocation: draw_allocation,
    Result: lambda result: draw_results((result,)),
    Comparison: lambda comparison: draw_results(comparison.results),
    Sweep: draw_sweep,
    SweepOverTime: draw_over_time,
    Contest: draw_contest,
    Optimum: draw_optimum,
    Adversary: draw_adversary,
}


def draw(found: Any) -> Any:
    """Draw a result of any kind; return the Matplotlib figure."""
    painter = next(PAINTERS[each] for each in type(found).__mro__ if each in PAINTERS)
    return painter(found)
