"""Published figures, drawn from our numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..reproduction.smith import best_reading
from .chains import draw_performance, draw_perturbed
from .figure import save

if TYPE_CHECKING:
    from ..reproduction import Outcome, Reproduction

__all__ = ["can_draw", "draw_reproduction"]


def can_draw(found: Reproduction) -> bool:
    """Tell whether a target is a figure that has numbers."""
    return "Figure" in found.target.name and any(each.ours for each in found.outcomes)


def draw_reproduction(found: Reproduction, path: Path) -> None:
    """Draw a figure: along an inaccuracy, relative to another policy, or tasks on time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
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
    save(figure, path)


def _draw_lines(axes: Any, outcomes: list[Outcome]) -> None:
    for k, policy in enumerate(dict.fromkeys(each.cell["policy"] for each in outcomes)):
        mine = [each for each in outcomes if each.cell["policy"] == policy]
        at = [each.cell["inaccuracy_pct"] for each in mine]
        means, low, high = np.array([each.ours for each in mine], dtype=float).T
        axes.plot(at, means, marker="o", markersize=4, color=f"C{k}", label=policy)
        axes.fill_between(at, low, high, color=f"C{k}", alpha=0.2, linewidth=0)
    if outcomes[0].cell["metric"] == "Delta_pct":
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set_xlabel("largest inaccuracy of the availabilities, %")
        axes.set_ylabel("improvement over Gcmu, %")
    else:
        axes.set_xlabel("largest inaccuracy of arrival and execution rates, %")
        axes.set_ylabel("mean response time")
        axes.set_yscale("log")
    axes.legend(frameon=False)


def _draw_on_time(axes: Any, outcomes: tuple[Outcome, ...]) -> None:
    """Draw the published bars, ours under the text's reading, and under the one that fits best."""
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


def _mark(outcome: Outcome) -> str:
    """Return what follows the name of a policy that is unstable or undecided."""
    if outcome.stable is False:
        return "\n(unstable)"
    return "\n(undecided)" if outcome.undecided else ""


def _draw_bars(axes: Any, outcomes: list[Outcome]) -> None:
    shown = [each for each in outcomes if each.ours is not None]
    names = [each.cell["policy"] + _mark(each) for each in shown]
    reference, what = "Gcmu", "mean response time"
    if any(each.cell["metric"] == "messages_relative" for each in shown):
        words = {"W_relative": "response time", "messages_relative": "messages"}
        names = [f"{each.cell['policy']}\n{words[each.cell['metric']]}" for each in shown]
        reference, what = "MCT", "mean response time, and messages"
    means, low, _ = np.array([each.ours for each in shown], dtype=float).T
    errors = [*np.nan_to_num(means - low), 0.0]
    axes.bar([*names, reference], [*means, 1.0], yerr=errors, capsize=4)
    axes.set_ylabel(f"{what}, {reference} = 1")
