"""Batch policies on a grid: jobs wait until the policy assigns many of them together.

The rules are those of the simulator (``simulation/batch_loop.py``) in plain Python. A test drives
both through the same arrivals. Machines may also come and go here, and execution times are learnt.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compiler.link import entry
from ..model import InputError
from ..model.batch_tables import Tables
from ..policies import Policy
from ..policies.view import MOST_TOP, WAITING, BatchView, batch_view, records
from .execution_times import ExecutionTimes
from .job import Decision, Job, Stage

if TYPE_CHECKING:
    from .state import GridState

LOGGER = logging.getLogger(__name__)
GRAIN = 1e-9
"""A time may pass a bin by this part of it, which is rounding."""
PLACES = 64
"""How many waiting jobs there is room for at first."""


class _Row(NamedTuple):
    """A job that waits, and its place in the order."""

    since: float
    number: int
    job: Job


class Batch:
    """Jobs wait centrally; at a mapping event the policy assigns them to the machines' queues."""

    def __init__(self, book: GridState) -> None:
        if not isinstance(book.times, ExecutionTimes):
            raise InputError(
                f"{book.policy.name} is a batch policy, which must know how long jobs take"
            )
        self.book, self.times = book, book.times
        options, immediate = book.times.options, bool(book.policy.options["immediate"])
        self.limit = 0 if immediate else options.queue_limit
        self.forgets = options.discard != "never" and not immediate
        """Whether jobs are discarded that wait when their deadline passes."""
        self.skips = options.discard == "both" and not immediate
        """Whether a machine also discards such jobs of its queue, when it comes to them."""
        self.deadlines: list[tuple[float, int]] = []
        """A heap of deadlines that have not passed, and the numbers of their jobs."""
        self.is_due = False
        """Whether something has happened since the last mapping event."""
        self.is_compiling = False
        """Whether the policy is being compiled, or is; until it is, a large batch waits."""
        self.idle: dict[int, None] = {}
        """No machine: none is given a job that the policy has given to another."""
        self.rows: list[_Row] = []
        """The jobs that wait, in the order of ``since``; some may have left."""
        self.known = records(PLACES, WAITING)
        """What a policy is shown of these jobs, in places of the same number."""
        self.view: BatchView | None = None
        self.waiting = records(PLACES, WAITING)

    def placed(self, task_class: int) -> None:
        """Let a mapping event follow: jobs that come together are mapped together."""
        self.is_due = True

    def freed(self, machine: int) -> None:
        """Start the next job of a machine's queue that is in time, and map."""
        book = self.book
        if not book.can_take(machine):
            return
        own = book.own[machine]
        while own and book.running[machine] is None:
            if self.skips and own.first().deadline <= book.now:
                book.discard(own.first())
            else:
                book.start_own(machine)
        self.map()

    def retried(self, task_class: int, machine: int) -> None:
        """Start the next job of a machine whose job was stopped, and map."""
        self.freed(machine)

    def go_on(self) -> None:
        """Let a mapping event follow."""
        self.is_due = True

    def gone(self, machine: int) -> None:
        """Do nothing: a mapping event follows."""

    def returned(self, task_class: int) -> None:
        """Let a mapping event follow: jobs of a machine that is gone wait again."""
        self.is_due = True

    def recalled(self) -> None:
        """Let a mapping event follow."""
        self.is_due = True

    def foresee(self, machine: int) -> bool:
        """Send no job ahead: a job in a queue may still be discarded."""
        return False

    def settle(self) -> None:
        """Map if something has happened."""
        if self.is_due:
            self.map()

    def entered(self, job: Job) -> None:
        """Note a job that waits, in the order of ``since``."""
        rows, start = self.rows, self.book.start
        if not math.isnan(job.assigned):  # it has waited before
            self._keep([each.job is not job for each in rows])
            self.watch(job)
        row = _Row(job.since, job.number, job)
        place, count = bisect(rows, row), len(rows)
        rows.insert(place, row)
        if len(self.known) == count:
            self.known = np.concatenate([self.known, records(count, WAITING)])
        self.known[place + 1 : count + 1] = self.known[place:count]
        self.known[place] = (job.task_class, job.submitted - start, job.deadline - start, -1, -1)

    def _keep(self, which: Sequence[bool]) -> None:
        """Keep these of the jobs that wait."""
        self.known[: sum(which)] = self.known[: len(which)][np.array(which, bool)]
        self.rows[:] = compress(self.rows, which)

    def watch(self, job: Job) -> None:
        """Keep the deadline of a job, if it may be discarded."""
        if self.forgets and job.deadline < math.inf:
            heappush(self.deadlines, (job.deadline, job.number))

    def next_deadline(self) -> float:
        """Return the next deadline of a job that has not ended; infinite if there is none."""
        while self.deadlines:
            job = self.book.jobs.get(self.deadlines[0][1])
            if job is not None and not job.stage.is_final:
                return self.deadlines[0][0]
            heappop(self.deadlines)
        return math.inf

    def expire(self) -> None:
        """Discard the jobs that wait, for a machine or for other jobs, and are too late."""
        while self.next_deadline() <= self.book.now:
            job = self.book.jobs[heappop(self.deadlines)[1]]
            if job.stage in (Stage.blocked, Stage.waiting):
                self.book.discard(job)

    def map(self) -> None:
        """Ask the policy which waiting jobs go where, those of the highest priority first."""
        book, self.is_due = self.book, False
        if self.forgets:
            self.expire()
        rows, levels = self.rows, {level for line in book.waiting for level in line.levels}
        if len(rows) > sum(map(len, book.waiting)):
            self._keep([each.job.stage is Stage.waiting for each in rows])
        if len(rows) > book.many and not self._is_compiled():
            self.is_due = True
            return
        for level in sorted(levels, reverse=True):
            if not any(self._has_room(machine) for machine in range(len(book.running))):
                return
            places: Sequence[int] = range(len(rows))
            if len(levels) > 1:
                places = [k for k in places if rows[k].job.options.priority == level]
            self._map(places)

    def _has_room(self, machine: int) -> bool:
        return self.book.can_take(machine) and (self.limit == 0 or self._held(machine) < self.limit)

    def _held(self, machine: int) -> int:
        """Return how many jobs a machine holds."""
        return len(self.book.own[machine]) + (self.book.running[machine] is not None)

    def _map(self, places: Sequence[int]) -> None:
        """Ask the policy where the jobs of these places go, and give them to the machines."""
        book = self.book
        waiting, view, *rest = self._asked(places)
        book.asked += 1
        count = int(book.decide(waiting, view, *rest))
        left = [True] * len(self.rows)
        for n in range(count if count <= len(view.chosen) else 0):
            chosen, machine = int(view.chosen[n].place), int(view.chosen[n].machine)
            place = places[chosen] if 0 <= chosen < len(places) else -1
            if place < 0 or not left[place] or not 0 <= machine < len(book.running):
                book.refusals += 1
                continue
            job = self.rows[place].job
            able = [j for j in np.flatnonzero(view.bins[job.task_class]) if self._has_room(int(j))]
            candidates = tuple(map(int, able))
            book.decisions.append(
                Decision(book.now, job.task_class, candidates, machine, book.plans)
            )
            if machine in candidates:
                left[place] = False
                book.give_job(job, machine)
            else:
                book.refusals += 1
        self._keep(left)

    def _is_compiled(self) -> bool:
        """Tell whether the policy is compiled; begin that at the first call."""
        if not self.is_compiling:
            self.is_compiling = True
            asked = self._asked(range(len(self.rows)))
            self.book.beside(partial(_compiled, self.book.policy, asked), self._take)
        return self.book.many == math.inf

    def _take(self, decide: Callable[..., Any]) -> None:
        self.book.decide, self.book.many = decide, math.inf

    # what the policy sees

    def _asked(self, places: Sequence[int]) -> tuple[Any, ...]:
        view = self._show(places)
        return self.waiting[: len(places)], view, *self.book.arguments

    def _show(self, places: Sequence[int]) -> BatchView:
        """Show the policy what machines hold, and which jobs of each class wait."""
        book, view = self.book, self._view(len(places))
        able = book.machines["up"] & ~book.closed
        tables = self.times.tables(book.availability)
        view.mean[:] = np.where(able, tables.mean, np.inf)
        view.bins[:] = np.where(able, tables.bins, 0)
        for machine in range(len(book.running)):
            self._show_machine(view, tables, machine, is_able=bool(able[machine]))
        shown = self.waiting[: len(places)]
        known = self.known[: len(self.rows)]
        shown[:] = known if len(places) == len(known) else known[np.array(places)]
        view.classes["first"] = -1
        order = np.argsort(shown["task_class"], kind="stable")
        ordered = shown["task_class"][order]
        is_same = ordered[1:] == ordered[:-1]
        shown["following"][order[:-1][is_same]] = order[1:][is_same]
        is_first = np.concatenate([[True], ~is_same])
        view.classes["first"][ordered[is_first]] = order[is_first]
        return view._replace(now=float(book.now - book.start), rng=book.rng)

    def _show_machine(
        self, view: BatchView, tables: Tables, machine: int, *, is_able: bool
    ) -> None:
        """Show what a machine holds, and when it is expected to have done it."""
        book, shown = self.book, view.machines[machine]
        now = book.now - book.start
        queue, running = list(book.own[machine]), book.running[machine]
        held = queue if running is None else [running, *queue]
        shown.queued = len(held)
        shown.free = self.limit - len(held) if self.limit > 0 else len(self.waiting)
        if not is_able:
            shown.free = 0
        shown.serving, ready = -1, now
        if running is not None:
            i, begun = running.task_class, _begun(running) - book.start
            shown.serving, shown.begun = i, begun
            past = max(0, math.floor((now - begun) / tables.width + GRAIN))
            if past < tables.bins[i, machine] and tables.after[i, machine, past] > 0.0:
                ready = begun + tables.after[i, machine, past]
            work = 0.0
            for job in queue:
                mean = tables.mean[job.task_class, machine]
                work += mean if mean < math.inf else 0.0
            ready += work
        shown.ready = ready
        if self.limit > 0:
            for place, job in enumerate(held):
                view.queue[machine, place].task_class = job.task_class
                view.queue[machine, place].deadline = job.deadline - book.start

    def _view(self, places: int) -> BatchView:
        """Return the view, with room for what has to be shown."""
        book, tables = self.book, self.times.tables(self.book.availability)
        longest = max((self._held(j) for j in range(len(book.running))), default=0)
        most = max(self.limit, longest) + MOST_TOP
        bins = (most + 1) * int(tables.bins.max(initial=1)) + 2
        view = self.view
        if len(self.waiting) < places:
            self.waiting = records(2 * places, WAITING)
        fits = (
            view is not None
            and view.mean.shape == tables.mean.shape
            and len(view.chosen) == len(self.waiting)
            and view.queue.shape[1] >= most
            and view.done.shape[1] >= bins
        )
        if view is None or not fits:
            fresh = tables._replace(mean=tables.mean.copy(), bins=tables.bins.copy())
            old, size = view, len(self.waiting)
            view = batch_view(fresh, limit=most, bins=bins, places=size)
            if old is not None:  # what the policy has remembered of classes and machines
                rows, columns = old.memory.shape
                view.memory[:rows, :columns] = old.memory
                view = view._replace(tally=old.tally)
        self.view = view._replace(
            mass=tables.mass, cdf=tables.cdf, after=tables.after, width=tables.width
        )
        return self.view


def _compiled(policy: Policy, asked: Sequence[Any]) -> Callable[..., Any]:
    """Return a compiled policy; one that cannot be compiled stays in plain Python."""
    try:
        return entry(policy.decide, *asked)
    except Exception as error:
        LOGGER.info("%s runs in plain Python: %s", policy.name, error)
        return policy.decide


def _begun(job: Job) -> float:
    """Return when a job has begun, as far as is known."""
    if not math.isnan(job.started):
        return job.started
    return job.sent if math.isnan(job.free) else max(job.sent, job.free)
