"""Batch policies on a grid: jobs wait until the policy assigns many of them together.

The rules are those of the simulator (``simulation/batch_loop.py``) in plain Python. A test drives
both through the same arrivals. Machines may also come and go here, and execution times are learnt.
"""

from __future__ import annotations

import logging
import math
from bisect import insort
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiler.link import entry
from ..model import ExecutionPmf, Exponential, GridPmf, InputError, System
from ..model.batch_tables import Pmfs, Tables, table_of, true_pmfs
from ..model.distribution import AnyDistribution
from ..model.pmf import MOST_BINS
from ..model.record import Count, OneOrList, Record
from ..policies import BATCH, Policy
from ..policies.view import MOST_TOP, WAITING, BatchView, batch_view, records
from .job import Decision, Job, Stage

if TYPE_CHECKING:
    from .state import GridState

LOGGER = logging.getLogger(__name__)
ENOUGH = 20
"""Jobs of a class on a machine whose times replace what was given."""
KEPT = 500
"""How many of the last measured times are kept of each class and machine."""
FINE = 20
"""By default, the width of a bin is the mean best time divided by this."""
GRAIN = 1e-9
"""A time may pass a bin by this part of it, which is rounding."""
PLACES = 64
"""How many waiting jobs there is room for at first."""

Floats = NDArray[np.float64]


class BatchOptions(Record):
    """How a grid runs a batch policy, in the words of a system file.

    ``pmf`` says how long jobs take: ``times``, a distribution for every class and machine in
    seconds; or ``measured``, times by the names of class and machine. Otherwise they are the
    ``execution`` distributions with mean 1 / rate. ``queue_limit`` is the most jobs at a machine,
    including the running one. ``discard`` says where jobs are discarded when their deadline has
    passed: ``never``, while they wait (``batch``), or also in the queues of machines (``both``).

    >>> BatchOptions(pmf={"width": 0.1}).queue_limit
    4
    """

    pmf: ExecutionPmf | None = None
    execution: OneOrList[AnyDistribution] = Exponential()
    queue_limit: Count = 4
    discard: Literal["never", "batch", "both"] = "both"


