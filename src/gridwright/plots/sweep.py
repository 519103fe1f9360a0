"""A sweep: one line a policy, with its interval, along what is varied."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..experiments import in_words
from .figure import literal, save

if TYPE_CHECKING:
    from ..experiments import Sweep

__all__ = ["draw_sweep"]

MARKS = {False: "o", None: "s"}
"""What is drawn around points that are unstable, and around undecided ones."""


def draw_sweep(found: Sweep, path: Path) -> None:
    """Draw what the policies are compared by; rings are unstable, squares undecided.

    A dashed line marks where the long-run load is 1.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    criteria = found.points[0].results[0].criteria[::-1]
    growing = found.points[0].results[0].more_is_better  # little of it is bad, not interesting
    panels = figure.subplots(1, len(criteria), squeeze=False)[0]
    for axes, metric in zip(panels, criteria, strict=True):
        for k, policy in enumerate(found.policies):
            rows = [row for row in found.rows() if row["policy"] == policy]
            values = np.array([row["value"] for row in rows])
            means, low, high = np.array([row[metric] for row in rows], dtype=float).T
            axes.plot(values, means, marker="o", markersize=4, color=f"C{k}", label=literal(policy))
            axes.fill_between(values, low, high, color=f"C{k}", alpha=0.2, linewidth=0)
            for stable, shape in MARKS.items():
                chosen = np.array([row["stable"] is stable for row in rows])
                around = {"marker": shape, "markersize": 10, "fillstyle": "none", "linestyle": ""}
                axes.plot(values[chosen], means[chosen], color=f"C{k}", **around)
        if (full := _full_load(found)) is not None:
            axes.axvline(full, color="grey", linewidth=0.8, linestyle="--")
        axes.set_xlabel(found.vary)
        axes.set_ylabel(in_words(metric))
        finite = [row[metric].mean for row in found.rows() if row[metric].mean > 0]
        if metric not in growing and finite and max(finite) > 20 * min(finite):
            axes.set_yscale("log")
        axes.legend(frameon=False)
    first = found.points[0].results[0]
    figure.suptitle(
        f"{literal(found.system.name)}: {len(first.replications)} × {first.length}, "
        f"seed {first.seed}; bands are 95 % intervals" + _legend(found)
    )
    save(figure, path)


def _legend(found: Sweep) -> str:
    """Explain the marks that are on the picture."""
    verdicts = {row["stable"] for row in found.rows()}
    words = ", rings unstable" if False in verdicts else ""
    words += ", squares undecided" if None in verdicts else ""
    return words if _full_load(found) is None else f"{words}, dashed: long-run load 1"


def _full_load(found: Sweep) -> float | None:
    """Return the value at which the long-run load is 1, if it lies within the picture."""
    points = [
        (point.value, point.results[0].long_run_load)
        for point in found.points
        if not isinstance(point.value, str) and point.results[0].long_run_load is not None
    ]
    for (value, load), (after, more) in pairwise(sorted(points)):
        if load is not None and more is not None and (load - 1) * (more - 1) <= 0 and load != more:
            return float(value + (after - value) * (1 - load) / (more - load))
    return None
