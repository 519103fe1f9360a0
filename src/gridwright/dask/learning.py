"""What is learnt of the tasks and workers of a Dask cluster, and kept in a file."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..grid.beliefs import Floats, Learner
from ..model import InputError

KEEP = 200.0
"""About how many of the last tasks of a class on a worker count for its rate."""
WINDOW = 20.0
"""Seconds over which arrival rates are measured; older arrivals count ever less."""
SILENCE = 3.0
"""If the last task of a class came t seconds ago, at most this many are expected in the next t."""
SOON = 5.0
"""Seconds in which what waits is to be done, if the workers can do that."""
MIX = 0.2
"""A plan is made when the expected arrivals of a class change by this part of them."""
RARE = 1e-3
"""The share of a class of which nothing comes or waits."""
FIRST = 0.005
"""Seconds that a task is assumed to take if none of its class has run."""
TINY = 0.002
"""Tasks that take fewer seconds are placed by Dask: choosing takes longer than it saves."""
ENOUGH = 10.0
"""Tasks of a class that must have run for that."""
MOST_CLASSES = 64
"""Tasks of further kinds are one class."""
OTHER = "other"
"""The name of that class."""

Groups = str | Callable[[str], str]
"""Which workers are alike: "worker" (none), "prefix", "host", or a function of a worker's name."""
GROUPS = ("worker", "prefix", "host")


def group_of(groups: Groups, name: str, host: str) -> str:
    """Return the group of a worker: what is learnt on one counts for all of its group.

    >>> group_of("prefix", "gpu-12", "10.0.0.7"), group_of("host", "gpu-12", "10.0.0.7")
    ('gpu', '10.0.0.7')
    """
    if callable(groups):
        return str(groups(name))
    if groups == "prefix":
        return re.sub(r"[-_.:/]*\d+$", "", name) or name
    return host if groups == "host" else name


def check_groups(groups: Any) -> None:
    """Refuse groups that are neither a word that we know nor a function."""
    if not callable(groups) and groups not in GROUPS:
        raise InputError(
            f"groups is {groups!r}; expected {', '.join(GROUPS)}, or a function of a worker's name"
        )


class Arrivals:
    """Measures arrival rates, recent arrivals first.

    Many tasks at once are no rate: more of them are expected only for a moment.

    >>> arrivals = Arrivals(0.0)
    >>> for k in range(1000):
    ...     arrivals.came(0, k / 10)
    >>> for _ in range(500):
    ...     arrivals.came(1, 100.0)
    >>> arrivals.rates(2, 100.1).round(1), arrivals.rates(2, 102.1).round(1)
    (array([ 9.9, 25. ]), array([1.4, 1.4]))
    """

    def __init__(self, start: float) -> None:
        self.start = self._now = start
        self._count, self._last = np.zeros((2, 0))
        self._planned = np.zeros(0)

    def came(self, task_class: int, now: float) -> None:
        """Note an arrival."""
        self._age(now, task_class + 1)
        self._count[task_class] += 1.0
        self._last[task_class] = now

    def rates(self, classes: int, now: float) -> Floats:
        """Return the arrivals a second of each class."""
        self._age(now, classes)
        seen = WINDOW * -math.expm1(-max(now - self.start, 1.0) / WINDOW)
        silent = np.maximum(now - self._last[:classes], 1e-9)
        return np.minimum(self._count[:classes] / seen, SILENCE / silent)

    def expected(self, waiting: Floats, now: float) -> Floats | None:
        """Return the arrivals a second to plan for, or None if they are about as before."""
        rates = self.rates(len(waiting), now) + waiting / SOON
        if not (total := float(rates.sum())):
            return None
        rates = np.maximum(rates, RARE * total)
        old = np.pad(self._planned, (0, len(rates) - len(self._planned)))
        if not (np.abs(rates - old) > MIX * np.maximum(old, 0.05 * total)).any():
            return None
        self._planned = rates
        return rates

    def _age(self, now: float, classes: int) -> None:
        if len(self._count) < classes:
            new = (0, classes - len(self._count))
            self._count, self._last = np.pad(self._count, new), np.pad(self._last, new)
        if now > self._now:
            self._count *= math.exp((self._now - now) / WINDOW)
            self._now = now


class Durations:
    """How long tasks of each class take, as far as it is measured."""

    def __init__(self) -> None:
        self._least: dict[int, float] = {}
        self.tiny: frozenset[int] = frozenset()
        """Classes whose tasks are too short for their place to matter, wherever they ran."""

    def least(self, task_class: int) -> float:
        """Return the shortest mean duration of a class on a worker."""
        return self._least.get(task_class, FIRST)

    def update(self, learner: Learner) -> None:
        """Follow what a learner has measured."""
        count, time = learner.count, learner.time
        mean = time / np.where(count > 0.0, count, 1.0)
        least = np.where(count > 0.0, mean, np.inf).min(axis=1, initial=np.inf)
        self._least = {i: float(t) for i, t in enumerate(least) if t < np.inf}
        short = (mean.max(axis=1, initial=0.0) < TINY) & (count.sum(axis=1) >= ENOUGH)
        self.tiny = frozenset(np.flatnonzero(short).tolist())


class Memory:
    """Remembers how long tasks took, by class and group, across restarts of the scheduler."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self.known: dict[str, dict[str, tuple[float, float]]] = {}
        """Number of tasks and their seconds, by class and group."""
        if self.path is not None and self.path.exists():
            self.known = _read(self.path)

    def recall(self, learner: Learner, task_class: str, row: int, group: str, column: int) -> bool:
        """Tell a learner what is known of a class on a group; return whether something is."""
        count, time = self.known.get(task_class, {}).get(group, (0.0, 0.0))
        if count <= 0.0 or learner.count[row, column] > 0.0:
            return False
        learner.count[row, column], learner.time[row, column] = count, time
        return True

    def note(self, learner: Learner, classes: list[str], groups: Mapping[str, int]) -> None:
        """Take over what a learner has measured."""
        for row, name in enumerate(classes):
            for group, column in groups.items():
                if (count := float(learner.count[row, column])) > 0.0:
                    found = (round(count, 3), round(float(learner.time[row, column]), 9))
                    self.known.setdefault(name, {})[group] = found

    def text(self) -> str:
        """Return the content of the file."""
        table = {name: {g: list(v) for g, v in row.items()} for name, row in self.known.items()}
        return json.dumps({"gridwright": "durations", "classes": table}, indent=1, sort_keys=True)

    def write(self, text: str) -> None:
        """Replace the file, all at once."""
        assert self.path is not None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        beside.write_text(text, "utf-8")
        beside.replace(self.path)


def _read(path: Path) -> dict[str, dict[str, tuple[float, float]]]:
    try:
        table = json.loads(path.read_text("utf-8"))["classes"]
        return {
            str(name): {str(group): _pair(*pair) for group, pair in row.items()}
            for name, row in table.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is no memory of durations: {error}; remove it or name another"
        ) from None


def _pair(count: Any, time: Any) -> tuple[float, float]:
    count, time = float(count), float(time)
    if not (0.0 <= count < math.inf and 0.0 < time < math.inf):
        raise ValueError(f"{count} tasks in {time} s")
    return min(count, KEEP), time * min(count, KEEP) / count if count else time
