"""``allocate``: a system's capacity, and which machine should serve which class."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..catalogue import find_or_read
from ..model import InputError, System, by_application, did_you_mean
from ..statistics import EDGE
from ..tabular import Tabular
from .highs import solve_interior
from .lost_work import LONG, keeps_lost_work, lost_work_of, never_done, percent, without_end
from .planner import MOST_CLASSES, fill, solve, spread, suited
from .price import set_prices
from .simplex import Floats, Integers
from .workspace import Situation, Workspace, make_workspace

FEW = 12
"""Machines that a message names."""
MOST_KINDS = 8
"""Kinds of machines up to which the gain of one more is computed for each."""
MOST_CELLS = 10_000
"""Pairs of a class and a kind of machine up to which it is computed for more than one kind."""


SIMULATE = "Simulate to find out whether a policy can keep up."


class Verdict(NamedTuple):
    """Whether any policy can stabilise a system, how far it is from the edge, and why."""

    stabilisable: bool | None
    """None: the LP leaves out the work that failing machines lose, so that it cannot tell."""
    margin: float
    """By how much all arrivals could grow (negative: must shrink) before the edge is reached.
    Without lost work if that is not known; −1 if no arrivals are few enough."""
    words: str


class Change(NamedTuple):
    """The capacity before and after, and the pairs (class, machine) that came and went."""

    before: float
    after: float
    gained: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...] = ()
    """The classes that no machine can run any more: ``after`` is the capacity of the others."""


@dataclass(frozen=True, eq=False)
class Allocation(Tabular):
    """An optimal solution of a system's allocation LP, and what it says about the system."""

    system: System
    method: str
    down: tuple[int, ...]
    """The machines taken to be down, by index."""
    capacity: float
    """λ*: the factor by which all arrivals could grow before no policy can keep up."""
    shares: Floats
    """δ* [class, machine]: the share of each machine's time for each class."""
    class_prices: Floats
    """y: one more task of a class per time unit costs λ* × y of capacity; Σ y × arrivals = 1."""
    efficiencies: Floats
    """e [class, machine]: the share of a machine's worth that a class earns there, at most 1."""
    loads: Floats
    """[class]: the load at the level where the class is planned; ``load`` on the bottleneck."""
    left_out: tuple[str, ...]
    """Classes that no machine now up can run."""
    of_chains: bool = False
    """Whether the classes are applications of chains, which keep their work if they are lost."""

    @property
    def load(self) -> float:
        """1/λ*: the load of the busiest machine under the best allocation."""
        return 1 / self.capacity if self.capacity > 0 else np.inf

    @cached_property
    def machine_prices(self) -> Floats:
        """z: what a little more of each machine would add to the capacity; 0 off the bottleneck."""
        worth = (self.class_prices[:, None] * self.system.nominal).max(axis=0)
        return np.where(worth > 1e-9 * worth.max(initial=0), worth, 0)

    @cached_property
    def routing(self) -> Floats:
        """π* [class, machine]: the share of each class's tasks that each machine serves."""
        work = self.shares * self.system.nominal
        served = work.sum(axis=1, keepdims=True)
        return np.divide(work, served, out=np.zeros_like(work), where=served > 0)

    @property
    def bottleneck_classes(self) -> tuple[str, ...]:
        """The classes that limit the capacity."""
        limits = self.class_prices * self.system.arrival_rates > 1e-9
        return tuple(np.array(self.system.classes)[limits].tolist())

    @property
    def bottleneck_machines(self) -> tuple[str, ...]:
        """The machines of which more would raise the capacity."""
        limits = (self.machine_prices > 0) & self.up
        return tuple(np.array(self.system.machines)[limits].tolist())

    @property
    def up(self) -> NDArray[np.bool_]:
        """Which machines are not down."""
        up = np.ones(len(self.system.machines), dtype=bool)
        up[list(self.down)] = False
        return up

    @property
    def machines_per_class(self) -> tuple[int, ...]:
        """How many machines may serve each class."""
        return tuple(np.count_nonzero(self.shares, axis=1).tolist())

    def information(self, at_most: int | None = None) -> float:
        """N_s, the mean number of machines asked per arrival: LPAS, or LPAS-2/k with at_most=2."""
        asked = np.minimum(self.machines_per_class, at_most or np.inf)
        return float(np.average(asked, weights=self.system.arrival_rates))

    def discount(self, at_most: int | None = None) -> float:
        """Return the share of state information saved against asking every machine."""
        return 1 - self.information(at_most) / len(self.system.machines)

    @cached_property
    def long_run_capacity(self) -> float:
        """λ* with every machine there only for the share of time that it is up.

        The work that failing machines lose counts, unless ``verdict`` says that it is left out.
        """
        if self.system.failures is None:
            return self.capacity
        now = long_run_situation(self.system, self.down)
        return solve(now, make_workspace(now))

    def gain(self, machine: int) -> float:
        """Return by what share the capacity would rise with one more machine like this one.

        It is up all the time. A price is the same for a little of a machine, where the prices are
        the only ones; a whole machine adds less, as others become the bottleneck. It is NaN if a
        class that is left out could run there, because the capacity would be one of other classes.
        """
        now = situation(self.system, self.down)
        lacking = [self.system.classes.index(name) for name in self.left_out]
        if (now.rates[lacking, machine] > 0).any():
            return float("nan")
        more = np.append(np.arange(len(now.group)), machine)
        now = now._replace(
            rates=now.rates[:, more],
            availability=np.append(now.availability, self.system.mean_availability[machine]),
            group=now.group[more],
        )
        return solve(now, make_workspace(now)) / self.capacity - 1

    @property
    def verdict(self) -> Verdict:
        """Whether any policy can stabilise the system, and how far it is from the edge.

        >>> from gridwright import System, allocate
        >>> allocate(System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])).verdict.words
        'A good policy can keep up: load 75.0 %. Arrivals could grow by 33.3 %; beyond that...'
        """
        capacity = self.long_run_capacity
        words = [_stranded(self.left_out)] if self.left_out else []
        if self.system.failures is not None:
            words.append(_failures(self))
        margin, stabilisable = capacity - 1, False if self.left_out else None
        left_out = lost_work_of(self.system, self.down).left_out
        keeps = keeps_lost_work(self.system)
        if self.of_chains and (self.system.up_fraction < 1).any():
            left_out, keeps = "the system has chains", True
        simulate = f" {SIMULATE}" * (stabilisable is None)
        if endless := never_done(self.system, self.down):
            margin, stabilisable = -1.0, False
            words.append(f"No policy can keep up: {without_end(endless)}.")
        elif left_out and keeps and margin > EDGE:
            words.append(
                f"The load is more than {percent(1 / capacity)}: tasks that are lost keep their "
                f"work, which the LP leaves out, because {left_out}.{simulate} "
                f"If arrivals grow by {100 * margin:.1f} %, none can."
            )
        elif left_out and not keeps and capacity > 0:
            words.append(
                f"The load is {percent(1 / capacity)} without lost work, which the LP leaves out, "
                f"because {left_out}.{simulate}"
            )
        else:
            stabilisable = margin > EDGE and not self.left_out
            words += [*self._words_on_lost_work(), _edge(capacity)]
        return Verdict(stabilisable, margin, " ".join(words))

    def _words_on_lost_work(self) -> list[str]:
        """Say what the load would be without the work that is lost, if it counts."""
        lost, now = lost_work_of(self.system, self.down), situation(self.system, self.down)
        if not lost.counted:
            return []
        now = now._replace(availability=now.availability * self.system.up_fraction)
        if (capacity := solve(now, make_workspace(now))) <= 0:
            return []
        moved = " for policies that do not interrupt tasks" * lost.depends
        return [
            f"Without lost work the load would be {percent(1 / capacity)}. "
            f"What follows counts lost work{moved}."
        ]

    def change(self, after: Allocation) -> Change:
        """Compare with another allocation of the same system.

        >>> from gridwright import System, allocate
        >>> system = System(arrivals=[1, 1.5], rates=[[9, 5], [2, 1]])
        >>> allocate(system).change(allocate(system, down=[2]))
        Change(before=1.76..., after=1.16..., gained=(('1', '1'),),
               lost=(('1', '2'), ('2', '2')), left_out=())
        """

        def pairs(which: NDArray[np.bool_]) -> tuple[tuple[str, str], ...]:
            classes, machines = self.system.classes, self.system.machines
            return tuple((classes[i], machines[j]) for i, j in np.argwhere(which))

        used, uses = self.shares > 0, after.shares > 0
        gained, lost = pairs(uses & ~used), pairs(used & ~uses)
        left_out = tuple(name for name in after.left_out if name not in self.left_out)
        return Change(self.capacity, after.capacity, gained, lost, left_out)

    @property
    def kinds(self) -> list[int]:
        """The first machine of each kind; of many kinds, those with the highest prices.

        A gain takes a solution of its own, so a large system has that of one kind only.
        """
        if self.capacity <= 0:
            return []
        groups = groups_of(self.system.nominal).tolist()
        firsts = [groups.index(g) for g in range(max(groups) + 1)]
        if len(firsts) <= MOST_KINDS:
            return firsts
        dearest = sorted(firsts, key=lambda j: -self.machine_prices[j])
        large = len(self.system.classes) * len(firsts) > MOST_CELLS
        return sorted(dearest[: 1 if large else MOST_KINDS])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each class: its arrivals, its price, and its share of each machine."""
        system = self.system
        return [
            {"class": name, "arrivals": float(rate), "price": float(price)}
            | {f"machine {j}": float(x) for j, x in zip(system.machines, shares, strict=True)}
            for name, rate, price, shares in zip(
                system.classes, system.arrival_rates, self.class_prices, self.shares, strict=True
            )
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the allocation as ``--json`` prints it."""
        machines, verdict = self.system.machines, self.verdict
        return {
            "system": self.system.name,
            "capacity": self.capacity,
            "load": self.load,
            "method": self.method,
            "allocation": self.shares.tolist(),
            "routing": self.routing.tolist(),
            "classes": list(self.system.classes),
            "machines": list(machines),
            "down": [machines[j] for j in self.down],
            "left_out": list(self.left_out),
            "long_run_capacity": self.long_run_capacity,
            "stabilisable": verdict.stabilisable,
            "verdict": verdict.words,
            "class_prices": self.class_prices.tolist(),
            "machine_prices": self.machine_prices.tolist(),
            "efficiencies": self.efficiencies.tolist(),
            "loads": self.loads.tolist(),
            "one_more_adds": {machines[j]: self.gain(j) for j in self.kinds},
            "bottleneck_classes": list(self.bottleneck_classes),
            "bottleneck_machines": list(self.bottleneck_machines),
            "information": {
                name: {"machines": self.information(most), "discount": self.discount(most)}
                for name, most in (("lpas", None), ("lpas_2k", 2))
            },
        }


