"""Systems and policies in a few words, for lists to choose from."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

from ..allocation import allocate, long_run_of, time_limit
from ..allocation.lost_work import bound, load_in_words
from ..catalogue import experiment_names
from ..catalogue.entry import Entry
from ..model import InputError, System
from ..policies import policies
from ..simulation import check_system
from ..testbed import Experiment
from .queue import SECONDS

FEW_PAIRS = 100
"""Pairs of a class and a machine up to which a list shows the load of a system."""


def label_of(entry: Entry) -> str:
    """Return the line of a list for a system of the catalogue; nothing is solved for it."""
    parts = entry.parts or {}
    words = [entry.where, size_of(*(entry.shape or (0, 0)))]
    failing = bool(parts.get("failures"))
    if entry.expected_capacity:
        words.append(_load(1 / entry.expected_capacity, failing))
    if failing:
        words.append("machines fail")
    if entry.is_example:
        words.append("teaching example")
    return f"{entry.name} – {', '.join(words)}"


def brief(system: System) -> str:
    """Return size, load and failures of a system for a list; a large one has no load there."""
    words = [size_of(len(system.classes), len(system.machines))]
    with suppress(InputError):  # some have no single capacity
        if system.rates.size <= FEW_PAIRS:
            words.append(_load(allocate(system).load, system.failures is not None))
    return ", ".join([*words, *(["machines fail"] if system.failures else [])])


def _load(load: float, failing: bool) -> str:
    """Write the load for a list, which is that of the allocation: every machine is up."""
    return f"load {100 * load:.0f} %{' with all machines up' if failing else ''}"


def _apart_from_failures(system: System) -> str:
    """Say that failures count in the long-run load, and which load a list shows."""
    if system.failures is None:
        return ""
    with suppress(InputError), time_limit(SECONDS):
        load = 100 * allocate(system).load
        return f" (failures counted; {load:.1f} % with all machines up)"
    return " (failures counted)"


@cache
def published_experiments() -> dict[str, str]:
    """Return the published experiments with what a list says of each."""
    return {name: f"{name} – {brief(Experiment.find(name).system)}" for name in experiment_names()}


def facts(find: Callable[[], System]) -> tuple[str, dict[str, str]]:
    """Return a system in a few words, and the policies that do not fit; solve its allocation."""
    try:
        system = find()
    except InputError as error:
        return str(error), {}
    return summary_of(system), misfits(system)


def summary_of(system: System) -> str:
    """Return size, long-run load and failures of a system; this solves its allocation."""
    words = [size_of(len(system.classes), len(system.machines))]
    try:
        with time_limit(SECONDS):
            load = long_run_of(system).load
    except InputError:  # it takes too long
        load = None
    if load is not None:
        shown = load_in_words(system, load)
        words.append(f"long-run load {shown}{_apart_from_failures(system)}")
    if (bound(system, load) or 0) >= 1:
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


def size_of(classes: int, machines: int) -> str:
    """Write the size of a system.

    >>> size_of(1, 2)
    '1 class × 2 machines'
    """
    first = f"{classes:,} class{'' if classes == 1 else 'es'}"
    return f"{first} × {machines:,} machine{'' if machines == 1 else 's'}"


def _between(values: Sequence[float]) -> str:
    """Write values, or their range if they differ."""
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"
