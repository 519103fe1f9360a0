"""The figures of a run's statistics, as numbers: what is drawn, and what is downloaded."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..allocation import long_run_of
from ..allocation.lost_work import bound, with_same_work
from ..grid import Interruptions, interruptions, queues
from ..grid.event import Entry
from ..grid.timeline import Attempt, attempts
from ..statistics import estimate, stability
from ..testbed import Run
from ..testbed.conduct import ACTIONS
from .dashboard import Span, interrupted_spans, spans_of
from .sentences import operated, sentence

BATCHES = 10
LEAST = 10
"""Jobs of a batch."""
MOST_SPANS = 20_000
"""Stretches that a chart shows one by one."""
BINS = 600
"""Stretches of a machine in a chart of more than these."""

Rows = list[list[Any]]


class Figure(NamedTuple):
    """A figure as a table."""

    name: str
    """The name of the file to download, without its ending."""
    heads: list[str]
    rows: Rows

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row."""
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]


class RunFigures(NamedTuple):
    """The figures of a run."""

    responses: Figure
    utilisation: Figure
    timeline: Figure
    machines: list[str]
    classes: list[str]
    until: float
    spans: list[Span]
    """The timeline as it is drawn; a long one is coarser than the figure."""
    coarse: bool
    grows: bool
    """Whether responses grow for as long as it runs, so that a mean would have no interval."""
    actions: list[str]
    """What operators did, as sentences."""
    operated: str
    """The same, counted."""


READ = ("attempts", "queues", "responses", "utilisation", "timeline", "classes", "rates")
"""The parts of reading a run, in their order; the last two are those of its tables."""


def figures_of(run: Run, note: Callable[[str], None] = lambda part: None) -> RunFigures:
    """Read the figures of a run, which may be long; ``note`` is called with each part."""
    note("attempts")
    journal, until = run.journal, run.until
    machines, classes = list(run.about["machines"]), list(run.system.classes)
    ran = attempts(journal)
    note("queues")
    grows = is_growing(run)
    note("responses")
    responses = _responses(run, grows)
    note("utilisation")
    seen = interruptions(journal)
    shares = utilisation(machines, ran, seen, until)
    note("timeline")
    spans = spans_of(ran, machines, classes, 0.0, until)
    spans += interrupted_spans(seen, machines, 0.0, until)
    coarse = len(spans) > MOST_SPANS
    actions = operators_of(run)
    return RunFigures(
        responses,
        shares,
        Figure(
            "timeline",
            ["machine", "job", "class", "start", "end", "result"],
            [
                [
                    *(each.machine, each.job, each.task_class, round(each.start, 6)),
                    *(round(min(each.end, until), 6), each.result),
                ]
                for each in ran
            ],
        ),
        machines,
        classes,
        until,
        thinned(spans, len(machines), until) if coarse else spans,
        coarse,
        grows,
        [sentence(each) for each in actions],
        operated(actions),
    )


def operators_of(run: Run) -> list[Entry]:
    """Return what operators did to machines in a run, also failures that they caused."""
    found = run.journal.events(*ACTIONS, "failure")
    return [each for each in found if each.kind != "failure" or "period" in each.fields]


