"""Replays of a trace side by side: means, classes, and the number in system over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .figure import literal, save

if TYPE_CHECKING:
    from ..traces import Replay

__all__ = ["draw_replays"]

HOUR = 3600.0
BEYOND = 2.0
"""How many lengths of the window are drawn of the number in system."""
FAR = 20.0
"""A ratio from which on an axis is logarithmic."""


def draw_replays(found: Sequence[Replay], length: float, path: Path) -> None:
    """Draw the replays of one trace under several policies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    means, classes, number = figure.subplots(1, 3, width_ratios=[1, 1.6, 1.6])
    names = [literal(str(each.policy)) for each in found]
    heights = [float(np.mean(each.responses)) / HOUR if each.done.any() else 0 for each in found]
    means.bar(names, heights, color=[f"C{k}" for k in range(len(found))])
    means.set_ylabel("mean response, hours")
    means.tick_params(axis="x", rotation=30)
    if min(heights) > 0 and max(heights) > FAR * min(heights):
        means.set_yscale("log")
    places = np.arange(len(found[0].system.classes))
    width = 0.8 / len(found)
    for k, each in enumerate(found):
        at = places + (k - (len(found) - 1) / 2) * width
        classes.bar(at, each.by_class / HOUR, width, color=f"C{k}")
        until = BEYOND * length
        shown = each.times <= until
        number.step(
            each.times[shown] / HOUR, each.numbers[shown], f"C{k}", where="post", label=names[k]
        )
    classes.set_xticks(places, [literal(name) for name in found[0].system.classes], rotation=30)
    classes.set_ylabel("mean response, hours")
    classes.set_yscale("log")
    number.axvline(length / HOUR, color="grey", linewidth=0.8, linestyle=":")
    number.set_xlabel("hours (dotted: the last job arrives)")
    number.set_ylabel("jobs in system")
    number.set_yscale("symlog", linthresh=10)
    number.set_ylim(bottom=0)
    number.legend(frameon=False)
    figure.suptitle(f"{literal(found[0].system.name)}: {len(found[0].jobs):,} jobs replayed")
    save(figure, path)
