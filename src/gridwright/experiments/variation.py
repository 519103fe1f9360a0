"""Change one parameter of a system."""

from __future__ import annotations

from collections.abc import Callable

from ..allocation import allocate, long_run_of
from ..model import Assumed, InputError, System, did_you_mean, mode, scaled_chains


def varied(system: System, what: str, value: float | str) -> System:
    """Return the system with one parameter changed.

    >>> from gridwright import allocate
    >>> two = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    >>> round(allocate(varied(two, "load", 0.9)).load, 9)
    0.9
    """
    if what in BELIEFS:
        return _with_part(system, "assumed", what.removeprefix("assumed."), value)
    if isinstance(value, str) or not 0 <= value < float("inf"):
        raise InputError(f"{what} is {value}; expected a number, 0 or more")
    if what.startswith("machines."):
        return _with_count(system, what.removeprefix("machines."), value)
    return VARIATIONS[what](system, value)


def is_variation(what: str) -> bool:
    """Tell whether a word names a parameter of systems that can vary."""
    return what in VARIATIONS or what in BELIEFS or what.startswith("machines.")


def _scaled(system: System, factor: float) -> System:
    if system.mode is mode.CHAINS:
        return system.replace(**scaled_chains(system, factor))
    return system.replace(arrivals=(system.arrivals * factor).tolist())


def _with_load(system: System, load: float) -> System:
    """Scale the arrivals to a long-run load, with failures and CPU availability."""
    now = long_run_of(system).load
    if now is None:
        now = 1 / allocate(system).long_run_capacity
    return _scaled(system, load / now)


def _with_counts(system: System, counts: list[float]) -> System:
    whole = [round(count) for count in counts]
    if any(abs(count - near) > 1e-9 for count, near in zip(counts, whole, strict=True)):
        found = ", ".join(f"{count:g}" for count in counts)
        raise InputError(f"machines come to {found} of the groups; expected whole numbers")
    if len(system.availability) != len(system.counts) and whole != list(system.counts):
        raise InputError(
            "the system gives the availability of every single machine, so their number cannot be "
            "varied; give it by groups"
        )
    return system.replace(counts=whole)


def _with_count(system: System, group: str, count: float) -> System:
    if group not in system.groups:
        hint = did_you_mean(group, system.groups) or f"; there are {', '.join(system.groups)}"
        raise InputError(f"the system has no group {group!r}{hint}")
    place = list(system.groups).index(group)
    counts = [count if k == place else float(each) for k, each in enumerate(system.counts)]
    return _with_counts(system, counts)


def _with_inaccuracy(system: System, part: str, value: float) -> System:
    assumed = system.assumed or Assumed()
    inaccuracy = {**assumed.inaccuracy.parts(), part: value}
    return system.replace(assumed={**assumed.parts(), "inaccuracy": inaccuracy})


def _with_nodes(system: System, count: float) -> System:
    if len(system.counts) != 1:
        raise InputError(
            f"the system has {len(system.counts)} groups of machines; vary machines.GROUP"
        )
    return _with_counts(system, [count])


def _with_perturbation(system: System, part: str, value: float) -> System:
    if system.mode is not mode.CHAINS:
        raise InputError(f"perturbation.{part} cannot be varied: the system has no chains")
    return _with_part(system, "perturbation", part, value)


def _with_deadlines(system: System, factor: float) -> System:
    if system.deadlines is None or system.deadlines.factor is None:
        raise InputError("deadline_factor cannot be varied: the system has no [deadlines] factor")
    return _with_part(system, "deadlines", "factor", factor)


def _with_interval(system: System, mean: float) -> System:
    missing = "the rates of the system do not change"
    return _with_part(system, "changes", "mean_interval", mean, missing)


def _with_batch(system: System, part: str, value: float) -> System:
    return _with_part(system, "batch", part, int(value) if value == int(value) else value)


def _with_part(
    system: System, table: str, part: str, value: float | str, missing: str = ""
) -> System:
    """Change one part of a table of the system; refuse a missing table if it must be there."""
    now = getattr(system, table)
    if now is None and missing:
        raise InputError(f"{part} cannot be varied: {missing}")
    return system.replace(**{table: {**({} if now is None else now.parts()), part: value}})


STEADY = "the machines of the system do not fail"

BELIEFS = ("assumed.execution", "assumed.scale", "assumed.shift")
"""Wrong beliefs about the pmfs of execution times: the name of a shape, or a number."""

VARIATIONS: dict[str, Callable[[System, float], System]] = {
    "load": _with_load,
    "arrivals": _scaled,
    "machines": lambda system, times: _with_counts(system, [times * c for c in system.counts]),
    "nodes": _with_nodes,
    "mean_uptime": lambda system, mean: _with_part(system, "failures", "mean_uptime", mean, STEADY),
    "mean_repair": lambda system, mean: _with_part(system, "failures", "mean_repair", mean, STEADY),
    "mean_interval": _with_interval,
    "inaccuracy.arrivals": lambda system, most: _with_inaccuracy(system, "arrivals", most),
    "inaccuracy.availability": lambda system, most: _with_inaccuracy(system, "availability", most),
    "inaccuracy.rates": lambda system, most: _with_inaccuracy(system, "rates", most),
    "queue_limit": lambda system, most: _with_batch(system, "queue_limit", most),
    "tasks": lambda system, count: _with_batch(system, "tasks", count),
    "deadline_factor": _with_deadlines,
    "perturbation.variation": lambda system, v: _with_perturbation(system, "variation", v),
    "perturbation.arrivals": lambda system, most: _with_perturbation(system, "arrivals", most),
    "perturbation.uptimes": lambda system, most: _with_perturbation(system, "uptimes", most),
}
"""Parameters that can vary; also ``machines.GROUP``."""