METHODS: dict[str, Callable[[Situation, Workspace, Floats], None]] = {
    "grouped": spread,
    "vertex": fill,
    "interior": spread,
}
"""How each method spreads the groups' optimum over the machines."""


def allocate(
    system: System | str | PathLike[str], method: str = "grouped", down: Sequence[str | int] = ()
) -> Allocation:
    """Solve the allocation LP of a system.

    Parameters
    ----------
    system
        A system, its name in the catalogue, or the path of its file. Its true rates, arrivals and
        mean availabilities count; for what planners believe, give ``system.believed``. Of chains,
        every application is a class of its own.
    method
        ``grouped`` (machines with equal rates share alike), ``vertex`` (a basic solution, with at
        most classes + machines − 1 non-zeros) or ``interior`` (all that an optimum may use).
    down
        Machines that are down: the name of one or of a group, or a number from 1; also those that
        the catalogue gives for a system by name.

    Examples
    --------
    >>> system = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    >>> best = allocate(system)
    >>> round(best.capacity, 4), round(best.load, 4)
    (1.3333, 0.75)
    >>> best.shares.round(4)
    array([[0.8333, 0.    ],
           [0.1667, 1.    ]])
    """
    if method not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(f"no method {method!r}{did_you_mean(method, METHODS)} (known: {known})")
    if isinstance(down, str):
        raise InputError(f"down is {down!r}; expected a list of machines")
    if not isinstance(system, System):
        entry = find_or_read(system)
        system, down = entry.system, [*entry.down, *down]
    of_chains, system = bool(system.templates), by_application(system)
    if len(system.classes) > MOST_CLASSES:
        number = f"{len(system.classes):,}"
        raise InputError(f"{number} classes cannot be allocated; expected at most {MOST_CLASSES:,}")
    failed = tuple(sorted({index for machine in down for index in _machines(system, machine)}))
    now = situation(system, failed)
    space, shares = make_workspace(now), np.empty(now.rates.shape)
    capacity = solve(now, space)
    suited(set_prices, space)(now, space)
    limiting = limiting_classes(space)
    parts = max(len(set(space.part[limiting].tolist())), 1)
    priced = Allocation(
        system=system,
        method=method,
        down=failed,
        capacity=float(capacity),
        shares=shares,
        class_prices=np.where(limiting, space.price, 0) / parts,
        efficiencies=_efficiencies(now, space),
        loads=np.where(space.level >= 0, space.load[space.level], np.nan),
        left_out=tuple(name for i, name in enumerate(system.classes) if space.level[i] < 0),
        of_chains=of_chains,
    )
    if method == "interior":
        solve_interior(now, space, capacity)
    suited(METHODS[method], space)(now, space, shares)
    return priced


