"""How long jobs take, as a batch policy on a grid believes: first as given, then as measured."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..model import ExecutionPmf, Exponential, GridPmf, InputError, System
from ..model.batch_tables import Pmfs, Tables, table_of, true_pmfs
from ..model.distribution import AnyDistribution
from ..model.pmf import MOST_BINS
from ..model.record import Count, OneOrList, Record
from ..policies import BATCH, Policy

ENOUGH = 20
"""Jobs of a class on a machine whose times replace what was given."""
KEPT = 500
"""How many of the last measured times are kept of each class and machine."""
FINE = 20
"""By default, the width of a bin is the mean best time divided by this."""

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
