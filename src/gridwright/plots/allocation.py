"""Allocations as heat maps, and systems on which a policy loses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..allocation import allocate
from ..statistics import share_text
from .figure import heat_map, literal, mark, new_figure, save, write_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..allocation import Allocation
    from ..experiments import Adversary

READABLE = 40
"""With more machines, cells have no numbers, and only some columns have names."""


def draw_allocation(allocation: Allocation, path: Path | None = None) -> Figure:
    """Draw δ* and the efficiencies [class, machine]; darker is more, white is never."""
    classes, machines = allocation.shares.shape
    width = min(3 + 0.45 * machines, 16)
    figure = new_figure(width, 3.6 + 0.9 * classes)
    pictures = figure.subplots(2, 1)
    for axes, values, words in zip(
        pictures,
        (allocation.shares, allocation.efficiencies),
        ("share of the machine's time", "share of its worth earned"),
        strict=True,
    ):
        heat_map(axes, np.ma.masked_equal(values, 0), words)
        _label(axes, allocation)
        if machines <= READABLE:
            texts = [_short(float(share)) for share in values.flat]
            size = 6 if machines > 12 else 9
            write_cells(axes, values, np.array(texts).reshape(values.shape), fontsize=size)
    pictures[0].set_title(
        f"{literal(allocation.system.name) or 'allocation'} ({allocation.method}): "
        f"λ* = {allocation.capacity:.4f}, load {100 * allocation.load:.1f} %"
    )
    return save(figure, path)


def _short(share: float) -> str:
    """Write a share for a small cell: without its leading 0, and nothing for 0.

    >>> _short(0.25), _short(0.0033), _short(1.0), _short(0.0)
    ('.25', '<.01', '1.00', '')
    """
    return share_text(share, 2).replace("0.", ".") if share > 0 else ""


def _label(axes: Axes, allocation: Allocation) -> None:
    system = allocation.system
    axes.set_yticks(range(len(system.classes)), list(map(literal, system.classes)))
    axes.set(ylabel="class", xlabel="machine")
    shown = np.arange(len(system.machines))
    if len(shown) > READABLE:  # the first machine of every column, or of some
        shown = np.flatnonzero(np.diff(system.column, prepend=-1))
        shown = shown[:: len(shown) // 20 if len(shown) > READABLE else 1]
    names = [literal(system.machines[machine]) for machine in shown]
    axes.set_xticks(shown, names, rotation=90, fontsize=8)


def draw_adversary(found: Adversary, path: Path | None = None) -> Figure:
    """Draw the rates, darker where the efficiency is higher, and a bar a policy."""
    figure = new_figure(10, 3.6)
    rates, bars = figure.subplots(1, 2)
    system, best = found.system, allocate(found.system)
    heat_map(rates, best.efficiencies)
    texts = [f"{rate:.3g}" for rate in system.nominal.flat]
    write_cells(rates, best.efficiencies, np.array(texts).reshape(system.nominal.shape))
    rates.set_xticks(range(len(system.machines)), list(map(literal, system.machines)))
    arrivals = [
        f"{literal(name)}: {each:.3g}"
        for name, each in zip(system.classes, system.arrival_rates, strict=True)
    ]
    rates.set_yticks(range(len(arrivals)), arrivals)
    rates.set(xlabel="machine", ylabel="class: arrivals", title="rates; dark: efficient")
    results = found.comparison.results
    means = [result.mean_number.mean for result in results]
    errors = [result.mean_number.half_width for result in results]
    names = [literal(str(result.policy)) + mark(result) for result in results]
    bars.bar(names, means, yerr=errors, color=[f"C{k}" for k in range(len(names))], capsize=4)
    bars.set(
        ylabel="mean number in system",
        title=f"load {100 * best.load:.1f} %, {literal(found.verdict)}",
    )
    return save(figure, path)
