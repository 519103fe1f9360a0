"""Simulated policies side by side: means with intervals, classes, number in system over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..experiments import in_words
from .figure import literal, mark, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..experiments import Result
    from ..statistics import Estimate

__all__ = ["draw_results"]


def draw_results(results: tuple[Result, ...], path: Path) -> None:
    """Draw the results of one or several policies on a system."""
    from matplotlib.figure import Figure

    peers = results[0].policy.kind == "peer"
    widths = [1, 1.4, 1.6, *([1.6] if peers else [])]
    figure = Figure(figsize=(13 + 4 * peers, 4), layout="constrained")
    means, classes, number, *views = figure.subplots(1, len(widths), width_ratios=widths)
    _draw_means(means, results)
    _draw_classes(classes, results)
    _draw_number(number, results)
    if peers:
        _draw_views(views[0], results)
    first = results[0]
    figure.suptitle(
        f"{literal(first.system.name)}: {len(first.replications)} × {first.length}, "
        f"seed {first.seed}{_load(first)}; bars are 95 % intervals"
    )
    save(figure, path)


def _load(result: Result) -> str:
    found = result.long_run_load
    return "" if found is None else f", long-run load {100 * found:.1f} %"


def _names(results: tuple[Result, ...]) -> list[str]:
    return [literal(str(r.policy)) + mark(r) for r in results]


def _draw_means(axes: Axes, results: tuple[Result, ...]) -> None:
    metric = results[0].criteria[-1]
    estimates = [result.figure(metric) for result in results]
    heights = [each.mean for each in estimates]
    errors = [_error(r, metric, each) for r, each in zip(results, estimates, strict=True)]
    colours = [f"C{k}" for k in range(len(results))]
    axes.bar(_names(results), heights, yerr=errors, color=colours, capsize=4)
    axes.set_ylabel(in_words(metric))
    if max(heights) > 20 * min(heights) and metric not in results[0].more_is_better:
        axes.set_yscale("log")
    axes.tick_params(axis="x", rotation=30 if len(results) > 3 else 0)


def _draw_classes(axes: Axes, results: tuple[Result, ...]) -> None:
    places = np.arange(len(results[0].classes))
    width = 0.8 / len(results)
    for k, result in enumerate(results):
        estimates = _by_class(result)
        metric = "on_time_fraction" if _has_deadlines(result) else "mean_response"
        errors = [_error(result, metric, each) for each in estimates]
        heights = [each.mean for each in estimates]
        at = places + (k - (len(results) - 1) / 2) * width
        axes.bar(at, heights, width, yerr=errors, color=f"C{k}", capsize=2)
    axes.set_xticks(places, [literal(each.name) for each in results[0].classes])
    axes.set_xlabel("class")
    axes.set_ylabel(in_words("on_time_fraction" if _has_deadlines(results[0]) else "mean_response"))
    largest = [e.mean for r in results for e in _by_class(r) if e.mean > 0]
    if largest and max(largest) > 20 * min(largest) and not _has_deadlines(results[0]):
        axes.set_yscale("log")


def _draw_views(axes: Axes, results: tuple[Result, ...]) -> None:
    """Draw how far machines differ in whom they would ask, in the first replication."""
    for k, result in enumerate(results):
        run = result.replications[0]
        shares = 100 * np.array(run.more["disagreements"])
        axes.plot(run.times[1:], shares, color=f"C{k}", label=_names((result,))[0])
    axes.set_xlabel("time")
    axes.set_ylabel("pairs (class, machine) in which\ntwo machines' plans differ, %")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _error(result: Result, metric: str, found: Estimate) -> float:
    """Return the half width of an interval, 0 where there is none or where it would mislead."""
    return float(np.nan_to_num(found.half_width)) if result.has_interval(metric) else 0.0


def _has_deadlines(result: Result) -> bool:
    return result.criteria[-1] == "on_time"


def _by_class(result: Result) -> list[Estimate]:
    """Return what classes are drawn by: their response, or their share on time."""
    if _has_deadlines(result):
        return list(result.by_class["on_time_fraction"])
    return [each.mean_response for each in result.classes]


def _draw_number(axes: Axes, results: tuple[Result, ...]) -> None:
    for k, result in enumerate(results):
        numbers = np.array([run.number for run in result.replications])
        times = result.replications[0].times
        axes.plot(times, numbers.mean(axis=0), color=f"C{k}", label=_names((result,))[0])
        if len(numbers) > 1:
            low, high = numbers.min(axis=0), numbers.max(axis=0)
            axes.fill_between(times, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
    axes.set_xlabel("time")
    axes.set_ylabel("tasks in system (mean and range)")
    ends = [result.mean_number.mean for result in results]
    if max(ends) > 20 * min(ends):
        axes.set_yscale("symlog", linthresh=max(min(ends), 1e-9))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
