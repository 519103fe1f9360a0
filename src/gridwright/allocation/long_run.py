"""The long run of a system: its load, the variance of its number of tasks, how fast it settles."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..model import MarkovChain, Profile, System, mode
from .allocation import long_run_situation
from .planner import MOST_CLASSES, solve, suited
from .price import set_prices
from .simplex import Floats
from .workspace import Situation, make_workspace


class LongRun(NamedTuple):
    """Long-run properties of a system that do not depend on the policy."""

    load: float | None
    """Of the busiest machine under the best allocation; None if it is not known."""
    variance: float
    """By how much the variance of the number in system grows per time unit, at full load."""
    settling: float | None = None
    """Time units in which the slowest independent part of the system settles, about."""
    queue: float | None = None
    """Tasks that would wait if every independent part were one machine."""
    peak: float | None = None
    """The load while arrival rates are highest, if they change (``[profile]``)."""


@lru_cache(maxsize=256)
def long_run_of(system: System) -> LongRun:
    """Return the load of a system, the variance of its number of tasks, and how fast it settles.

    Machines count for the share of time that they are up, with their mean CPU availability. The
    work that failing machines lose counts where that is known (``lost_work``). The true rates and
    arrivals count, not the assumed ones. At a load of 1 or more no policy can keep up. The load is
    None if the allocation LP does not bound every policy: for chains of applications, and for rates
    that change one by one, which a policy could exploit. It is also None for more than 5,000
    classes, which are too many for the LP.

    Arrivals, execution times, failures, the CPU availability and ``[changes]`` add to the
    variance. A class whose times vary less than exponential ones counts as if they were
    exponential.

    Parts that share no class and no machine in the best allocation settle independently. A slow
    part may take far longer than a fast part that serves most tasks. Within a part, tasks are
    weighted by their prices, so that a few long tasks count as much as the many short tasks that
    they delay.

    >>> apart = System(arrivals=[0.5, 50], rates=[[1, 0], [0, 200]])
    >>> found = long_run_of(apart)
    >>> found.load, round(found.settling, 6)  # that of the first class: 1 / (0.5 × (1 − 0.5)²)
    (0.5, 8.0)
    >>> failing = {"mean_uptime": 8, "mean_repair": 2}
    >>> found = long_run_of(System(arrivals=[0.9], rates=[[1.0]], failures=failing))
    >>> round(found.load, 6), round(found.variance, 3)
    (1.125, 2.312)
    """
    classes = _class_variances(system)
    if system.mode is mode.CHAINS or len(system.classes) > MOST_CLASSES:
        return LongRun(None, float(classes.sum()))
    now = _on_average(system)
    space = make_workspace(now)
    capacity = float(solve(now, space))
    suited(set_prices, space)(now, space)
    load = 1 / capacity if capacity > 0 else np.inf if now.arrivals.any() else 0.0
    speeds = (space.time * space.rates).sum(axis=0) / np.maximum(space.capacity, 1e-300)
    speeds, worth = speeds[now.group], space.worth[now.group]  # [machine], while it is up
    machines = np.array([_machine_variance(system, j) for j in range(len(system.machines))])
    variance = float(classes.sum() + speeds**2 @ machines)
    if system.changes is not None and system.changes.rates:
        return LongRun(None, variance)
    peak = _peak_load(system)
    if not 0 < load < 1:
        return LongRun(load, variance, peak=peak)
    settling, queue = 0.0, 0.0
    for part in set(space.part[space.part >= 0].tolist()):
        own, where = space.part == part, space.group_part[now.group] == part
        free = 1 - float(space.load[space.level][own][0])
        weighed = space.price[own] ** 2 @ classes[own] + worth[where] ** 2 @ machines[where]
        settling = max(settling, float(weighed) / 2 / free**2)
        total = classes[own].sum() + speeds[where] ** 2 @ machines[where]
        queue += (1 - free) * float(total) / 2 / (float(now.arrivals[own].sum()) * free)
    return LongRun(load, variance, settling, queue, peak)


def _peak_load(system: System) -> float | None:
    """Return the load of the period of a profile that has the most to do.

    In bursts, which come for each class by itself, all classes may have theirs together.
    """
    if system.profile is None:
        return None
    factors = system.profile.rows(len(system.classes))
    if system.profile.random:
        factors = factors.max(axis=1, keepdims=True)
    mean = _on_average(system)
    loads = [0.0]
    for column in factors.T:
        now = mean._replace(arrivals=system.arrivals * column)
        if (capacity := float(solve(now, make_workspace(now)))) > 0.0:
            loads.append(1 / capacity)
    return max(loads)


def _on_average(system: System) -> Situation:
    """Describe a system to a planner, with the long-run means of what changes."""
    now, changes = long_run_situation(system), system.changes
    if changes is not None and changes.availability:
        mean = float(np.mean(changes.availability))
        now = now._replace(availability=mean * system.up_fraction)
    if changes is not None and changes.arrivals:
        now = now._replace(arrivals=now.arrivals * float(np.mean(changes.arrivals)))
    return now


def _class_variances(system: System) -> Floats:
    """Return the variance per time unit that the arrivals and execution times of each class add."""
    shapes = _squared_variation(system, system.interarrival)
    shapes = np.maximum(shapes + _squared_variation(system, system.execution), 2.0)
    found = system.arrival_rates * np.where(np.isfinite(shapes), shapes, 2.0)
    changes = system.changes
    if system.profile is not None and system.profile.random:
        found = found + system.arrivals**2 * _burst_variances(system.profile, len(found))
    if changes is None or not changes.arrivals:
        return np.asarray(found)
    factors = np.array(changes.arrivals)
    squares = (system.arrivals.reshape(len(found), -1) ** 2).sum(axis=1)
    return np.asarray(
        found * factors.mean() + 2 * factors.var() * squares * _between_changes(system)
    )


def _burst_variances(profile: Profile, classes: int) -> Floats:
    """Return the variance per time unit of the sum of each class's factors over random periods."""
    size, weights = len(profile.durations), np.array(profile.durations)
    leave = np.diag(1 / weights)
    shares = np.broadcast_to(weights / weights.sum(), (size, size))
    generator = leave @ np.roll(np.eye(size), 1, axis=1) - leave
    centred = profile.rows(classes) - profile.means(classes)[:, None]
    total = np.linalg.solve(shares - generator, centred.T).T
    return np.asarray(2 * (centred * total) @ shares[0])