def is_growing(run: Run) -> bool:
    """Tell whether a run is unstable: its load is 1 or more, or its jobs pile up.

    Jobs may pile up at any load, under a bad policy or while operators hold machines.
    """
    system, seen = with_same_work(run.system), queues(run.journal)
    known = long_run_of(system)
    load = bound(system, known.load)
    if run.until <= 0:
        return load is not None and load >= 1
    during = seen.times <= run.until  # what ends later says nothing about the run
    number = np.sum(list(seen.in_system.values()), axis=0, dtype=float)
    found = stability(
        seen.times[during],
        np.atleast_2d(number[during]),
        float(run.system.arrival_rates.sum()),
        load=load,
        settling=known.settling,
        waiting=known.queue,
        machines=len(run.system.machines),
    )
    return found.stable is False


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return a 95 % interval of the mean of values in their order; None if they are too few.

    Successive responses depend on each other, so the means of batches of them are compared.
    """
    if len(values) < BATCHES * LEAST:
        return None
    means = [float(np.mean(part)) for part in np.array_split(np.asarray(values), BATCHES)]
    found = estimate(means)
    return max(found.low, 0.0), found.high  # no response is negative


SPREAD = (0.5, 0.95, 0.99)
PERCENTILES = ("median", "95th percentile", "99th percentile")


def _responses(run: Run, grows: bool) -> Figure:
    """Return the mean response of each class with its interval, and how jobs spread around it."""
    heads = ["class", "finished", "mean", "low", "high", *PERCENTILES]
    rows = run.journal.select(
        "class, ended - submitted FROM job WHERE stage = 'finished' ORDER BY ended"
    )
    by_class: dict[str, list[float]] = {name: [] for name in run.system.classes}
    for name, response in rows:
        by_class.setdefault(name, []).append(response)
    by_class["all"] = [response for _, response in rows]
    found = []
    for name, values in by_class.items():
        low, high = (None, None) if grows else interval(values) or (None, None)
        mean = float(np.mean(values)) if values else None
        spread = list(map(float, np.quantile(values, SPREAD))) if values else [None] * len(SPREAD)
        found.append([name, len(values), mean, low, high, *spread])
    return Figure("responses", heads, found)


UTILISED = ("finished", "lost", "failed", "taken away", "paused", "idle")


def utilisation(
    machines: Sequence[str], ran: Sequence[Attempt], seen: Interruptions, until: float
) -> Figure:
    """Return the shares of the time that each machine spent on jobs, away, paused and idle.

    The first that fits counts: a paused machine that finishes a job is at work, and one that is
    paused and away is away.
    """
    jobs: dict[bool, dict[str, list[tuple[float, float]]]] = {True: {}, False: {}}
    for each in ran:
        done = each.result in ("finished", "running")
        jobs[done].setdefault(each.machine, []).append((each.start, each.end))
    rows: Rows = []
    for name in machines:
        known: list[tuple[float, float]] = []
        own, total = [], 0.0
        for spans in (jobs[True], jobs[False], seen.failed, seen.taken, seen.paused):
            known = _merged([*known, *spans.get(name, ())], until)
            length = sum(end - start for start, end in known)
            own.append(length - total)
            total = length
        own.append(until - total)
        rows.append([name, *(round(each / until, 5) if until > 0 else 0.0 for each in own)])
    return Figure("utilisation", ["machine", *UTILISED], rows)


def _merged(spans: Sequence[tuple[float, float]], until: float) -> list[tuple[float, float]]:
    """Return the union of spans as spans that do not touch."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        stop = min(end, until)
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        elif start < stop:
            found.append((start, stop))
    return found


def thinned(spans: Sequence[Span], machines: int, until: float) -> list[Span]:
    """Return in short stretches what each machine did for most of each."""
    kinds = sorted({each.kind for each in spans})
    spent = np.zeros((machines, len(kinds), BINS), np.float32)
    place = {kind: k for k, kind in enumerate(kinds)}
    step = until / BINS
    for machine, start, end, kind, _ in spans:
        own = spent[machine, place[kind]]
        first, last = int(start / step), min(int(end / step), BINS - 1)
        for k in range(first, last + 1):
            own[k] += min(end, (k + 1) * step) - max(start, k * step)
    idle = np.maximum(step - spent.sum(axis=1), 0.0)
    best = np.where(spent.max(axis=1) > idle, spent.argmax(axis=1), -1)
    found = []
    for machine in range(machines):
        edges = np.flatnonzero(np.diff(best[machine], prepend=-2, append=-2)).tolist()
        for k, after in pairwise(edges):
            if best[machine, k] >= 0:
                kind = kinds[best[machine, k]]
                found.append(Span(machine, round(k * step, 4), round(after * step, 4), kind))
    return found


def compared(report: Mapping[str, Any]) -> Figure:
    """Return the mean responses of a run, of its twin and as published, by class."""
    published, twin = report["published"], report["simulated"]
    platforms = sorted({name for each in published.values() for name in each})
    heads = ["class", "run", "twin", *(f"published, {name}" for name in platforms)]
    rows = []
    of_run, of_twin = ([*each["classes"], {**each, "name": "overall"}] for each in (report, twin))
    for own, other in zip(of_run, of_twin, strict=True):
        printed = [published.get(own["name"], {}).get(each, "") for each in platforms]
        rows.append([own["name"], own["mean_response"], other["mean_response"], *printed])
    return Figure("run-twin-published", heads, rows)


def printed_number(words: str) -> float | None:
    """Return a published number, the middle of a published range, or None.

    >>> printed_number("0.25"), printed_number("1 to 2"), printed_number("unstable")
    (0.25, 1.5, None)
    """
    try:
        values = [float(each) for each in words.split(" to ")]
    except ValueError:
        return None
    return sum(values) / len(values)


def waterfall(report: Mapping[str, Any], operated: str = "") -> Figure:
    """Return the steps from the twin to the run: cause, change, and the mean response after it."""
    at = report["simulated"]["mean_response"]
    rows: Rows = [["twin", None, at]]
    for cause, change in report["gap"]["shares"].items():
        at += change
        name = f"operators ({operated})" if cause == "operators" and operated else cause
        rows.append([name, change, at])
    rows.append(["run", None, report["mean_response"]])
    return Figure("gap", ["cause", "change", "mean response after it"], rows)
