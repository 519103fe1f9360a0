"""How the work that failing machines lose changes the load of a system.

A task that runs when its machine fails starts again. With a new execution time, that costs nothing
if these are exponential: they have no memory. Otherwise a task of work S (mean 1) that fails with
rate θ per unit of work needs (1 / E[e^{−θS}] − 1) / θ units of work on average, lost work included,
if up-times are exponential. With the same work again it needs (E[e^{θS}] − 1) / θ, and if that is
infinite, no policy can keep up.

Policies plan with the rates that the system states. The load that users see is that of the
allocation LP with rates divided by these means, where that holds for every policy:

- New execution times: every start of a class on a machine is like every other, so that it holds
  for all policies that let tasks end where they began.
- The same work: a policy may move long tasks to machines that seldom fail, so θ must be the same on
  all machines that run a class, unless its execution times are constant. With the same θ it also
  holds for policies that interrupt and move tasks.

Elsewhere the load leaves lost work out, and what shows it says so.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import Distribution, Floats, InputError, MarkovChain, System, mode
from ..model.distribution import Erlang, Exponential, Gamma, Hyperexponential, Weibull
from ..statistics import EDGE

LONG = 1e4
"""Loads from here on are written with an exponent."""
MOST = 1e300
"""Work that a task may need on average, if its own is 1; what is more counts as this much."""


class LostWork(NamedTuple):
    """What lost work does to the rates of a system."""

    rates: Floats
    """[class, machine]: tasks that a machine with its whole CPU completes, in time that it is up.
    The nominal rates if lost work is left out."""
    counted: bool = False
    """Whether work is lost that changes these rates."""
    left_out: str = ""
    """Why lost work is left out; empty if it is counted, or if nothing is lost."""
    depends: bool = False
    """Whether it is counted only for policies that do not interrupt tasks and move them."""


@lru_cache(maxsize=256)
def lost_work_of(system: System, down: tuple[int, ...] = ()) -> LostWork:
    """Return the rates of a system with the work that is lost counted.

    Machines that are down for good decide nothing.

    >>> failing = {"mean_uptime": 1, "mean_repair": 0.1}
    >>> parts = {"arrivals": [0.5], "rates": [[1]], "failures": failing}
    >>> lost_work_of(System(**parts)).rates
    array([[1.]])
    >>> lost_work_of(System(**parts, execution="deterministic")).rates.round(4)  # 1 / (e − 1)
    array([[0.582]])
    """
    nominal, failures = system.nominal, system.failures
    shapes = system.per_class(system.execution)
    memory = [not _is_exponential(work) or keeps_lost_work(system) for work in shapes]
    if failures is None or system.mode is mode.CHAINS or not any(memory):
        return LostWork(nominal)
    fails = 1 / np.array(system.per_machine(failures.mean_uptime), dtype=float)
    able = (nominal > 0) & _up(system, down)
    runs = able & (fails > 0) & np.array(memory)[:, None]
    ends = system.per_machine(failures.uptime)
    if any(not _is_exponential(ends[j]) for j in np.flatnonzero(runs.any(axis=0))):
        return LostWork(nominal, left_out="up-times are not exponential")
    if _varies(system)[runs.any(axis=0)].any():
        return LostWork(nominal, left_out="rates or the CPU availability change")
    if not all(shapes[i].has_transform for i in np.flatnonzero(runs.any(axis=1))):
        reason = "a distribution of execution times has no log_transform"
        return LostWork(nominal, left_out=reason)
    per_work = np.zeros_like(nominal)
    np.divide(fails, system.effective, out=per_work, where=runs)
    uneven = [i for i in np.flatnonzero(memory) if not _equal(per_work[i][able[i]])]
    if failures.same_work and any(shapes[i].variance > 0 for i in uneven):
        return LostWork(nominal, left_out="it depends on the policy")
    if never_done(system, down):
        return LostWork(nominal, left_out="it is infinite")
    needed = np.ones_like(nominal)
    for i in np.flatnonzero(runs.any(axis=1)):
        values, places = np.unique(per_work[i][runs[i]], return_inverse=True)
        means = [_mean_work(shapes[i], value, failures.same_work) for value in values.tolist()]
        needed[i, runs[i]] = np.array(means)[places]
    if not (needed != 1).any():
        return LostWork(nominal)
    return LostWork(nominal / np.minimum(needed, MOST), counted=True, depends=bool(uneven))


def keeps_lost_work(system: System) -> bool:
    """Tell whether tasks that are lost have the same work again."""
    return system.failures is not None and system.failures.same_work


def with_same_work(system: System) -> System:
    """Return a system whose tasks have the same work again if they are lost, as real jobs have."""
    if system.failures is None:
        return system
    return system.replace(failures={**system.failures.parts(), "same_work": True})


def load_in_words(system: System, load: float) -> str:
    """Write the load of a system, and whether it leaves out the work that is lost.

    >>> failing = {"mean_uptime": 1, "mean_repair": 0.1, "uptime": "deterministic"}
    >>> parts = {"arrivals": [0.5], "rates": [[1]], "failures": failing}
    >>> load_in_words(System(**parts, execution="deterministic"), 0.55)
    '55.0 % without lost work'
    """
    if not lost_work_of(system).left_out:
        return percent(load)
    if keeps_lost_work(system):
        return f"more than {percent(load)}"
    return f"{percent(load)} without lost work"


def percent(load: float) -> str:
    """Write a load, which may be anything if tasks are longer than machines are up.

    >>> percent(0.55), percent(5.9e42)
    ('55.0 %', '5.9e+44 %')
    """
    return f"{100 * load:.1f} %" if load < LONG else f"{100 * load:.3g} %"


def bound(system: System, load: float | None) -> float | None:
    """Return the load of a system; None if it is 1 or more, but the true one may be less."""
    if load is None or load < 1 - EDGE or keeps_lost_work(system):
        return load
    return None if lost_work_of(system).left_out else load


def never_done(system: System, down: tuple[int, ...] = ()) -> tuple[str, ...]:
    """Return the classes whose tasks take infinitely long on average, because work is lost.

    Only what holds for every policy counts: each machine has its highest availability, and the
    lowest failure rate that its up-times ever have. Machines that are down for good do not count.

    >>> failing = {"mean_uptime": 2, "mean_repair": 1, "same_work": True}
    >>> never_done(System(arrivals=[0.1, 0.1], rates=[[0.5], [0.51]], failures=failing))
    ('1',)
    """
    failures = system.failures
    if failures is None or not failures.same_work or system.mode is mode.CHAINS:
        return ()
    means, shapes = map(system.per_machine, (failures.mean_uptime, failures.uptime))
    lowest = np.array([_least_hazard(one) / mean for one, mean in zip(shapes, means, strict=True)])
    rates = system.nominal * _best_speeds(system)
    found = []
    for i, work in enumerate(system.per_class(system.execution)):
        can = (rates[i] > 0) & _up(system, down)
        per_work = float((lowest[can] / rates[i][can]).min()) if can.any() else 0.0
        if not (0 < per_work < np.inf and work.has_transform):
            continue
        if _log_transform(work, -per_work / (1 - EDGE) / work.mean) == np.inf:
            found.append(system.classes[i])
    return tuple(found)


def without_end(classes: tuple[str, ...]) -> str:
    """Say that tasks of some classes take infinitely long on average.

    >>> without_end(("a", "b"))
    "tasks of classes 'a', 'b' that are lost keep their work, and take infinitely long on average"
    """
    names = ("class " if len(classes) == 1 else "classes ") + ", ".join(map(repr, classes))
    return f"tasks of {names} that are lost keep their work, and take infinitely long on average"


def _up(system: System, down: tuple[int, ...]) -> NDArray[np.bool_]:
    up = np.ones(len(system.machines), dtype=bool)
    up[list(down)] = False
    return up


def _best_speeds(system: System) -> Floats:
    """Return the highest availability of every machine, times the largest factor of its rates."""
    changes = system.changes
    shares = [
        max(each.states) if isinstance(each, MarkovChain) else each
        for each in system.machine_availability
    ]
    if changes is not None and changes.availability:
        shares = [max(changes.availability)] * len(shares)
    factor = 1.0 if changes is None else max((1.0, *changes.rates))
    return np.array(shares, dtype=float) * factor


def _least_hazard(uptime: Distribution) -> float:
    """Return the lowest failure rate at any age, times the mean up-time; 0 if it is not known."""
    if _is_exponential(uptime):
        return 1.0
    if isinstance(uptime, Hyperexponential):
        return _slowest(uptime)
    if isinstance(uptime, Gamma) and uptime.shape <= 1:
        return float(uptime.shape)
    return 0.0


def _mean_work(work: Distribution, fails: float, same: bool) -> float:
    """Return the mean work that a task needs until it is done, if its own has a mean of 1."""
    sign = -1 if same else 1
    power = _log_transform(work, sign * fails / work.mean)
    return float(np.expm1(min(-sign * power, 700.0))) / fails


def _log_transform(work: Distribution, s: float) -> float:
    """Return ln E[e^{−sX}], perhaps of a user's distribution."""
    try:
        found = work.log_transform(s)
        value = np.nan if found is None else float(found)
    except Exception as error:
        if s < 0 and isinstance(error, OverflowError):
            return MOST  # finite, but beyond all numbers
        raise InputError(f"log_transform({s:g}) of {work!r}: {error}") from error
    if np.isnan(value):
        expected = "a number, or inf if the mean is infinite"
        raise InputError(f"log_transform({s:g}) of {work!r} is {found}; expected {expected}")
    return value


def _varies(system: System) -> NDArray[np.bool_]:
    """Tell for each machine whether its speed changes while it runs a task."""
    changes = system.changes
    if changes is not None and (changes.availability or changes.rates):
        return np.ones(len(system.machines), dtype=bool)
    return np.array([isinstance(each, MarkovChain) for each in system.machine_availability])


def _equal(values: Floats) -> bool:
    return not len(values) or bool(np.ptp(values) <= EDGE * values.max())


def _is_exponential(shape: Distribution) -> bool:
    if type(shape) not in (Exponential, Weibull, Gamma, Erlang, Hyperexponential):
        return False  # a user's own may be anything
    match shape:
        case Weibull(shape=1.0) | Gamma(shape=1.0) | Erlang(stages=1) | Hyperexponential(scv=1.0):
            return True
    return type(shape) is Exponential


def _slowest(mixed: Hyperexponential) -> float:
    """Return the rate of the slowest phase, with a mean of 1."""
    phases = zip(*mixed.phases, strict=True)
    return mixed.mean / max(mean for share, mean in phases if share > 0)
