"""A system on which a policy loses: its rates, and the policies on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..allocation import allocate
from .figure import literal, mark, save

if TYPE_CHECKING:
    from ..experiments import Adversary

__all__ = ["draw_adversary"]


def draw_adversary(found: Adversary, path: Path) -> None:
    """Draw the rates, darker where the efficiency is higher, and a bar a policy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    rates, bars = figure.subplots(1, 2)
    system, best = found.system, allocate(found.system)
    rates.imshow(best.efficiencies, cmap="YlGnBu", vmin=0, vmax=1, aspect="auto")
    for (i, j), rate in np.ndenumerate(system.nominal):
        colour = "white" if best.efficiencies[i, j] > 0.5 else "black"
        rates.text(j, i, f"{rate:.3g}", ha="center", va="center", color=colour)
    rates.set_xticks(range(len(system.machines)), list(map(literal, system.machines)))
    arrivals = [
        f"{literal(name)}: {each:.3g}"
        for name, each in zip(system.classes, system.arrival_rates, strict=True)
    ]
    rates.set_yticks(range(len(arrivals)), arrivals)
    rates.set_xlabel("machine")
    rates.set_ylabel("class: arrivals")
    rates.set_title("rates; dark: efficient")
    results = found.comparison.results
    means = [result.mean_number.mean for result in results]
    errors = [result.mean_number.half_width for result in results]
    names = [literal(str(result.policy)) + mark(result) for result in results]
    bars.bar(names, means, yerr=errors, color=[f"C{k}" for k in range(len(names))], capsize=4)
    bars.set_ylabel("mean number in system")
    bars.set_title(f"load {100 * best.load:.1f} %, {literal(found.verdict)}")
    save(figure, path)