def limiting_classes(space: Workspace) -> NDArray[np.bool_]:
    """Mark the classes of which fewer tasks would raise the capacity.

    Of parts that are equally loaded, one whose classes can also run on the machines of another is
    not what limits it.
    """
    limiting = space.level == 0
    elsewhere = (space.part[:, None] != space.group_part) & (space.group_level == 0)
    helped = set(space.part[limiting & ((space.rates > 0) & elsewhere).any(axis=1)].tolist())
    return np.asarray(limiting & ~np.isin(space.part, list(helped)))


def _efficiencies(now: Situation, space: Workspace) -> Floats:
    """Return the efficiencies [class, machine]; 0 between parts."""
    comparable = (space.part[:, None] >= 0) & (space.part[:, None] == space.group_part)
    earned = np.zeros(space.rates.shape)
    np.divide(space.price[:, None] * space.rates, space.worth, out=earned, where=comparable)
    earned[comparable & ((space.time > 0) | (earned > 1))] = 1.0
    return np.where(now.availability > 0, earned[:, now.group], 0)


def situation(system: System, down: Sequence[int] = ()) -> Situation:
    """Describe a system to a planner, with some machines, by index, down."""
    up = np.ones(len(system.machines), dtype=bool)
    up[list(down)] = False
    return Situation(
        rates=system.nominal,
        arrivals=system.arrival_rates,
        availability=system.mean_availability * up,
        group=groups_of(system.nominal),
    )


