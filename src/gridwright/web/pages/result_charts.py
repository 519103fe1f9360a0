"""Charts of what a simulation has found, and the sentences beside them.

An unstable policy has no mean: its row in the chart of means says so, and it is drawn only over
time, where it grows.
"""

from collections.abc import Iterable
from math import floor, log10
from typing import Any

from ...statistics import Estimate
from ..findings import Document
from .charts import COLOURS, FAINT, SHARP, line_chart, line_series
from .frame import figure

FAR = 20.0
"""Values that differ by more than this factor get a logarithmic axis."""
LEAST_SHARE, MOST_SHARE = 1e-5, 0.995
"""The part of the tail that is drawn: the first tasks would make the axis of times too long."""
Line = dict[str, Any]
Options = dict[str, Any]


def means_chart(found: Document) -> Options:
    """Draw the mean of each policy with its interval, a row a policy."""
    lines, metric = _lines(found), found.get("metric") or {}
    names = [each["policy"] for each in lines]
    shown = _drawn(found)
    log = needs_log([each["value"]["mean"] for each in shown])
    start = min((_ends(each)[0] for each in shown), default=0.0)
    series = []
    for k, each in enumerate(lines):
        colour = COLOURS[k % len(COLOURS)]
        if each in shown:
            low, high = _ends(each)
            low = max(low, each["value"]["mean"] / FAR) if log else low
            ends = [[low, each["policy"]], [high, each["policy"]]]
            series.append(
                {
                    "type": "line",
                    "data": [
                        {"value": ends[0], "symbol": "rect", "symbolSize": [2, 14]},
                        {"value": [each["value"]["mean"], each["policy"]], "symbolSize": 11},
                        {"value": ends[1], "symbol": "rect", "symbolSize": [2, 14]},
                    ],
                    "symbol": "circle",
                    "color": colour,
                    "lineStyle": {"width": 3},
                }
            )
        else:
            words = each["verdict"].partition(":")[0]
            if each["has_mean"] and each["value"]["mean"] is not None:
                words += f", mean of these runs {figure(each['value']['mean'])}"
            mark = {"show": True, "position": "right", "formatter": words, **SHARP}
            mark["fontStyle"] = "italic"
            place = {"value": [start, each["policy"]], "symbolSize": 1, "label": mark}
            series.append({"type": "scatter", "data": [place], "color": colour})
    axis = {"type": "log" if log else "value", "scale": True, "name": _titled(metric), **FAINT}
    return {
        "animation": False,
        "grid": {"left": 10, "right": 30, "top": 15, "bottom": 35, "containLabel": True},
        "xAxis": {**axis, "nameLocation": "middle", "nameGap": 25},
        "yAxis": {"type": "category", "data": names, "inverse": True},
        "series": series,
    }


def class_chart(found: Document) -> Options:
    """Draw a bar for each class and policy that has means."""
    lines, metric = _lines(found), found.get("metric") or {}
    names = [each["name"] for each in lines[0]["classes"]] if lines else []
    series = [
        {
            "name": each["policy"],
            "type": "bar",
            "color": COLOURS[k % len(COLOURS)],
            "data": [one["mean"] for one in each["classes"]],
        }
        for k, each in enumerate(lines)
        if each["has_mean"]
    ]
    log = needs_log(value for each in series for value in each["data"])
    made = line_chart(series, "class", metric.get("by_class", ""))
    made["xAxis"] |= {"type": "category", "data": names}
    made["yAxis"] |= {"type": "log" if log else "value"}
    if log:  # bars grow from a power of ten below all of them; else they would grow from 1
        least = min(value for each in series for value in each["data"] if value)
        made["yAxis"]["min"] = made["yAxis"]["startValue"] = 10.0 ** floor(log10(least))
    return made


def tail_chart(found: Document) -> Options:
    """Draw the share of tasks that take longer than a time, both logarithmic."""
    series = []
    for k, each in enumerate(_lines(found)):
        if each["has_mean"]:
            points = [point for point in each["tail"] if LEAST_SHARE <= point[1] <= MOST_SHARE]
            series.append(line_series(each["policy"], k, points) | {"step": "end"})
    made = line_chart(series, "response time", "share of tasks that take longer")
    made["yAxis"] |= {"type": "log", "max": 1, "nameLocation": "end"}
    made["yAxis"]["nameTextStyle"] = {"align": "left"}
    made["xAxis"] |= {"type": "log"}
    return made


def growth_chart(found: Document) -> Options:
    """Draw the number in system over time; dashed for unstable policies."""
    series = []
    for k, each in enumerate(_lines(found)):
        unstable = each["stable"] is False
        name = f"{each['policy']} (unstable)" if unstable else each["policy"]
        style = {"lineStyle": {"type": "dashed", "width": 3}} if unstable else {}
        series.append(line_series(name, k, each["numbers"]) | style)
    return line_chart(series, "time units", "number in system")