def _squared_variation(system: System, shape: Any) -> Floats:
    """Return the squared coefficient of variation of every class."""
    return np.array([one.variance / one.mean**2 for one in system.per_class(shape)])


def _machine_variance(system: System, machine: int) -> float:
    """Return the variance per time unit of the CPU time that a machine provides."""
    share, found = system.machine_availability[machine], 0.0
    if isinstance(share, MarkovChain):
        found += float(system.up_fraction[machine]) * _chain_variance(share)
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
    return found + _change_variance(system)


def _change_variance(system: System) -> float:
    """Return the variance per time unit that ``[changes]`` add to the CPU time of a machine.

    A value that is drawn again after T time units on average adds 2 × its variance × T.
    """
    changes = system.changes
    if changes is None:
        return 0.0
    found = 2 * float(np.var(changes.availability or (1.0,))) * changes.mean_interval
    if changes.rates:  # as if a machine worked for one class only
        found += 2 * float(np.var(changes.rates)) * _between_changes(system)
    return found


def _between_changes(system: System) -> float:
    """Return the mean time between two changes of one rate: only one rate changes at a time."""
    changes = system.changes
    assert changes is not None
    kinds = bool(changes.arrivals) + bool(changes.rates)
    return float(changes.mean_interval * kinds * system.nominal.size)


def _chain_variance(chain: MarkovChain) -> float:
    """Return the variance per time unit of the sum of a Markov chain of availabilities."""
    shares, size = chain.stationary, len(chain.states)
    centred = np.array(chain.states) - chain.mean
    fundamental = np.linalg.inv(np.eye(size) - chain.transition + shares)
    total = 2 * fundamental - np.eye(size)
    return chain.step * max(float((shares * centred) @ total @ centred), 0.0)
