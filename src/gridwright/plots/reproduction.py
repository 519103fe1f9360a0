"""Published figures, drawn from our numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .chains import draw_performance, draw_perturbed
from .figure import save

if TYPE_CHECKING:
    from ..reproduction import Outcome, Reproduction

__all__ = ["can_draw", "draw_reproduction"]


def can_draw(found: Reproduction) -> bool:
    """Tell whether a target is a figure that has numbers."""
    return "Figure" in found.target.name and any(each.ours for each in found.outcomes)


def draw_reproduction(found: Reproduction, path: Path) -> None:
    """Draw a figure: improvements along an inaccuracy, or response times relative to Gcmu."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    lines = [each for each in found.outcomes if "inaccuracy_pct" in each.cell]
    metrics = {each.cell["metric"] for each in found.outcomes}
    if lines:
        _draw_lines(axes, lines)
    elif metrics == {"perf_fraction"}:
        draw_performance(axes, list(found.outcomes))
    elif metrics == {"time_over_estimate_sd"}:
        draw_perturbed(axes, list(found.outcomes))
    else:
        _draw_bars(axes, [o for o in found.outcomes if o.cell["metric"] == "W_relative"])
    axes.set_title(found.target.name, fontsize=10)
    save(figure, path)


def _draw_lines(axes: Any, outcomes: list[Outcome]) -> None:
    for k, policy in enumerate(dict.fromkeys(each.cell["policy"] for each in outcomes)):
        mine = [each for each in outcomes if each.cell["policy"] == policy]
        at = [each.cell["inaccuracy_pct"] for each in mine]
        means, low, high = np.array([each.ours for each in mine], dtype=float).T
        axes.plot(at, means, marker="o", markersize=4, color=f"C{k}", label=policy)
        axes.fill_between(at, low, high, color=f"C{k}", alpha=0.2, linewidth=0)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("largest inaccuracy of the availabilities, %")
    axes.set_ylabel("improvement over Gcmu, %")
    axes.legend(frameon=False)


def _draw_bars(axes: Any, outcomes: list[Outcome]) -> None:
    shown = [each for each in outcomes if each.ours is not None]
    names = [each.cell["policy"] + ("" if each.stable else "\n(unstable)") for each in shown]
    means, low, _ = np.array([each.ours for each in shown], dtype=float).T
    axes.bar([*names, "Gcmu"], [*means, 1.0], yerr=[*np.nan_to_num(means - low), 0.0], capsize=4)
    axes.set_ylabel("mean response time, Gcmu = 1")