def long_run_situation(system: System, down: Sequence[int] = ()) -> Situation:
    """Describe a system in the long run: how long machines are up, and the work that is lost.

    Policies plan without it, with ``situation``.
    """
    now, lost = situation(system, down), lost_work_of(system, tuple(down))
    if lost.counted:
        now = now._replace(rates=lost.rates, group=groups_of(lost.rates))
    return now._replace(availability=now.availability * system.up_fraction)


def groups_of(rates: Floats) -> Integers:
    """Give machines with equal rates [class, machine] the same number, in order of appearance."""
    numbers: dict[bytes, int] = {}
    columns = np.ascontiguousarray(rates.T)
    return np.array([numbers.setdefault(c.tobytes(), len(numbers)) for c in columns], np.int64)


def _machines(system: System, machine: str | int) -> list[int]:
    """Find a machine, its slots or a group by name, or a machine by its number from 1."""
    name = str(machine)
    if isinstance(machine, str) and name in system.machines:
        return [system.machines.index(name)]
    if isinstance(machine, str) and name in system.groups and system.groups != system.machines:
        return np.flatnonzero(system.column == system.groups.index(name)).tolist()
    slots = [j for j, each in enumerate(system.machines) if each.rpartition("/")[0] == name]
    if isinstance(machine, str) and slots and system.sizes != system.counts:
        return slots
    if len(name) < 9 and name.isdecimal() and 1 <= int(name) <= len(system.machines):
        return [int(name) - 1]
    names = list(dict.fromkeys((*system.groups, *system.machines)))
    few = ", ".join(names[:FEW]) + (" …" if len(names) > FEW else "")
    raise InputError(f"no machine {name!r}{did_you_mean(name, names) or f'; there are {few}'}")