def means_words(found: Document) -> str:
    """Say which policy has the best mean, and which ones have none."""
    lines, metric = _lines(found), found.get("metric") or {}
    shown = _drawn(found)
    words = []
    if shown:
        best = (max if metric["more_is_better"] else min)(shown, key=lambda e: e["value"]["mean"])
        which = "Highest" if metric["more_is_better"] else "Lowest"
        unit = f" {metric['unit']}" if metric["unit"] else ""
        left = len(found["policies"]) - len(lines)
        so_far = f" so far ({left} of {len(found['policies'])} policies have no result yet)"
        words.append(
            f"{which} {metric['words']}{so_far if left else ''}: {best['policy']}, "
            f"{interval(best['value'])}{unit}."
        )
        words += _certainty(found, str(best["policy"]))
        words.append("Dots are means, lines 95 % intervals.")
    open_ = [each["policy"] for each in lines if each["has_mean"] and each not in shown]
    words += [f"Not drawn, since undecided: {', '.join(open_)}."] if open_ else []
    words += [f"{each['policy']} has no mean: {each['verdict']}." for each in _without(lines)]
    return " ".join(words)


def _certainty(found: Document, best: str) -> list[str]:
    """Say whether the best mean is the best beyond noise, by the paired differences."""
    if len(found["policies"]) == 1:
        return []
    result = found.get("result") or {}
    if "differences" not in result:
        over = "rows" in found
        return ["Not compared, since not all have ended." if over else "Not compared yet."]
    if result["winner"] == best:
        ranked = len(result["ranked"]) > 1
        return [
            "This is certain: every paired 95 % interval against another policy excludes 0."
            if ranked
            else "No other policy is known to be stable."
        ]
    metric, rivals = found["metric"]["name"], []
    for each in result["differences"]:
        pair = (each["first"], each["second"])
        if best in pair and each["metric"] == metric and each["winner"] != best:
            rivals.append(pair[pair[0] == best])
    if found["replications"] == 1:
        return ["Not certain: one replication gives no intervals."]
    close = [name for name in rivals if name in result["ranked"]]
    stable = {each["policy"]: each["stable"] for each in found["policies"]}
    open_ = [name for name in (best, *rivals) if name not in close and stable[name] is None]
    why = [f"against {', '.join(close)} the paired 95 % interval contains 0"] if close else []
    why += [f"the stability of {', '.join(open_)} is undecided"] if open_ else []
    return [f"Not certain: {'; '.join(why)}."] if why else []


def class_words(found: Document) -> str:
    """Say for each policy which class has the highest bar."""
    words = []
    for each in _lines(found):
        known = [one for one in each["classes"] if one["mean"] is not None]
        if each["has_mean"] and known:
            most = max(known, key=lambda one: one["mean"])
            words.append(f"{each['policy']}: highest for class {most['name']}, {interval(most)}.")
    return " ".join([*words, *_left_out(found)])


def tail_words(found: Document) -> str:
    """Say within which times most tasks respond."""
    if not found.get("tails", True):
        return "Not measured: so many replications of so many classes would take too much memory."
    words = [
        f"{each['policy']}: 95 % of tasks respond within {figure(each['figures']['p95']['mean'])}, "
        f"99 % within {figure(each['figures']['p99']['mean'])}, "
        f"99.9 % within {figure(each['figures']['p99.9']['mean'])} time units."
        for each in _lines(found)
        if each["has_mean"] and "p95" in each["figures"]
    ]
    return " ".join([*words, *_left_out(found)])


def growth_words(found: Document) -> str:
    """Say which policies settle and which ones grow."""
    return " ".join(f"{each['policy']}: {each['verdict']}." for each in _lines(found))


def interval(value: dict[str, Any]) -> str:
    """Write a mean and its interval, as the command line does."""
    if value["low"] is None:
        return figure(value["mean"])
    return str(Estimate(value["mean"], value["low"], value["high"]))


def needs_log(values: Iterable[float | None]) -> bool:
    """Tell whether positive values differ so much that a linear axis would hide the small ones.

    >>> needs_log([1.0, 2.0, None]), needs_log([1.0, 50.0]), needs_log([0.0, 50.0])
    (False, True, False)
    """
    known = [value for value in values if value is not None]
    return bool(known) and min(known) > 0 and max(known) > FAR * min(known)


def _lines(found: Document) -> list[Line]:
    """Return the policies that have been simulated at least once."""
    return [each for each in found["policies"] if "numbers" in each]


def _drawn(found: Document) -> list[Line]:
    """Return the policies whose means are drawn.

    The mean of an undecided policy may be far off and hide how the others differ. It depends on the
    length of the run, so it is not drawn beside policies that are stable.
    """
    known = [e for e in _lines(found) if e["has_mean"] and e["value"]["mean"] is not None]
    stable = [each for each in known if each["stable"]]
    by_count = (found.get("metric") or {}).get("more_is_better")
    return known if by_count or not stable else stable


def _without(lines: list[Line]) -> list[Line]:
    return [each for each in lines if not each["has_mean"]]


def _left_out(found: Document) -> list[str]:
    names = [each["policy"] for each in _without(_lines(found))]
    return [f"Not drawn, since unstable: {', '.join(names)}."] if names else []


def _ends(line: Line) -> tuple[float, float]:
    """Return the ends of an interval; the mean if there is none."""
    value = line["value"]
    mean = value["mean"]
    return (mean, mean) if value["low"] is None else (value["low"], value["high"])


def _titled(metric: dict[str, Any]) -> str:
    unit = metric.get("unit")
    return f"{metric.get('words', '')}, {unit}" if unit else str(metric.get("words", ""))
