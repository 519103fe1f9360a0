"""Published figures, drawn from our numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..reproduction.target import best_reading
from ..simulation.chain_loop import perturbed
from .figure import band, log_if_far, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..reproduction import Outcome, Reproduction

DRAWS = 40_000
SPIKE = 10
"""A density that is so many times the median would hide all others."""
READINGS = ("printed", "halved", "mixture")
POLICIES = ("LPAS_DG", "Gcmu", "FCFS")
PLATFORMS = ("simulation", "testbed")


def draw_reproduction(found: Reproduction, path: Path | None = None) -> Figure:
    """Draw a figure: along an inaccuracy, relative to another policy, or tasks on time."""
    figure = new_figure(6, 4)
    axes = figure.subplots()
    lines = [each for each in found.outcomes if "inaccuracy_pct" in each.cell]
    metrics = {each.cell["metric"] for each in found.outcomes}
    if lines:
        _draw_lines(axes, lines)
    elif found.outcomes[0].cell["metric"] == "on_time_mean":
        _draw_on_time(axes, found.outcomes)
    elif metrics == {"perf_fraction"}:
        draw_performance(axes, list(found.outcomes))
    elif metrics == {"time_over_estimate_sd"}:
        draw_perturbed(axes, list(found.outcomes))
    else:
        _draw_bars(axes, [o for o in found.outcomes if o.cell["metric"].endswith("_relative")])
    axes.set_title(found.target.name, fontsize=10)
    return save(figure, path)


def _draw_lines(axes: Any, outcomes: list[Outcome]) -> None:
    for k, policy in enumerate(dict.fromkeys(each.cell["policy"] for each in outcomes)):
        mine = [each for each in outcomes if each.cell["policy"] == policy]
        at = [each.cell["inaccuracy_pct"] for each in mine]
        band(axes, at, [each.ours for each in mine], k, policy)
    if outcomes[0].cell["metric"] == "Delta_pct":
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set(
            xlabel="largest inaccuracy of the availabilities, %", ylabel="improvement over Gcmu, %"
        )
    else:
        axes.set(
            xlabel="largest inaccuracy of arrival and execution rates, %",
            ylabel="mean response time",
            yscale="log",
        )
    axes.legend(frameon=False)


def _draw_on_time(axes: Any, outcomes: tuple[Outcome, ...]) -> None:
    """Draw the published bars, ours as the text says, and ours under the reading that fits best."""
    text = [each for each in outcomes if "variant" not in each.cell]
    policies = [each.cell["policy"] for each in text]
    off = [abs(o.ours.mean - o.cell["value"]) if o.ours else np.inf for o in outcomes]
    chosen = [outcomes[k] for k in best_reading([o.cell for o in outcomes], off)]
    fitted = sorted(chosen, key=lambda outcome: policies.index(outcome.cell["policy"]))
    published = [(each.cell["value"], each.cell["half_width"]) for each in text]
    bars = {"published": published}
    for name, ours in (("ours, as the text has it", text), ("ours, fitted", fitted)):
        bars[name] = [(o.ours.mean, o.ours.half_width) for o in ours if o.ours is not None]
    for k, (name, pairs) in enumerate(bars.items()):
        heights, errors = np.array(pairs, dtype=float).T
        at = np.arange(len(policies)) + (k - 1) * 0.27
        axes.bar(at, heights, 0.27, yerr=np.nan_to_num(errors), capsize=3, label=name)
    axes.set_xticks(range(len(policies)), policies)
    axes.set_ylabel("tasks on time, of 2,000")
    axes.legend(frameon=False)


def _draw_bars(axes: Any, outcomes: list[Outcome]) -> None:
    shown = [each for each in outcomes if each.ours is not None]
    marks = [f"\n({each.stability})" if each.stability else "" for each in shown]
    names = [each.cell["policy"] + mark for each, mark in zip(shown, marks, strict=True)]
    reference, what = "Gcmu", "mean response time"
    if any(each.cell["metric"] == "messages_relative" for each in shown):
        words = {"W_relative": "response time", "messages_relative": "messages"}
        names = [f"{each.cell['policy']}\n{words[each.cell['metric']]}" for each in shown]
        reference, what = "MCT", "mean response time, and messages"
    means, low, _ = np.array([each.ours for each in shown], dtype=float).T
    grows = np.array([each.stable is False for each in shown])  # those have no interval
    errors = [*np.where(grows, 0.0, np.nan_to_num(means - low)), 0.0]
    axes.bar([*names, reference], [*means, 1.0], yerr=errors, capsize=4)
    axes.set_ylabel(f"{what}, {reference} = 1")


def draw_performance(axes: Any, outcomes: list[Outcome]) -> None:
    """Draw the performance by number of nodes: published, and ours by way to draw templates."""
    for k, variant in enumerate(dict.fromkeys(each.cell["variant"] for each in outcomes)):
        mine = [each for each in outcomes if each.cell["variant"] == variant]
        nodes = [each.cell["nodes"] for each in mine]
        band(axes, nodes, [each.ours for each in mine], k, variant, size=3)
        if k == 0:
            published = [each.cell["value"] for each in mine]
            axes.plot(nodes, published, "kx", label="published", zorder=3)
    axes.set_xscale("log", base=2)
    axes.set_xticks(nodes, nodes)
    axes.set(ylim=(-0.03, 1.05), xlabel="nodes", ylabel="performance: OK / (OK + late)")
    axes.legend(frameon=False, fontsize=8)


def draw_perturbed(axes: Any, outcomes: list[Outcome]) -> None:
    """Draw how actual times spread around their estimates, in each reading."""
    rng = np.random.default_rng(1)
    normals = rng.standard_normal(2 * DRAWS)
    normals = normals[np.abs(normals) < 1][:DRAWS]
    uniform = rng.uniform(-1, 1, len(normals))
    densities: list[float] = []
    for each in outcomes:
        reading, v = each.cell["formula"], each.cell["etcvar"]
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
    axes.set(xlabel="actual over estimated time", ylabel="density")
    axes.legend(frameon=False)


def draw_testbed(found: Sequence[Reproduction], path: Path | None = None) -> Figure:
    """Draw the mean response in every experiment: simulated and measured, published and ours."""
    cells: dict[tuple[int, str, str], Outcome] = {}
    for outcome in (each for one in found for each in one.outcomes):
        cell = outcome.cell
        if cell.get("platform") in PLATFORMS and cell["metric"] == "W_mean" and "policy" in cell:
            cells.setdefault((cell["case"], cell["policy"], cell["platform"]), outcome)
    cases = sorted({case for case, _, _ in cells})
    rows = max(1, -(-len(cases) // 4))
    figure = new_figure(13, 2.6 * rows)
    panels = figure.subplots(rows, 4, squeeze=False).flat
    looks: dict[str, Any] = {"published": {"alpha": 0.5, "hatch": "//"}, "ours": {"alpha": 1}}
    for axes, case in zip(panels, cases, strict=False):
        drawn: list[float] = []
        for k, (whose, platform) in enumerate(product(looks, PLATFORMS)):
            shown = [cells.get((case, policy, platform)) for policy in POLICIES]
            heights = [_height(each, published=whose == "published") for each in shown]
            at = np.arange(len(POLICIES)) + (k - 1.5) * 0.2
            colour = f"C{PLATFORMS.index(platform)}"
            name = f"{platform}, {whose}"
            axes.bar(at, heights, 0.2, label=name, color=colour, **looks[whose])
            drawn += heights
        axes.set_xticks(range(len(POLICIES)), POLICIES, fontsize=8)
        axes.set_title(f"experiment {case}", fontsize=9)
        log_if_far(axes, drawn)
    for axes in list(figure.axes)[len(cases) :]:
        axes.set_visible(False)
    if figure.axes:
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    figure.supylabel("mean response, time units", fontsize=9)
    return save(figure, path)


def _height(outcome: Outcome | None, *, published: bool) -> float:
    """Return the printed number or ours; nan where there is none."""
    if outcome is None:
        return float("nan")
    cell = outcome.cell
    if not published:
        return float("nan") if outcome.ours is None else outcome.ours.mean
    return float(cell["lo"] + cell["hi"]) / 2 if "lo" in cell else float(cell.get("value", "nan"))