def _edge(capacity: float) -> str:
    if capacity <= 0:
        return "No policy can keep up: no machine that is up can run anything."
    load = f"load {percent(1 / capacity)}"
    if capacity > 1 + EDGE:
        growth = f"{100 * (capacity - 1):.1f} %"
        return (
            f"A good policy can keep up: {load}. "
            f"Arrivals could grow by {growth}; beyond that, no policy can keep up."
        )
    if capacity >= 1 - EDGE:
        return f"No policy can keep up: {load}, exactly at the edge, where queues grow without end."
    cut = f"by more than {100 * (1 - capacity):.1f} %"
    if capacity < 1 / LONG:
        cut = f"to less than {100 * capacity:.3g} %"
    return f"No policy can keep up: {load}. Arrivals would have to fall {cut}."


def _failures(allocation: Allocation) -> str:
    up = allocation.system.up_fraction[allocation.up]
    if not len(up):
        return "Every machine is down."
    which = "With the others up" if allocation.down else "With every machine up"
    load = f"{100 * allocation.load:.1f} %"
    return f"{which} the load is {load}; they are up {span(100 * up)} % of the time."


def span(values: Floats) -> str:
    """Write the smallest and the largest of some numbers, or the one that they all are.

    >>> import numpy as np
    >>> span(np.array([80.0, 100.0])), span(np.array([80.0, 80.01]))
    ('80.0 to 100.0', '80.0')
    """
    low, high = f"{values.min():.1f}", f"{values.max():.1f}"
    return low if low == high else f"{low} to {high}"


def _stranded(classes: tuple[str, ...]) -> str:
    what, whose = ("Class", "its") if len(classes) == 1 else ("Classes", "their")
    names = ", ".join(map(repr, classes))
    return (
        f"{what} {names} cannot run on any machine that is up, so no policy can keep up with "
        f"{whose} tasks. What follows is about the other classes."
    )


def verdict(allocation: Allocation) -> Verdict:
    """Return ``allocation.verdict``; the next release removes this function."""
    _deprecated("verdict(allocation)", "allocation.verdict")
    return allocation.verdict


def change(before: Allocation, after: Allocation) -> Change:
    """Return ``before.change(after)``; the next release removes this function."""
    _deprecated("change(before, after)", "before.change(after)")
    return before.change(after)


def _deprecated(old: str, new: str) -> None:
    words = f"{old} is deprecated, and the next release removes it; use {new}"
    warnings.warn(words, DeprecationWarning, stacklevel=3)
