"""A sweep: one line a policy, with its interval, along what is varied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..experiments import in_words
from .figure import literal, save

if TYPE_CHECKING:
    from ..experiments import Sweep

__all__ = ["draw_sweep"]


def draw_sweep(found: Sweep, path: Path) -> None:
    """Draw what the policies are compared by; rings are unstable."""
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
            wild = np.array([not row["stable"] for row in rows])
            ring = {"marker": "o", "markersize": 10, "fillstyle": "none", "linestyle": ""}
            axes.plot(values[wild], means[wild], color=f"C{k}", **ring)
        axes.set_xlabel(found.vary)
        axes.set_ylabel(in_words(metric))
        finite = [row[metric].mean for row in found.rows() if row[metric].mean > 0]
        if metric not in growing and finite and max(finite) > 20 * min(finite):
            axes.set_yscale("log")
        axes.legend(frameon=False)
    first = found.points[0].results[0]
    figure.suptitle(
        f"{literal(found.system.name)}: {len(first.replications)} × {first.length}, "
        f"seed {first.seed}; bands are 95 % intervals"
        + ("" if all(row["stable"] for row in found.rows()) else ", rings unstable")
    )
    save(figure, path)
