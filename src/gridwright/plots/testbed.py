"""Simulation against testbed: the published bars and ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .figure import save

if TYPE_CHECKING:
    from ..reproduction import Outcome, Reproduction

__all__ = ["draw_testbed"]

POLICIES = ("LPAS_DG", "Gcmu", "FCFS")
PLATFORMS = ("simulation", "testbed")


def draw_testbed(found: Sequence[Reproduction], path: Path) -> None:
    """Draw the mean response in every experiment: simulated and measured, published and ours."""
    from matplotlib.figure import Figure

    cells: dict[tuple[int, str, str], Outcome] = {}
    for outcome in (each for one in found for each in one.outcomes):
        cell = outcome.cell
        if cell.get("platform") in PLATFORMS and cell["metric"] == "W_mean" and "policy" in cell:
            cells.setdefault((cell["case"], cell["policy"], cell["platform"]), outcome)
    cases = sorted({case for case, _, _ in cells})
    rows = max(1, -(-len(cases) // 4))
    figure = Figure(figsize=(13, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, 4, squeeze=False).flat
    for axes, case in zip(panels, cases, strict=False):
        for k, (name, pick) in enumerate(
            [(f"{p}, published", (p, _published)) for p in PLATFORMS]
            + [(f"{p}, ours", (p, _ours)) for p in PLATFORMS]
        ):
            platform, value = pick
            heights = [value(cells.get((case, policy, platform))) for policy in POLICIES]
            at = np.arange(len(POLICIES)) + (k - 1.5) * 0.2
            colour = f"C{PLATFORMS.index(platform)}"
            hatch = "//" if k < len(PLATFORMS) else None
            axes.bar(
                at, heights, 0.2, label=name, color=colour, alpha=0.5 if hatch else 1, hatch=hatch
            )
        axes.set_xticks(range(len(POLICIES)), POLICIES, fontsize=8)
        axes.set_title(f"experiment {case}", fontsize=9)
        low = [
            value(cells.get((case, p, q)))
            for p in POLICIES
            for q in PLATFORMS
            for value in (_published, _ours)
        ]
        known = [each for each in low if each == each]
        if known and max(known) > 20 * min(known):
            axes.set_yscale("log")
    for axes in list(figure.axes)[len(cases) :]:
        axes.set_visible(False)
    if figure.axes:
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    figure.supylabel("mean response, time units", fontsize=9)
    save(figure, path)


def _published(outcome: Outcome | None) -> float:
    """Return the printed number, nan where none is printed."""
    if outcome is None:
        return float("nan")
    cell = outcome.cell
    if "lo" in cell:
        return float(cell["lo"] + cell["hi"]) / 2
    return float(cell.get("value", "nan"))


def _ours(outcome: Outcome | None) -> float:
    return float("nan") if outcome is None or outcome.ours is None else outcome.ours.mean
