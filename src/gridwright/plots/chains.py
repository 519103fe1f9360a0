"""The published figures about chains: performance by nodes, and perturbed times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..simulation.chain_loop import perturbed

if TYPE_CHECKING:
    from ..reproduction import Outcome

__all__ = ["draw_performance", "draw_perturbed"]

DRAWS = 40_000
SPIKE = 10
"""How many times the usual density is so much that nothing else could be seen beside it."""
READINGS = ("printed", "halved", "mixture")


def draw_performance(axes: Any, outcomes: list[Outcome]) -> None:
    """Draw the performance by number of nodes, each way to draw templates beside the published."""
    for k, variant in enumerate(dict.fromkeys(each.cell["variant"] for each in outcomes)):
        mine = [each for each in outcomes if each.cell["variant"] == variant]
        nodes = [each.cell["nodes"] for each in mine]
        means, low, high = np.array([each.ours for each in mine], dtype=float).T
        axes.plot(nodes, means, marker="o", markersize=3, color=f"C{k}", label=variant)
        axes.fill_between(nodes, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
        if k == 0:
            published = [each.cell["value"] for each in mine]
            axes.plot(nodes, published, "kx", label="published", zorder=3)
    axes.set_xscale("log", base=2)
    axes.set_xticks(nodes, nodes)
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlabel("nodes")
    axes.set_ylabel("performance: OK / (OK + late)")
    axes.legend(frameon=False, fontsize=8)


def draw_perturbed(axes: Any, outcomes: list[Outcome]) -> None:
    """Draw how actual times spread around their estimates, in each reading."""
    rng = np.random.default_rng(1)
    normals = rng.standard_normal(2 * DRAWS)
    normals = normals[np.abs(normals) < 1][:DRAWS]
    uniform = rng.uniform(-1, 1, len(normals))
    densities: list[float] = []
    for each in outcomes:
        reading, v = each.cell["reading"], each.cell["etcvar"]
        number = 1 + READINGS.index(reading)
        ratios = [perturbed(number, v, g, u) for g, u in zip(normals, uniform, strict=True)]
        heights, _, _ = axes.hist(
            ratios,
            np.linspace(0, 2, 81),
            density=True,
            histtype="step",
            label=reading,
            linewidth=4 - number,  # readings may be the same: all are to be seen
        )
        densities += [height for height in heights if height > 0]
    if max(densities) > SPIKE * np.median(densities):  # no perturbation at all is one
        axes.set_yscale("symlog", linthresh=2)
        axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("actual over estimated time")
    axes.set_ylabel("density")
    axes.legend(frameon=False)
