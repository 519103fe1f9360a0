"""An allocation as a heat map: who serves whom, at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .figure import literal, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..allocation import Allocation

__all__ = ["draw_allocation"]

READABLE = 40
"""With more machines than this, numbers in the cells and a name for each would not be readable."""


def draw_allocation(allocation: Allocation, path: Path) -> None:
    """Draw δ* [class, machine]; darker is more of the machine's time, white is never."""
    from matplotlib.figure import Figure

    classes, machines = allocation.shares.shape
    width = min(3 + 0.45 * machines, 16)
    figure = Figure(figsize=(width, 1.8 + 0.45 * classes), layout="constrained")
    axes = figure.subplots()
    shares = np.ma.masked_equal(allocation.shares, 0)
    image = axes.imshow(shares, cmap="YlGnBu", vmin=0, vmax=1, aspect="auto")
    figure.colorbar(image, ax=axes, label="share of the machine's time")
    _label(axes, allocation)
    if machines <= READABLE:
        _write_shares(axes, allocation)
    axes.set_title(
        f"{literal(allocation.system.name) or 'allocation'} ({allocation.method}): "
        f"λ* = {allocation.capacity:.4f}, load {100 * allocation.load:.1f} %"
    )
    save(figure, path)


def _label(axes: Axes, allocation: Allocation) -> None:
    system = allocation.system
    axes.set_yticks(range(len(system.classes)), list(map(literal, system.classes)))
    axes.set_ylabel("class")
    axes.set_xlabel("machine")
    if len(system.machines) <= READABLE:
        names = list(map(literal, system.machines))
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        return
    firsts = np.flatnonzero(np.diff(system.column, prepend=-1))
    if len(firsts) > READABLE:
        firsts = firsts[:: len(firsts) // 20]
    names = [literal(system.machines[first]) for first in firsts]
    axes.set_xticks(firsts, names, rotation=90, fontsize=8)


def _write_shares(axes: Axes, allocation: Allocation) -> None:
    for (i, j), share in np.ndenumerate(allocation.shares):
        if share > 0:
            colour = "white" if share > 0.5 else "black"
            axes.text(
                j, i, f"{share:.2f}".lstrip("0"), ha="center", va="center", fontsize=6, color=colour
            )
