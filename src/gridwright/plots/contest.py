"""A contest: on which share of the systems a policy is within a factor of the best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .figure import literal, save

if TYPE_CHECKING:
    from ..experiments import Contest

__all__ = ["draw_contest"]

FARTHEST = 3.0
"""Ratios beyond this are off the picture."""


def draw_contest(found: Contest, path: Path) -> None:
    """Draw one curve a policy: the higher, the better; where it starts is how often it is best.

    A system on which a policy is unstable or undecided counts as never within any factor.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    profile, by_load = figure.subplots(1, 2)
    ratios = found.ratios
    loads = np.array([bout.load for bout in found.bouts])
    for k, policy in enumerate(found.policies):
        each = np.sort(ratios[~np.isnan(ratios[:, k]), k])  # stable there
        share = np.arange(1, len(each) + 1) / len(ratios)
        profile.step([1, *each], [0, *share], where="post", color=f"C{k}", label=literal(policy))
        by_load.plot(
            loads, ratios[:, k], marker=".", markersize=3, linestyle="", color=f"C{k}", alpha=0.6
        )
    profile.set_xlim(1, FARTHEST)
    profile.set_ylim(0, 1.01)
    profile.set_xlabel("mean number in system ÷ least of all policies")
    profile.set_ylabel("share of the systems within it")
    profile.legend(frameon=False, loc="lower right")
    by_load.set_ylim(1, FARTHEST)
    by_load.set_xlabel("load")
    by_load.set_ylabel("mean number ÷ least")
    figure.suptitle(f"{len(found.bouts)} systems")
    save(figure, path)
