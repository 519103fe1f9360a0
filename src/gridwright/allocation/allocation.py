"""``allocate``: a system's capacity, and which machine should serve which class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..model import InputError, System, by_application, did_you_mean
from .highs import solve_interior
from .planner import MOST_CLASSES, fill, solve, spread, suited
from .price import set_prices
from .room import Floats, Integers, Room, Situation, make_room

__all__ = ["METHODS", "Allocation", "allocate", "groups_of", "situation"]

FEW = 12
"""Machines that a message names."""


@dataclass(frozen=True, eq=False)
class Allocation:
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
        """λ* with every machine there only for the share of time that it is up."""
        if self.system.failures is None:
            return self.capacity
        now = situation(self.system, self.down)
        now = now._replace(availability=now.availability * self.system.up_fraction)
        return solve(now, make_room(now))

    def gain(self, machine: int) -> float:
        """Return the share by which one more machine of the kind of one would raise the capacity.

        It is up all the time. A price is the same for a little of a machine, where the prices are
        the only ones; a whole machine adds less, as others become the bottleneck.
        """
        now = situation(self.system, self.down)
        more = np.append(np.arange(len(now.group)), machine)
        now = now._replace(
            rates=now.rates[:, more],
            availability=np.append(now.availability, self.system.mean_availability[machine]),
            group=now.group[more],
        )
        return solve(now, make_room(now)) / self.capacity - 1


METHODS: dict[str, Callable[[Situation, Room, Floats], None]] = {
    "grouped": spread,
    "vertex": fill,
    "interior": spread,
}
"""How each method spreads the groups' optimum over the machines."""


def allocate(system: System, method: str = "grouped", down: Sequence[str | int] = ()) -> Allocation:
    """Solve the allocation LP of a system.

    Parameters
    ----------
    system
        The system; its true rates, arrivals and mean availabilities count. For what planners
        believe, give ``system.believed``. Of chains, every application is a class of its own.
    method
        ``grouped`` (machines with equal rates share alike), ``vertex`` (a basic solution, with at
        most classes + machines − 1 non-zeros) or ``interior`` (all that an optimum may use).
    down
        Machines that are down: the name of one or of a group, or a number from 1.

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
    if not isinstance(system, System):
        raise InputError(f"system is {system!r}; expected a System, as gridwright.load makes one")
    if method not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(f"no method {method!r}{did_you_mean(method, METHODS)} (known: {known})")
    if isinstance(down, str):
        raise InputError(f"down is {down!r}; expected a list of machines")
    system = by_application(system)
    if len(system.classes) > MOST_CLASSES:
        number = f"{len(system.classes):,}"
        raise InputError(f"{number} classes cannot be allocated; expected at most {MOST_CLASSES:,}")
    failed = tuple(sorted({index for machine in down for index in _machines(system, machine)}))
    now = situation(system, failed)
    room, shares = make_room(now), np.empty(now.rates.shape)
    capacity = solve(now, room)
    suited(set_prices, room)(now, room)
    limiting = limiting_classes(room)
    parts = max(len(set(room.part[limiting].tolist())), 1)
    priced = Allocation(
        system=system,
        method=method,
        down=failed,
        capacity=float(capacity),
        shares=shares,
        class_prices=np.where(limiting, room.price, 0) / parts,
        efficiencies=_efficiencies(now, room),
        loads=np.where(room.level >= 0, room.load[room.level], np.nan),
        left_out=tuple(name for i, name in enumerate(system.classes) if room.level[i] < 0),
    )
    if method == "interior":
        solve_interior(now, room, capacity)
    suited(METHODS[method], room)(now, room, shares)
    return priced


def limiting_classes(room: Room) -> NDArray[np.bool_]:
    """Mark the classes of which fewer tasks would raise the capacity.

    Of parts that are equally loaded, one whose classes can also run on the machines of another is
    not what limits it.
    """
    limiting = room.level == 0
    elsewhere = (room.part[:, None] != room.group_part) & (room.group_level == 0)
    helped = set(room.part[limiting & ((room.rates > 0) & elsewhere).any(axis=1)].tolist())
    return np.asarray(limiting & ~np.isin(room.part, list(helped)))


def _efficiencies(now: Situation, room: Room) -> Floats:
    """Return which share of a machine's worth a class earns there, 0 between parts."""
    comparable = (room.part[:, None] >= 0) & (room.part[:, None] == room.group_part)
    earned = np.zeros(room.rates.shape)
    np.divide(room.price[:, None] * room.rates, room.worth, out=earned, where=comparable)
    earned[comparable & ((room.time > 0) | (earned > 1))] = 1.0
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


def groups_of(rates: Floats) -> Integers:
    """Give machines with equal rates [class, machine] the same number, in order of appearance."""
    numbers: dict[bytes, int] = {}
    columns = np.ascontiguousarray(rates.T)
    return np.array([numbers.setdefault(c.tobytes(), len(numbers)) for c in columns], np.int64)


def _machines(system: System, machine: str | int) -> list[int]:
    """Find a machine or a group by name, or a machine by its number from 1."""
    name = str(machine)
    if isinstance(machine, str) and name in system.machines:
        return [system.machines.index(name)]
    if isinstance(machine, str) and name in system.groups and system.groups != system.machines:
        return np.flatnonzero(system.column == system.groups.index(name)).tolist()
    if len(name) < 9 and name.isdecimal() and 1 <= int(name) <= len(system.machines):
        return [int(name) - 1]
    names = list(dict.fromkeys((*system.groups, *system.machines)))
    few = ", ".join(names[:FEW]) + (" …" if len(names) > FEW else "")
    raise InputError(f"no machine {name!r}{did_you_mean(name, names) or f'; there are {few}'}")