class ExecutionTimes:
    """What a batch policy believes of the execution times: first as given, then as measured.

    ``hosts`` names the machine of each slot; it is the list of the executor, which may grow.
    """

    def __init__(
        self, options: BatchOptions, system: System, hosts: Sequence[str], *, learns: bool = True
    ) -> None:
        self.options, self.learns = options, learns
        self.classes = list(system.classes)
        self.machines = list(system.groups)
        self.given: Pmfs = true_pmfs(system, np.random.default_rng(0))
        """By class and machine, with its whole CPU."""
        every = (pmf for row in self.given for pmf in row if pmf is not None)
        self.width = next(every).width
        self.measured: dict[tuple[int, int], deque[float]] = {}
        """Seconds with the machine's whole CPU, by class and machine."""
        self.slots = [self.machines.index(host) for host in hosts]
        """The machine of each slot."""
        self._made: dict[tuple[int, int], GridPmf] = {}
        """Pmfs that were made of measured times."""
        self._tables: Tables | None = None
        self._shares: list[float] = []

    def add_class(self, name: str, host: str = "") -> None:
        """Add a class that only one machine can run; refuse one whose times are unknown."""
        base = name.removesuffix(f"@{host}") if host else name
        if not host or base not in self.classes:
            known = ", ".join(each for each in self.classes if "@" not in each)
            raise InputError(
                f"it is not known how long jobs of class {base!r} take; classes are {known}"
            )
        row = self.given[self.classes.index(base)]
        where = enumerate(self.machines)
        self.given.append([row[c] if machine == host else None for c, machine in where])
        self.classes.append(name)
        self._tables = None

    def add_machine(self, host: str) -> None:
        """Add a slot; of a machine that is new, assume the mean of the others for each class."""
        if host not in self.machines:
            self.machines.append(host)
            for row in self.given:
                means = [pmf.mean for pmf in row if pmf is not None]
                mean = float(np.mean(means)) if means else math.inf
                row.append(GridPmf.of(Exponential(), mean, self.width) if means else None)
        self.slots.append(self.machines.index(host))
        self._tables = None

    def ran(self, task_class: int, slot: int, seconds: float) -> None:
        """Note how long a job would have taken with the machine's whole CPU."""
        where = (task_class, self.slots[slot])
        if not self.learns or not math.isfinite(seconds):
            return
        times = self.measured.setdefault(where, deque(maxlen=KEPT))
        times.append(max(seconds, 0.0))
        if len(times) >= ENOUGH:
            self._made.pop(where, None)
            self._tables = None

    def tables(self, shares: Floats) -> Tables:
        """Return what is believed, given the CPU availability of each slot."""
        if self._tables is None or self._shares != shares.tolist():
            self._fit_width()
            pmfs = [
                [self._pmf(i, slot, float(share)) for slot, share in enumerate(shares)]
                for i in range(len(self.classes))
            ]
            self._tables, self._shares = table_of(pmfs), shares.tolist()
        return self._tables

    def rates(self) -> Floats:
        """Return the rates that were given: 1 / mean, 0 where a slot cannot run a class."""
        means = [[None if p is None else p.mean for p in row] for row in self.given]
        of_machines = np.array([[0.0 if m is None else 1.0 / m for m in row] for row in means])
        return np.ascontiguousarray(of_machines[:, self.slots])

    def _pmf(self, task_class: int, slot: int, share: float) -> GridPmf | None:
        pmf = self._of_machine(task_class, self.slots[slot])
        return pmf if pmf is None or share == 1.0 else pmf.scale(1.0 / share).gather(MOST_BINS)

    def _of_machine(self, task_class: int, machine: int) -> GridPmf | None:
        where = (task_class, machine)
        if self.given[task_class][machine] is None or not self._is_measured(*where):
            return self.given[task_class][machine]
        if where not in self._made:
            times = np.minimum(self.measured[where], (MOST_BINS - 1) * self.width)
            self._made[where] = GridPmf.from_samples(times, self.width)
        return self._made[where]

    def _is_measured(self, task_class: int, machine: int) -> bool:
        return len(self.measured.get((task_class, machine), ())) >= ENOUGH

    def _fit_width(self) -> None:
        """Choose another width if times are measured that are much longer or shorter."""
        if self.options.pmf is not None and self.options.pmf.width is not None:
            return
        best = []
        for i, row in enumerate(self.given):
            means = [
                float(np.mean(self.measured[i, c])) if self._is_measured(i, c) else pmf.mean
                for c, pmf in enumerate(row)
                if pmf is not None
            ]
            best += [min(means)] if means else []
        width = float(np.mean(best)) / FINE
        if width > 0.0 and not 0.5 < width / self.width < 2.0:
            self.given = [
                [None if pmf is None else _rebinned(pmf, width) for pmf in row]
                for row in self.given
            ]
            self.width = width
            self._made.clear()


def _rebinned(pmf: GridPmf, width: float) -> GridPmf:
    """Return a pmf with another width of its bins."""
    values = np.minimum(pmf.values, (MOST_BINS - 1) * width)
    return GridPmf.from_histogram(values, pmf.mass, width)


def times_of(
    policy: Policy,
    given: BatchOptions | Mapping[str, Any] | None,
    classes: Sequence[str],
    rates: Any,
    hosts: Sequence[str],
    *,
    learns: bool = True,
) -> ExecutionTimes | None:
    """Return what a batch policy is to believe; None for other policies.

    ``rates`` [class, machine] are those that the user gave, if any; ``hosts`` names the machine of
    each slot.
    """
    if policy.kind is not BATCH:
        if given is not None:
            raise InputError(f"batch is for batch policies; {policy.name} is a {policy.kind} one")
        return None
    if not isinstance(given, BatchOptions | Mapping | None):
        raise InputError(f"batch is {given!r}; expected a table")
    options = given if isinstance(given, BatchOptions) else BatchOptions(**(given or {}))
    pmf = options.pmf
    if pmf is not None and pmf.samples is not None:
        raise InputError("[pmf] samples is for simulations; give a grid times or measured")
    is_told = pmf is not None and bool(pmf.times or pmf.measured)
    if not classes or (rates is None and not is_told):
        raise InputError(
            f"{policy.name} is a batch policy, which must know how long jobs take; "
            "give classes, and rates or batch={'pmf': …}"
        )
    machines = list(dict.fromkeys(hosts))
    if not machines:
        raise InputError(
            f"{policy.name} is a batch policy, which must know its machines; name some"
        )
    system = System(
        arrivals=np.ones(len(classes)),
        rates=np.ones((len(classes), len(machines))) if rates is None else rates,
        classes=list(classes),
        groups=machines,
        execution=options.execution,
        pmf=pmf,
    )
    return ExecutionTimes(options, system, hosts, learns=learns)


