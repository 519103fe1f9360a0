"""What changes between two allocations of a system, as when a machine fails."""

from typing import NamedTuple

import numpy as np

from .allocation import Allocation

__all__ = ["Change", "change"]


class Change(NamedTuple):
    """The capacity before and after, and the pairs (class, machine) that came and went."""

    before: float
    after: float
    gained: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]


def change(before: Allocation, after: Allocation) -> Change:
    """Compare two allocations of one system.

    >>> from gridwright import System, allocate
    >>> system = System(arrivals=[1, 1.5], rates=[[9, 5], [2, 1]])
    >>> change(allocate(system), allocate(system, down=[2]))
    Change(before=1.7647..., after=1.1612..., gained=(('1', '1'),), lost=(('1', '2'), ('2', '2')))
    """
    used, uses = before.shares > 0, after.shares > 0
    return Change(
        before.capacity, after.capacity, _pairs(after, uses & ~used), _pairs(before, used & ~uses)
    )


def _pairs(
    allocation: Allocation, which: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> tuple[tuple[str, str], ...]:
    system = allocation.system
    return tuple((system.classes[i], system.machines[j]) for i, j in np.argwhere(which))
