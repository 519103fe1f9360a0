"""Systems and policies in a few words, for lists to choose from."""

from collections.abc import Sequence

from ..allocation import long_run_of, time_limit
from ..catalogue.entry import Entry
from ..model import InputError, System
from ..policies import policies
from ..simulation import check_system
from .queue import SECONDS


def label_of(entry: Entry) -> str:
    """Return the line of a list for a system of the catalogue; nothing is solved for it."""
    parts = entry.parts or {}
    words = [entry.where, _size(*(entry.shape or (0, 0)))]
    if entry.expected_capacity:
        words.append(f"load {100 / entry.expected_capacity:.0f} %")
    if parts.get("failures"):
        words.append("machines fail")
    if entry.is_example:
        words.append("teaching example")
    return f"{entry.name} – {', '.join(words)}"


def summary_of(system: System) -> str:
    """Return size, long-run load and failures of a system; this solves its allocation."""
    words = [_size(len(system.classes), len(system.machines))]
    try:
        with time_limit(SECONDS):
            load = long_run_of(system).load
    except InputError:  # it takes too long
        load = None
    if load is not None:
        words.append(f"long-run load {100 * load:.1f} %")
    if load is not None and load >= 1:
        words.append("more than any policy can do")
    if system.failures is None:
        words.append("machines never fail")
    else:
        failures = system.failures
        ups, downs = map(system.per_machine, (failures.mean_uptime, failures.mean_repair))
        times = f"up for {_between(ups)}, away for {_between(downs)}"
        words.append(f"machines fail: on average {times} time units")
    return ", ".join(words)


def misfits(system: System) -> dict[str, str]:
    """Return the shipped policies that cannot run a system, with the reasons."""
    found = {}
    for policy in policies().values():
        if policy.is_shipped:
            try:
                check_system(system, policy)
            except InputError as error:
                found[policy.name] = str(error)
    return found


def _size(classes: int, machines: int) -> str:
    """Write the size of a system.

    >>> _size(1, 2)
    '1 class × 2 machines'
    """
    first = f"{classes:,} class{'' if classes == 1 else 'es'}"
    return f"{first} × {machines:,} machine{'' if machines == 1 else 's'}"


def _between(values: Sequence[float]) -> str:
    """Write values, or their range if they differ."""
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"