class _Row(NamedTuple):
    """What a policy sees of a waiting job; times are since the grid's start."""

    since: float
    number: int
    job: Job
    task_class: int
    arrival: float
    deadline: float
    priority: int


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
        self.idle: dict[int, None] = {}
        """No machine: none is given a job that the policy has given to another."""
        self.rows: list[_Row] = []
        """The jobs that wait, in the order of ``since``; some may have left."""
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
        if not math.isnan(job.assigned):  # it has waited before
            self.rows = [each for each in self.rows if each.job is not job]
            self.watch(job)
        start = self.book.start
        times = (job.submitted - start, job.deadline - start)
        about = (job.since, job.number, job, job.task_class, *times, job.options.priority)
        insort(self.rows, _Row(*about))

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
        waiting = Stage.waiting
        self.rows = rows = [each for each in self.rows if each.job.stage is waiting]
        levels = {each.priority for each in rows}
        for level in sorted(levels, reverse=True):
            if not any(self._has_room(machine) for machine in range(len(book.running))):
                return
            several = len(levels) > 1
            self._map([each for each in rows if each.priority == level] if several else rows)

    def _has_room(self, machine: int) -> bool:
        return self.book.can_take(machine) and (self.limit == 0 or self._held(machine) < self.limit)

    def _held(self, machine: int) -> int:
        """Return how many jobs a machine holds."""
        return len(self.book.own[machine]) + (self.book.running[machine] is not None)

    def _map(self, rows: Sequence[_Row]) -> None:
        book = self.book
        view = self._show(rows)
        asked = (self.waiting[: len(rows)], view, *book.arguments)
        if len(rows) > book.many:
            self._compile(asked)
        book.asked += 1
        count = int(book.decide(*asked))
        left: list[Job | None] = [each.job for each in rows]
        for n in range(count if count <= len(view.chosen) else 0):
            place, machine = int(view.chosen[n].place), int(view.chosen[n].machine)
            job = left[place] if 0 <= place < len(left) else None
            if job is None or not 0 <= machine < len(book.running):
                book.refusals += 1
                continue
            able = [j for j in np.flatnonzero(view.bins[job.task_class]) if self._has_room(int(j))]
            candidates = tuple(map(int, able))
            book.decisions.append(
                Decision(book.now, job.task_class, candidates, machine, book.plans)
            )
            if machine in candidates:
                left[place] = None
                book.give_job(job, machine)
            else:
                book.refusals += 1

    def _compile(self, asked: tuple[Any, ...]) -> None:
        """Compile the policy, once; one that cannot be compiled stays in plain Python."""
        book = self.book
        book.many = math.inf
        try:
            book.decide = entry(book.policy.decide, *asked)
        except Exception as error:
            LOGGER.info("%s runs in plain Python: %s", book.policy.name, error)

    # what the policy sees

    def _show(self, rows: Sequence[_Row]) -> BatchView:
        """Show the policy what machines hold, and which jobs of each class wait."""
        book, view = self.book, self._view(len(rows))
        able = book.machines["up"] & ~book.closed
        tables = self.times.tables(book.availability)
        view.mean[:] = np.where(able, tables.mean, np.inf)
        view.bins[:] = np.where(able, tables.bins, 0)
        for machine in range(len(book.running)):
            self._show_machine(view, tables, machine, is_able=bool(able[machine]))
        shown = self.waiting[: len(rows)]
        *_, classes, arrivals, deadlines, _ = zip(*rows, strict=True)
        shown["task_class"], shown["arrival"], shown["deadline"] = classes, arrivals, deadlines
        shown["machine"] = shown["following"] = view.classes["first"] = -1
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


def _begun(job: Job) -> float:
    """Return when a job has begun, as far as is known."""
    if not math.isnan(job.started):
        return job.started
    return job.sent if math.isnan(job.free) else max(job.sent, job.free)
