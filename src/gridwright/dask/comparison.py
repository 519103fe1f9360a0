"""A sample of what Dask would have done, judged by what was learnt."""

from __future__ import annotations

import logging
import math
from random import Random
from typing import Any

from ..grid.executors import dask_internals as internals
from ..model import InputError
from .placer import DaskPlacer

WARN = logging.getLogger("gridwright.dask").warning


def check_share(share: Any) -> float:
    """Return the share of decisions to compare; refuse what is none."""
    try:
        found = float(share)
    except (TypeError, ValueError):
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise InputError(f"compare is {share!r}; expected a share of the decisions, from 0 to 1")
    return found


class Comparison:
    """Asks for some tasks which worker Dask would choose at the moment when we send them.

    Dask would have sent earlier tasks elsewhere, too. So this compares single decisions, and says
    little about what a whole run would take.
    """

    def __init__(self, placer: DaskPlacer, share: float) -> None:
        self.placer, self.share = placer, share
        self.sampled = self.same = self.waits = self.judged = 0
        self.saved = 0.0
        """Seconds by which tasks are expected to end earlier than where Dask would send them."""
        self._random = Random(1)
        placer.hooks.watch = self.look

    def look(self, task: Any, worker: Any) -> None:
        """Compare the worker of a task, which is about to be sent, with Dask's choice."""
        if self._random.random() >= self.share:
            return
        try:
            self._compare(task, worker)
        except Exception as error:  # the scheduler must not notice
            self.placer.hooks.watch = None
            WARN("decisions are no longer compared: %s: %s", type(error).__name__, error)

    def _compare(self, task: Any, worker: Any) -> None:
        stock = self.placer.hooks.stock_choice(task)
        self.sampled += 1
        self.same += stock is worker
        self.waits += stock is None
        if stock is not None:
            saved = self._end(task, stock) - self._end(task, worker)
            if math.isfinite(saved):
                self.judged += 1
                self.saved += saved

    def _end(self, task: Any, worker: Any) -> float:
        """Return in how many seconds a task would end on a worker; nan if that is not known."""
        book, job = self.placer.book, self.placer.book.jobs[self.placer.numbers[task.key]]
        slots = self.placer.workers.get(worker, [])
        own = {job.machine: job.expected}  # the book counts it there already
        wait = min((max(book.work[j] - own.get(j, 0.0), 0.0) for j in slots), default=math.nan)
        time = self.placer.learner.duration(job.task_class, slots[0]) if slots else math.nan
        moving = internals.move_time(self.placer.scheduler, task, worker)
        return float(wait + moving + time) if math.isfinite(time) else math.nan

    def table(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "share": self.share,
            "sampled": self.sampled,
            "same": self.same,
            "dask_waits": self.waits,
            "judged": self.judged,
            "seconds_saved": round(self.saved, 6),
        }
