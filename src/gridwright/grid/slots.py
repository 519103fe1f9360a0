"""Machines with several slots: a slot runs one job at a time, and policies see it as a machine.

The slots of a machine are called ``NAME/1``, ``NAME/2`` and so on; the only slot of a machine is
called as the machine itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..model import InputError, did_you_mean
from ..model.file import slot_names
from .job import Options

__all__ = ["Slots", "any_slot", "check_slots", "hosts_of", "slot_names", "slots_of", "slots_on"]
Slots = int | Mapping[str, int]
"""How many slots every machine has, or some machines by name; the others have 1."""
MOST_SLOTS = 10_000
"""The most slots that a machine may have."""


def check_slots(slots: Any, machines: Sequence[str]) -> None:
    """Check that slots are whole numbers, and that they name machines that are there."""
    by_name = slots if isinstance(slots, Mapping) else {}
    for name in by_name:
        if name not in machines:
            hint = did_you_mean(str(name), machines) or f"; there are {', '.join(machines)}"
            raise InputError(f"slots: no machine {name!r}{hint}")
    where = {f"slots[{name!r}]": number for name, number in by_name.items()}
    for what, number in where.items() if isinstance(slots, Mapping) else [("slots", slots)]:
        if type(number) is not int or not 1 <= number <= MOST_SLOTS:
            expected = f"a whole number from 1 to {MOST_SLOTS:,}"
            more = "" if by_name else ", or a table of machines and their numbers"
            raise InputError(f"{what} is {number!r}; expected {expected}{more}")
    names = Counter(each for name in machines for each in slot_names(name, slots_of(slots, name)))
    twice = [name for name, number in names.items() if number > 1]
    if twice:
        raise InputError(f"slots: two machines would be called {twice[0]!r}; rename one")


def slots_of(slots: Slots, machine: str) -> int:
    """Return how many slots a machine has.

    >>> slots_of({"big": 8}, "big"), slots_of({"big": 8}, "small"), slots_of(4, "small")
    (8, 1, 4)
    """
    return slots if isinstance(slots, int) else slots.get(machine, 1)


def hosts_of(executor: Any) -> list[str]:
    """Return the machine that each slot of an executor belongs to, as a list that may grow.

    The slots of an executor that does not tell are machines of their own.
    """
    found: list[str] = getattr(executor, "hosts", executor.machines)
    return found


def any_slot(task_class: str, options: Options, executor: Any) -> tuple[str, Options]:
    """Return the class and the options of a job that may run on any slot of its machine.

    Such jobs are a class of their own, which only these slots can run, so that the policy chooses
    the slot. Other jobs are returned as they are.
    """
    host = options.machine
    if not host or host in executor.machines:
        return task_class, options
    return f"{task_class}@{host}", options._replace(machine="", host=host)


def slots_on(executor: Any, machine: str) -> list[str]:
    """Return the names of the slots of a machine; none if there is no machine of that name."""
    pairs = zip(executor.machines, hosts_of(executor), strict=False)  # a worker may just join
    return [name for name, host in pairs if host == machine]
