"""Pictures of results. Nothing here computes; matplotlib is loaded when something is drawn."""

from .allocation import draw_adversary, draw_allocation
from .figure import FORMATS
from .machines import draw_availability, draw_calibration, draw_run
from .reproduction import can_draw, draw_reproduction, draw_testbed
from .results import draw_contest, draw_replays, draw_results, draw_sweep

__all__ = [
    "FORMATS",
    "can_draw",
    "draw_adversary",
    "draw_allocation",
    "draw_availability",
    "draw_calibration",
    "draw_contest",
    "draw_replays",
    "draw_reproduction",
    "draw_results",
    "draw_run",
    "draw_sweep",
    "draw_testbed",
]
