"""Simulated policies side by side: means with intervals, classes, number in system over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..experiments import in_words
from .figure import literal, mark, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..experiments import Contest, Optimum, Result, Sweep
    from ..statistics import Estimate
    from ..traces import Replay

__all__ = [
    "draw_contest",
    "draw_optimum",
    "draw_replays",
    "draw_results",
    "draw_sweep",
]


def draw_results(results: tuple[Result, ...], path: Path | None = None) -> Figure:
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
    return save(figure, path)


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


MARKS = {False: "o", None: "s"}
"""What is drawn around points that are unstable, and around undecided ones."""


def draw_sweep(found: Sweep, path: Path | None = None) -> Figure:
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
    return save(figure, path)


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


FARTHEST = 3.0
"""Ratios beyond this are off the picture."""


def draw_contest(found: Contest, path: Path | None = None) -> Figure:
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
    return save(figure, path)


def draw_optimum(found: Optimum, path: Path | None = None) -> Figure:
    """Draw the mean number in system of every stable policy, and the least possible one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    stable = [gap.result for gap in found.policies if gap.result.stable]
    means = [result.mean_number.mean for result in stable]
    errors = [_error(result, "mean_number", result.mean_number) for result in stable]
    axes.bar(_names(tuple(stable)), means, yerr=errors, capsize=4)
    axes.axhline(found.least, color="black", linewidth=0.8, linestyle="--", label="least possible")
    axes.set_ylabel(in_words("mean_number"))
    axes.tick_params(axis="x", rotation=30)
    axes.legend(frameon=False)
    figure.suptitle(literal(found.system.name))
    return save(figure, path)


HOUR = 3600.0
BEYOND = 2.0
"""How many lengths of the window are drawn of the number in system."""
FAR = 20.0
"""A ratio from which on an axis is logarithmic."""


def draw_replays(found: Sequence[Replay], length: float, path: Path) -> None:
    """Draw the replays of one trace under several policies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    means, classes, number = figure.subplots(1, 3, width_ratios=[1, 1.6, 1.6])
    names = [literal(str(each.policy)) for each in found]
    heights = [float(np.mean(each.responses)) / HOUR if each.done.any() else 0 for each in found]
    means.bar(names, heights, color=[f"C{k}" for k in range(len(found))])
    means.set_ylabel("mean response, hours")
    means.tick_params(axis="x", rotation=30)
    if min(heights) > 0 and max(heights) > FAR * min(heights):
        means.set_yscale("log")
    places = np.arange(len(found[0].system.classes))
    width = 0.8 / len(found)
    for k, each in enumerate(found):
        at = places + (k - (len(found) - 1) / 2) * width
        classes.bar(at, each.by_class / HOUR, width, color=f"C{k}")
        until = BEYOND * length
        shown = each.times <= until
        number.step(
            each.times[shown] / HOUR, each.numbers[shown], f"C{k}", where="post", label=names[k]
        )
    classes.set_xticks(places, [literal(name) for name in found[0].system.classes], rotation=30)
    classes.set_ylabel("mean response, hours")
    classes.set_yscale("log")
    number.axvline(length / HOUR, color="grey", linewidth=0.8, linestyle=":")
    number.set_xlabel("hours (dotted: the last job arrives)")
    number.set_ylabel("jobs in system")
    number.set_yscale("symlog", linthresh=10)
    number.set_ylim(bottom=0)
    number.legend(frameon=False)
    figure.suptitle(f"{literal(found[0].system.name)}: {len(found[0].jobs):,} jobs replayed")
    save(figure, path)
