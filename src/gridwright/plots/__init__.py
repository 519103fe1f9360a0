"""Pictures of results. Nothing here computes; matplotlib is loaded when something is drawn."""

from .figure import FORMATS
from .heatmap import draw_allocation
from .result import draw_results

__all__ = ["FORMATS", "draw_allocation", "draw_results"]
