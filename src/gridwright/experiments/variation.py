"""Change one parameter of a system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..allocation import allocate, long_run_of
from ..model import InputError, System, did_you_mean, mode, scaled_chains
from ..model.record import Record


def varied(system: System, what: str, value: float | str) -> System:
    """Return the system with one parameter changed.

    >>> from gridwright import allocate
    >>> two = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    >>> round(allocate(varied(two, "load", 0.9)).load, 9)
    0.9
    """
    if what in BELIEFS:
        return _with_part(system, what, value)
    if isinstance(value, str) or not 0 <= value < float("inf"):
        raise InputError(f"{what} is {value}; expected a number, 0 or more")
    if what.startswith("machines."):
        return _with_count(system, what.removeprefix("machines."), value)
    change = VARIATIONS[what]
    return _with_part(system, what, value) if isinstance(change, str) else change(system, value)


def is_variation(what: str) -> bool:
    """Tell whether a word names a parameter of systems that can vary."""
    return what in VARIATIONS or what in BELIEFS or what.startswith("machines.")


def _with_part(system: System, what: str, value: float | str) -> System:
    """Change one part of a table of the system."""
    table, *path = str(VARIATIONS.get(what, what)).split(".")
    is_there, missing = NEEDED.get(table, (lambda system: True, ""))
    if not is_there(system):
        raise InputError(f"{what} cannot be varied: {missing}")
    if table == "batch" and value == int(value):
        value = int(value)
    return system.replace(**{table: _changed(getattr(system, table), path, value)})


def _changed(record: Record | None, path: list[str], value: float | str) -> Any:
    """Return the parts of a record with one of them changed, however deep it is."""
    if not path:
        return value
    parts = {} if record is None else record.parts()
    return {**parts, path[0]: _changed(parts.get(path[0]), path[1:], value)}


def _scaled(system: System, factor: float) -> System:
    if system.mode is mode.CHAINS:
        return system.replace(**scaled_chains(system, factor))
    return system.replace(arrivals=(system.arrivals * factor).tolist())


def _with_load(system: System, load: float) -> System:
    """Scale the arrivals to a long-run load, with failures and CPU availability."""
    now = long_run_of(system).load
    return _scaled(system, load / (1 / allocate(system).long_run_capacity if now is None else now))


def _with_counts(system: System, counts: list[float]) -> System:
    whole = [round(count) for count in counts]
    if any(abs(count - near) > 1e-9 for count, near in zip(counts, whole, strict=True)):
        found = ", ".join(f"{count:g}" for count in counts)
        raise InputError(f"machines come to {found} of the groups; expected whole numbers")
    return system.with_counts(whole)


def _with_count(system: System, group: str, count: float) -> System:
    if group not in system.groups:
        hint = did_you_mean(group, system.groups) or f"; there are {', '.join(system.groups)}"
        raise InputError(f"the system has no group {group!r}{hint}")
    place = list(system.groups).index(group)
    counts = [count if k == place else float(each) for k, each in enumerate(system.counts)]
    return _with_counts(system, counts)


def _with_nodes(system: System, count: float) -> System:
    if len(system.counts) != 1:
        raise InputError(
            f"the system has {len(system.counts)} groups of machines; vary machines.GROUP"
        )
    return _with_counts(system, [count])


BELIEFS = ("assumed.execution", "assumed.scale", "assumed.shift")
"""Wrong beliefs about the pmfs of execution times: the name of a shape, or a number."""

VARIATIONS: dict[str, str | Callable[[System, float], System]] = {
    "load": _with_load,
    "arrivals": _scaled,
    "machines": lambda system, times: _with_counts(system, [times * c for c in system.counts]),
    "nodes": _with_nodes,
    "mean_uptime": "failures.mean_uptime",
    "mean_repair": "failures.mean_repair",
    "delays.before": "delays.before",
    "delays.after": "delays.after",
    "delays.detection": "delays.detection",
    "delays.reporting": "delays.reporting",
    "mean_interval": "changes.mean_interval",
    "inaccuracy.arrivals": "assumed.inaccuracy.arrivals",
    "inaccuracy.availability": "assumed.inaccuracy.availability",
    "inaccuracy.rates": "assumed.inaccuracy.rates",
    "queue_limit": "batch.queue_limit",
    "tasks": "batch.tasks",
    "deadline_factor": "deadlines.factor",
    "perturbation.variation": "perturbation.variation",
    "perturbation.arrivals": "perturbation.arrivals",
    "perturbation.uptimes": "perturbation.uptimes",
}
"""Parameters that can vary: a part of a table, or a function. Also ``machines.GROUP``."""

NEEDED: dict[str, tuple[Callable[[System], Any], str]] = {
    "failures": (lambda system: system.failures, "the machines of the system do not fail"),
    "changes": (lambda system: system.changes, "the rates of the system do not change"),
    "deadlines": (
        lambda system: system.deadlines and system.deadlines.factor,
        "the system has no [deadlines] factor",
    ),
    "perturbation": (lambda system: system.mode is mode.CHAINS, "the system has no chains"),
}
"""What must be there before a part of a table can vary, and what to say where it is not."""
