"""A week of CPU availability as a heat map: when a machine is there for the grid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .figure import save

__all__ = ["draw_availability"]

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def draw_availability(week: Sequence[Sequence[float]], path: Path) -> None:
    """Draw the mean of each interval [weekday, interval]; darker is more, white is not known."""
    from matplotlib.figure import Figure

    shares = np.ma.masked_invalid(np.array(week, dtype=float))
    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        shares,
        cmap="YlGnBu",
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="none",
        extent=(0, 24, 6.5, -0.5),
    )
    figure.colorbar(image, ax=axes, label="share of the CPU available")
    axes.set_xticks(range(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
    axes.set_yticks(range(7), DAYS)
    axes.set_title("CPU availability, the mean of all weeks known")
    save(figure, path)
