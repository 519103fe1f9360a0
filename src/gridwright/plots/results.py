"""Results of simulations: policies side by side, sweeps, contests, replayed traces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..experiments import PeerResult, in_words, with_known_load
from ..statistics import longer_than
from .figure import band, literal, log_if_far, mark, new_figure, save, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..experiments import Contest, Optimum, Result, Sweep, SweepOverTime
    from ..statistics import Estimate
    from ..traces import Replay

MARKS = {False: "o", None: "s"}
"""The shapes around points of a sweep that are unstable, or undecided."""
FARTHEST = 3.0
"""Larger ratios of a contest are not drawn."""
HOUR = 3600.0
BEYOND = 2.0
"""How many lengths of the trace are drawn of the number in system."""


def draw_results(results: tuple[Result, ...], path: Path | None = None) -> Figure:
    """Draw policies on a system: means with intervals, classes, and the number over time."""
    peers = isinstance(results[0], PeerResult)
    has_tails = bool(results[0].tails)
    widths = [1, 1.4, 1.6, *([1.6] if peers else []), *([1.6] if has_tails else [])]
    figure = new_figure(13 + 4 * peers + 4 * has_tails, 4)
    means, classes, number, *more = figure.subplots(1, len(widths), width_ratios=widths)
    _draw_means(means, results)
    _draw_classes(classes, results)
    _draw_number(number, results)
    if peers:
        _draw_views(more[0], results)
    if has_tails:
        _draw_tails(more[-1], results)
    known = with_known_load(results)
    words = "" if known is None else f", long-run load {known.load_words}"
    figure.suptitle(f"{_setting(results[0])}{words}; bars are 95 % intervals")
    return save(figure, path)


def _setting(result: Result) -> str:
    name, runs = literal(result.system.name), len(result.replications)
    return f"{name}: {runs} × {result.length}, seed {result.seed}"


def _name(result: Result) -> str:
    return literal(str(result.policy)) + mark(result)


def _draw_means(axes: Axes, results: tuple[Result, ...]) -> None:
    metric = results[0].criteria[-1]
    heights = _draw_bars(axes, results, metric, color=[f"C{k}" for k in range(len(results))])
    if metric not in results[0].more_is_better:
        log_if_far(axes, heights)
    axes.tick_params(axis="x", rotation=30 if len(results) > 3 else 0)


def _draw_bars(axes: Axes, results: Sequence[Result], metric: str, **looks: Any) -> list[float]:
    """Draw a figure of each result with its interval; return the heights."""
    estimates = [result.figure(metric) for result in results]
    heights = [_mean(r, metric, each) for r, each in zip(results, estimates, strict=True)]
    errors = [_error(r, metric, each) for r, each in zip(results, estimates, strict=True)]
    axes.bar(list(map(_name, results)), heights, yerr=errors, capsize=4, **looks)
    axes.set_xlim(-0.6, len(results) - 0.4)  # room also for a policy without a bar
    for k, height in enumerate(heights):
        if np.isnan(height):
            axes.text(k, 0.02, "no mean", transform=axes.get_xaxis_transform(), ha="center")
    axes.set_ylabel(in_words(metric))
    return heights


def _draw_classes(axes: Axes, results: tuple[Result, ...]) -> None:
    """Draw the mean response of every class, or its share on time if there are deadlines."""
    has_deadlines = results[0].criteria[-1] == "on_time"
    metric = "on_time_fraction" if has_deadlines else "mean_response"
    groups = [
        r.by_class[metric] if has_deadlines else [each.mean_response for each in r.classes]
        for r in results
    ]
    heights = [
        [_mean(r, metric, each) for each in own] for r, own in zip(results, groups, strict=True)
    ]
    errors = [
        [_error(r, metric, each) for each in own] for r, own in zip(results, groups, strict=True)
    ]
    side_by_side(axes, heights, errors)
    names = [literal(each.name) for each in results[0].classes]
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel="class", ylabel=in_words(metric))
    if not has_deadlines:
        log_if_far(axes, np.ravel(heights))


def _draw_number(axes: Axes, results: tuple[Result, ...]) -> None:
    for k, result in enumerate(results):
        numbers = np.array([run.number for run in result.replications])
        times = result.replications[0].times
        axes.plot(times, numbers.mean(axis=0), color=f"C{k}", label=_name(result))
        if len(numbers) > 1:
            low, high = numbers.min(axis=0), numbers.max(axis=0)
            axes.fill_between(times, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
    axes.set(xlabel="time", ylabel="tasks in system (mean and range)")
    ends = [result.mean_number.mean for result in results]
    if max(ends) > 20 * min(ends):
        axes.set_yscale("symlog", linthresh=max(min(ends), 1e-9))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _draw_tails(axes: Axes, results: tuple[Result, ...]) -> None:
    """Draw the share of tasks that respond later than a time, over all replications."""
    for k, result in enumerate(results):
        counts = np.sum([run.responses.sum(axis=0) for run in result.replications], axis=0)
        times, shares = longer_than(counts)
        axes.step(times, 100 * shares, where="post", color=f"C{k}", label=_name(result))
    axes.set(xscale="log", yscale="log", xlabel="response time", ylabel="tasks that take longer, %")
    axes.set_ylim(bottom=1e-3)
    axes.legend(frameon=False)


def _draw_views(axes: Axes, results: tuple[Result, ...]) -> None:
    """Draw how much the plans of machines differ, in the first replication."""
    for k, result in enumerate(results):
        run = result.replications[0]
        shares = 100 * np.array(run.more["disagreements"])
        axes.plot(run.times[1:], shares, color=f"C{k}", label=_name(result))
    axes.set(
        xlabel="time",
        ylabel="pairs (class, machine) in which\ntwo machines' plans differ, %",
        ylim=(0, None),
    )
    axes.legend(frameon=False)


def _mean(result: Result, metric: str, found: Estimate) -> float:
    """Return a mean; NaN for a policy that has none, as it is unstable and its queues grow."""
    return found.mean if result.has_interval(metric) else np.nan


def _error(result: Result, metric: str, found: Estimate) -> float:
    """Return the half width of an interval; 0 where there is none or where it would mislead."""
    return float(np.nan_to_num(found.half_width)) if result.has_interval(metric) else 0.0


def draw_sweep(found: Sweep, path: Path | None = None) -> Figure:
    """Draw a line per policy along the value that varies; rings are unstable, squares undecided.

    A dashed line marks where the long-run load is 1.
    """
    first = found.points[0].results[0]
    criteria = first.criteria[::-1]
    figure = new_figure(11, 4)
    panels = figure.subplots(1, len(criteria), squeeze=False)[0]
    full = _full_load(found)
    for axes, metric in zip(panels, criteria, strict=True):
        for k, policy in enumerate(found.policies):
            rows = [row for row in found.rows() if row["policy"] == policy]
            values = np.array([row["value"] for row in rows])
            means = band(axes, values, [row[metric] for row in rows], k, literal(policy))
            for stable, shape in MARKS.items():
                chosen = np.array([row["stable"] is stable for row in rows])
                around = {"marker": shape, "markersize": 10, "fillstyle": "none", "linestyle": ""}
                axes.plot(values[chosen], means[chosen], color=f"C{k}", **around)
        if full is not None:
            axes.axvline(full, color="grey", linewidth=0.8, linestyle="--")
        axes.set(xlabel=found.vary, ylabel=in_words(metric))
        if metric not in first.more_is_better:
            log_if_far(axes, [row[metric].mean for row in found.rows()])
        axes.legend(frameon=False)
    verdicts = {row["stable"] for row in found.rows()}
    words = ", rings unstable" if False in verdicts else ""
    words += ", squares undecided" if None in verdicts else ""
    words += "" if full is None else ", dashed: long-run load 1"
    figure.suptitle(f"{_setting(first)}; bands are 95 % intervals{words}")
    return save(figure, path)


def draw_over_time(found: SweepOverTime, path: Path | None = None) -> Figure:
    """Draw arrivals through the cycle, and a line per policy: number in system, and response."""
    figure = new_figure(13, 4)
    arrivals, *panels = figure.subplots(1, 3)
    edges, every = np.array(found.edges), found.rows()
    arrivals.stairs(found.arrival_rates, edges, color="black")
    arrivals.set(xlabel="time in the cycle", ylabel="arrivals per time unit", ylim=(0, None))
    middle = (edges[:-1] + edges[1:]) / 2
    words = {"mean_number": "number in system", "mean_response": "response of those that arrive"}
    for axes, (metric, word) in zip(panels, words.items(), strict=True):
        for k, result in enumerate(found.results):
            rows = [row for row in every if row["policy"] == str(result.policy)]
            band(axes, middle, [row[metric] for row in rows], k, _name(result))
        axes.set(xlabel="time in the cycle", ylabel=f"mean {word}")
        log_if_far(axes, [row[metric].mean for row in every])
        axes.legend(frameon=False)
    figure.suptitle(f"{_setting(found.results[0])}; bands are 95 % intervals")
    return save(figure, path)


def _full_load(found: Sweep) -> float | None:
    """Return the value at which the long-run load is 1, if it lies within the picture."""
    points = [
        (point.value, known.long_run_load or 0.0)
        for point in found.points
        if not isinstance(point.value, str) and (known := with_known_load(point.results))
    ]
    for (value, load), (after, more) in pairwise(sorted(points)):
        if (load - 1) * (more - 1) <= 0 and load != more:
            return float(value + (after - value) * (1 - load) / (more - load))
    return None


def draw_contest(found: Contest, path: Path | None = None) -> Figure:
    """Draw on which share of the systems a policy is within a factor of the best.

    A system on which a policy is unstable or undecided is not within any factor.
    """
    figure = new_figure(11, 4)
    profile, by_load = figure.subplots(1, 2)
    ratios = found.ratios
    loads = np.array([bout.load for bout in found.bouts])
    dots = {"marker": ".", "markersize": 3, "linestyle": "", "alpha": 0.6}
    for k, policy in enumerate(found.policies):
        each = np.sort(ratios[~np.isnan(ratios[:, k]), k])  # stable there
        share = [0, *np.arange(1, len(each) + 1) / len(ratios)]
        to_the_edge = [1, *each, max(FARTHEST, *each[-1:])], [*share, share[-1]]
        profile.step(*to_the_edge, where="post", color=f"C{k}", label=literal(policy))
        by_load.plot(loads, ratios[:, k], color=f"C{k}", **dots)
    profile.set(
        xlim=(1, FARTHEST),
        ylim=(0, 1.01),
        xlabel="mean number in system ÷ least of all policies",
        ylabel="share of the systems within it",
    )
    profile.legend(loc="lower right")
    by_load.set(ylim=(1, FARTHEST), xlabel="load", ylabel="mean number ÷ least")
    figure.suptitle(f"{len(found.bouts)} systems")
    return save(figure, path)


def draw_optimum(found: Optimum, path: Path | None = None) -> Figure:
    """Draw the mean number in system of every stable policy, and the least possible one."""
    figure = new_figure(8, 4)
    axes = figure.subplots()
    stable = [gap.result for gap in found.policies if gap.result.stable]
    _draw_bars(axes, stable, "mean_number")
    axes.axhline(found.least, color="black", linewidth=0.8, linestyle="--", label="least possible")
    axes.tick_params(axis="x", rotation=30)
    axes.legend(frameon=False)
    figure.suptitle(literal(found.system.name))
    return save(figure, path)


def draw_replays(found: Sequence[Replay], length: float, path: Path | None = None) -> Figure:
    """Draw the replays of one trace under several policies."""
    figure = new_figure(13, 4)
    means, classes, number = figure.subplots(1, 3, width_ratios=[1, 1.6, 1.6])
    names = [literal(str(each.policy)) for each in found]
    heights = [float(np.mean(each.responses)) / HOUR if each.done.any() else 0 for each in found]
    means.bar(names, heights, color=[f"C{k}" for k in range(len(found))])
    means.set_ylabel("mean response, hours")
    means.tick_params(axis="x", rotation=30)
    if min(heights) > 0:
        log_if_far(means, heights)
    side_by_side(classes, [(each.by_class / HOUR).tolist() for each in found])
    tasks = [literal(name) for name in found[0].system.classes]
    classes.set_xticks(range(len(tasks)), tasks, rotation=30)
    classes.set(ylabel="mean response, hours", yscale="log")
    for k, each in enumerate(found):
        shown = each.times <= BEYOND * length
        times, counts = each.times[shown] / HOUR, each.numbers[shown]
        number.step(times, counts, f"C{k}", where="post", label=names[k])
    number.axvline(length / HOUR, color="grey", linewidth=0.8, linestyle=":")
    number.set(xlabel="hours (dotted: the last job arrives)", ylabel="jobs in system")
    number.set_yscale("symlog", linthresh=10)
    number.set_ylim(bottom=0)
    number.legend(frameon=False)
    figure.suptitle(f"{literal(found[0].system.name)}: {len(found[0].jobs):,} jobs replayed")
    return save(figure, path)
