"""Pictures of results. Nothing here computes; matplotlib is loaded when something is drawn."""

from .adversary import draw_adversary
from .availability import draw_availability
from .calibration import draw_calibration
from .contest import draw_contest
from .figure import FORMATS
from .heatmap import draw_allocation
from .replay import draw_replays
from .reproduction import can_draw, draw_reproduction
from .result import draw_results
from .run import draw_run
from .sweep import draw_sweep
from .testbed import draw_testbed

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
