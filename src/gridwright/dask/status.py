"""What a plugin has learnt and done, as a table of plain values (JSON)."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import numpy as np

from .. import __version__
from ..grid.beliefs import Floats
from ..grid.executors import dask_internals as internals
from ..grid.executors.connection import PATIENCE, probe, security_of, unreachable
from ..model import InputError
from .placer import DaskPlacer

NAME = "gridwright_status"
"""The name under which a scheduler answers."""
WINDOW = 10
"""Seconds over which the number of placed tasks a second is measured."""
ABSENT = "the plugin is not registered"

Table = dict[str, Any]


class Placed:
    """Counts the tasks that were sent to workers.

    >>> placed = Placed(100.5)
    >>> for k in range(40):
    ...     placed.count(k % 4 > 0, 101.0 + k / 10)
    >>> placed.ours, placed.stock, placed.per_second(105.0)
    (30, 10, 10.0)
    """

    def __init__(self, start: float) -> None:
        self.start, self.ours, self.stock = start, 0, 0
        self._seconds: deque[list[int]] = deque(maxlen=WINDOW + 1)
        """Whole seconds, and how many tasks were placed in each."""

    def count(self, ours: bool, now: float) -> None:
        """Note that a task was sent to a worker, which we chose or Dask."""
        if ours:
            self.ours += 1
        else:
            self.stock += 1
        second = int(now)
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append([second, 0])
        self._seconds[-1][1] += 1

    def per_second(self, now: float) -> float:
        """Return how many tasks a second were placed in the last whole seconds."""
        first = max(int(now) - WINDOW, math.ceil(self.start))
        found = sum(count for second, count in self._seconds if first <= second < int(now))
        return found / max(int(now) - first, 1)


def status(scheduler: Any) -> Table:
    """Return what the plugin of a scheduler has learnt and done."""
    plugin = scheduler.plugins.get("gridwright")
    versions = {"version": __version__, "distributed": internals.version()}
    if plugin is None:
        return {"on": False, "why_off": ABSENT, "policy": None, **versions}
    placer, placed = plugin.placer, plugin.placed
    table = {
        "on": placer is not None,
        "why_off": None if placer is not None else plugin.why_off or "the scheduler has closed",
        "policy": str(plugin.policy),
        **versions,
        "since": datetime.fromtimestamp(plugin.since, UTC).isoformat(timespec="seconds"),
        "groups": plugin.groups if isinstance(plugin.groups, str) else "function",
        "memory": plugin.memory,
        "placed": {"gridwright": placed.ours, "dask": placed.stock},
        "placed_per_second": round(placed.per_second(monotonic()), 3),
    }
    compared = None if plugin.comparison is None else plugin.comparison.table()
    return {**table, "compared": compared, **({} if placer is None else _learnt(placer))}


def _learnt(placer: DaskPlacer) -> Table:
    book, learner = placer.book, placer.learner
    workers = {worker: slots for worker, slots in placer.workers.items() if slots}
    first = [slots[0] for slots in workers.values()]
    column = learner.host[first].astype(int) if first else np.zeros(0, int)
    count, time = learner.count[:, column], learner.time[:, column]
    tried = count > 0.0
    rate = np.divide(count, time, out=np.full(count.shape, np.nan), where=tried & (time > 0.0))
    plan = np.zeros(rate.shape)
    for k, slots in enumerate(workers.values()):
        plan[:, k] = book.plan[:, slots].mean(axis=1)
    running = [0] * len(placer.classes)
    for job in book.running:
        if job is not None:
            running[job.task_class] += 1
    now = monotonic()
    arrivals = placer.arrivals.rates(len(placer.classes), now)
    good = good_for(rate, plan)
    names = list(placer.classes)
    return {
        "plans": book.plans,
        "longest_call_ms": round(1000.0 * placer.longest, 3),
        "classes": [
            {
                "name": name,
                "waiting": len(book.waiting[row]),
                "running": running[row],
                "arrivals_per_second": _rounded(arrivals[row]),
            }
            for name, row in placer.classes.items()
        ],
        "workers": [
            {
                "name": str(worker.name),
                "address": str(worker.address),
                "threads": len(slots),
                "busy": sum(book.running[j] is not None for j in slots),
                "ahead": sum(len(book.ahead.queues[j]) for j in slots),
                "takes_tasks": worker in placer.scheduler.running,
                "good_for": names[good[k]] if good[k] >= 0 else None,
            }
            for k, (worker, slots) in enumerate(workers.items())
        ],
        "rates": _rows(rate),
        "assumed_rates": _rows(book.nominal[:, first]),
        "measured": _rows(count),
        "errors": _rows(errors(count)),
        "plan": _rows(plan),
    }


def errors(count: Floats) -> Floats:
    """Return the relative standard errors of rates, if times vary as much as exponential ones."""
    return np.divide(1.0, np.sqrt(count), out=np.full(count.shape, np.nan), where=count > 0.0)


def good_for(rate: Floats, plan: Floats) -> list[int]:
    """Return for each worker the class with the largest weight in the plan; −1 if none has run.

    Of classes with the same weight, choose the one at which the worker is closest to the fastest.

    >>> good_for(np.array([[4.0, 1.0], [2.0, 3.0]]), np.ones((2, 2)))
    [0, 1]
    >>> good_for(np.array([[np.nan, 2.0], [np.nan, 3.0]]), np.array([[1.0, 1.0], [1.0, 0.5]]))
    [-1, 0]
    """
    known = np.nan_to_num(rate)
    fastest = known.max(axis=1, initial=0.0)[:, None]
    relative = np.divide(known, fastest, out=np.zeros(known.shape), where=fastest > 0.0)
    weight = np.where(relative > 0.0, plan.round(6), -1.0)
    heaviest = weight == weight.max(axis=0, initial=-1.0)
    chosen = np.where(heaviest, relative, -1.0)
    if not len(chosen):
        return [-1] * plan.shape[1]
    return np.where((relative > 0.0).any(axis=0), chosen.argmax(axis=0), -1).tolist()


def _rows(matrix: Floats) -> list[list[float | None]]:
    """Return the rows of a matrix with six digits; None in place of what is not finite.

    >>> _rows(np.array([[1234.5678, np.nan], [0.0, 1 / 3000]]))
    [[1234.57, None], [0.0, 0.000333333]]
    """
    size = np.abs(np.where(np.isfinite(matrix) & (matrix != 0.0), matrix, 1.0))
    unit = 10.0 ** (5.0 - np.floor(np.log10(size)))
    rounded = np.where(np.isfinite(matrix), np.round(matrix * unit) / unit, np.nan)
    return [[None if each != each else each for each in row] for row in rounded.tolist()]


def _rounded(value: float) -> float | None:
    """Return a number with six digits, or None if it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def ask(address: str, security: Any = None) -> Table:
    """Return the status of the scheduler at an address, ``tcp://HOST:PORT``."""
    asked = _ask(address, security_of(address, security))
    with ThreadPoolExecutor(1) as thread:  # the caller may run an event loop
        return thread.submit(asyncio.run, asked).result()


async def _ask(address: str, security: Any) -> Table:
    try:
        await probe(address)
        scheduler = internals.open_rpc(address, security, PATIENCE)
        try:
            async with asyncio.timeout(PATIENCE):
                found: Table | None = await getattr(scheduler, NAME)()
        finally:
            await scheduler.close_rpc()
    except (OSError, ValueError, TypeError) as error:
        raise unreachable(address, error) from None
    if found is None:
        raise InputError(
            f"the scheduler at {address} places tasks without Gridwright; in Python, "
            "client.register_plugin(gridwright.dask.Placement()) changes that, or start it with "
            "dask scheduler --preload gridwright.dask"
        )
    return found
