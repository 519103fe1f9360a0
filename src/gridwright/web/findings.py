"""What a simulation has found, as a document of plain JSON: pages, exports and files share it.

A simulation that has ended is kept as a file, so that its address shows it also after a restart.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..experiments import Result, in_words
from ..experiments.result import UNITS
from ..grid.ownership import home
from ..model import Floats
from ..statistics import Estimate, longer_than
from .documents import plain

MOST_KEPT = 1000
"""Files; the oldest are deleted first, since anybody may simulate without the token."""
ADDRESS = re.compile(r"[0-9a-f]{8}")
POINTS = 200
"""Points of a curve."""
Document = dict[str, Any]


def describe_result(result: Result) -> Document:
    """Return what the page shows of a policy; an unstable one has a verdict in place of means."""
    metric = result.criteria[-1]
    return {
        "policy": str(result.policy),
        "stable": result.stable,
        "verdict": result.verdict,
        "has_mean": result.has_interval(metric),
        "growth": result.stability.growth,
        "long_run_load": result.long_run_load,
        "load_words": result.load_words,
        "value": result.figure(metric).as_json(),
        "figures": {name: found.as_json() for name, found in result.figures.items()},
        "classes": [
            {"name": name, **found.as_json()}
            for name, found in zip(result.system.classes, _by_class(result), strict=True)
        ],
        "tail": tail(result),
        "numbers": numbers(result),
    }


def describe_metric(result: Result) -> Document:
    """Return what policies are compared by."""
    name = result.criteria[-1]
    by_class = "on_time_fraction" if name == "on_time" else "mean_response"
    return {
        "name": name,
        "words": in_words(name),
        "unit": UNITS.get(name, ""),
        "more_is_better": name in result.more_is_better,
        "by_class": in_words(by_class),
    }


def _by_class(result: Result) -> Sequence[Estimate]:
    if result.criteria[-1] == "on_time":
        return result.by_class["on_time_fraction"]
    return [each.mean_response for each in result.classes]


def tail(result: Result) -> list[list[float]]:
    """Return times and the shares of tasks that take longer, over all replications."""
    if not result.tails:
        return []
    counts = np.sum([run.responses.sum(axis=0) for run in result.replications], axis=0)
    times, shares = longer_than(counts)
    last = int(np.count_nonzero(shares > 0))
    # Evenly over the logarithm of the share: the curve is drawn so.
    wanted = np.geomspace(1.0, max(shares[last - 1], 1e-12), POINTS) if last else np.zeros(0)
    chosen = np.unique(np.minimum(np.searchsorted(-shares, -wanted), max(last - 1, 0)))
    return [[float(times[k]), float(shares[k])] for k in chosen]


def numbers(result: Result) -> list[list[float]]:
    """Return the number in system over time, the mean of the replications."""
    times: Floats = result.replications[0].times
    mean = np.mean([each.number for each in result.replications], axis=0)
    chosen = np.unique(np.linspace(0, len(times) - 1, POINTS).astype(int))
    return [[float(times[k]), float(mean[k])] for k in chosen]


def figure_rows(results: Sequence[Result]) -> list[list[Any]]:
    """Return a row for each figure of each policy."""
    return [
        [str(result.policy), result.stable, row["of"], row["figure"], *row["value"]]
        for result in results
        for row in result.rows()
    ]


CONDITIONS = ("system", "horizon", "replications", "seed")
HEADS = (*CONDITIONS, "policy", "stable", "of", "figure", "mean", "low", "high")


def spreadsheet(document: Document) -> list[Sequence[Any]]:
    """Return all figures of a simulation that has ended, and the differences, as a table."""
    conditions = [{**document["wanted"], **document}[key] for key in CONDITIONS]
    rows: list[Sequence[Any]] = [HEADS]
    for policy, stable, *rest in document["rows"]:
        rows.append([*conditions, policy, "undecided" if stable is None else stable, *rest])
    for each in document["result"].get("differences", ()):
        figure = f"{each['metric']}, difference to {each['first']}"
        numbers = [each["difference"][key] for key in ("mean", "low", "high")]
        rows.append([*conditions, each["second"], "", "all tasks", figure, *numbers])
    return rows


def save_document(document: Document) -> None:
    """Keep a document under its address; do nothing if the disk is full."""
    path = _path(document["address"])
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = _files()
        for old in known[MOST_KEPT - 1 :]:
            old.unlink(missing_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(plain(document)), "utf-8")
        new.replace(path)


def load_document(address: str) -> Document | None:
    """Return a document that was kept; None if there is none, or if it is damaged."""
    path = _path(address)
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text("utf-8")) if path is not None else None
        return found if isinstance(found, dict) and found.get("address") == address else None
    return None


def list_documents(most: int = 20) -> list[Document]:
    """Return what the newest documents are about, the newest first."""
    found = [load_document(path.stem) for path in _files()[:most]]
    return [about(each) for each in found if each is not None]


def about(document: Document) -> Document:
    """Return what a document is about, in a few keys."""
    policies = [each["policy"] for each in document["policies"]]
    keys = ("address", "made", "system", "length", "state", "conclusions")
    return {**{key: document[key] for key in keys}, "policies": policies}


def _files() -> list[Path]:
    """Return the files, the newest first."""
    files = (home() / "simulations").glob("*.json")
    return sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)


def _path(address: str) -> Path | None:
    return home() / "simulations" / f"{address}.json" if ADDRESS.fullmatch(address) else None
