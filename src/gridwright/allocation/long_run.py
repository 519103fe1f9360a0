"""A system in the long run: its load, and how much the number of tasks strays."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..model import MarkovChain, System
from .allocation import situation
from .planner import solve
from .room import Floats, make_room

__all__ = ["long_run_load", "variance_rate"]


class LongRun(NamedTuple):
    """The LP of a system whose machines are there for a part of the time."""

    load: float
    speeds: Floats
    """[machine]: tasks per time unit of a machine that is up and wholly available."""


def long_run_load(system: System) -> float | None:
    """Return the load of the busiest machine under the best allocation, in the long run.

    Machines count for the share of time that they are up, with their mean CPU availability. The
    true rates and arrivals count, not the assumed ones. At 1 or more no policy can keep up.

    None where the allocation LP does not bound every policy: chains of applications, and rates
    that change one by one, which a policy could exploit.

    >>> machine = {"arrivals": [0.9], "rates": [[1.0]]}
    >>> failures = {"mean_uptime": 8, "mean_repair": 2}
    >>> round(long_run_load(System(**machine, failures=failures)), 6)
    1.125
    """
    if system.has_chains or (system.changes is not None and system.changes.rates):
        return None
    return _solved(system).load


def variance_rate(system: System) -> float:
    """Return by how much the variance of the number in system grows per time unit, at full load.

    It is what arrivals, execution times, failures and the CPU availability add. Where times vary
    less than exponential ones, it is taken to be as for these.

    >>> variance_rate(System(arrivals=[0.9], rates=[[1.0]]))
    1.8
    >>> round(variance_rate(System(arrivals=[0.9], rates=[[1.0]],
    ...                            failures={"mean_uptime": 8, "mean_repair": 2})), 3)
    2.312
    """
    arrivals = system.arrival_rates
    random = 2 * float(arrivals.sum())
    shapes = [_of_classes(system, each) for each in (system.interarrival, system.execution)]
    found = max(random, float(arrivals @ sum(shapes)))
    if system.has_chains:
        return found
    strays = np.array([_straying(system, j) for j in range(len(system.machines))])
    if strays.any():
        found += float(_solved(system).speeds ** 2 @ strays)
    return found if np.isfinite(found) else random


@lru_cache(maxsize=256)
def _solved(system: System) -> LongRun:
    now, changes = situation(system), system.changes
    if changes is not None and changes.availability:
        mean = float(np.mean(changes.availability))
        now = now._replace(availability=np.full_like(now.availability, mean))
    if changes is not None and changes.arrivals:
        now = now._replace(arrivals=now.arrivals * float(np.mean(changes.arrivals)))
    now = now._replace(availability=now.availability * system.up_fraction)
    room = make_room(now)
    capacity = float(solve(now, room))
    speeds = (room.time * room.rates).sum(axis=0) / np.maximum(room.capacity, 1e-300)
    idle = not now.arrivals.any()
    return LongRun(1 / capacity if capacity > 0 else 0.0 if idle else np.inf, speeds[now.group])


def _of_classes(system: System, shape: Any) -> Floats:
    """Return the squared coefficient of variation of every class."""
    each = shape if isinstance(shape, tuple) else (shape,) * len(system.classes)
    return np.array([one.variance / one.mean**2 for one in each])


def _straying(system: System, machine: int) -> float:
    """Return the variance per time unit of the time that a machine is there."""
    share, found = system.machine_availability[machine], 0.0
    if isinstance(share, MarkovChain):
        found += float(system.up_fraction[machine]) * _straying_of(share)
    if system.failures is not None:
        parts = system.failures
        up, down = (
            float(system.per_machine(mean)[machine])
            for mean in (parts.mean_uptime, parts.mean_repair)
        )
        if np.isfinite(up):
            shapes = [system.per_machine(shape)[machine] for shape in (parts.uptime, parts.repair)]
            scv = sum(one.variance / one.mean**2 for one in shapes)
            mean = float(system.mean_availability[machine])
            found += mean**2 * scv * (up * down) ** 2 / (up + down) ** 3
    return found


def _straying_of(chain: MarkovChain) -> float:
    """Return the variance per time unit of the sum of a Markov chain of availabilities."""
    shares, size = chain.stationary, len(chain.states)
    centred = np.array(chain.states) - chain.mean
    fundamental = np.linalg.inv(np.eye(size) - chain.transition + shares)
    total = 2 * fundamental - np.eye(size)
    return chain.step * max(float((shares * centred) @ total @ centred), 0.0)
