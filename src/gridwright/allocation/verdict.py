"""What a capacity means, in plain words."""

from typing import NamedTuple

from ..statistics import EDGE
from .allocation import Allocation
from .room import Floats

__all__ = ["Verdict", "span", "verdict"]


class Verdict(NamedTuple):
    """Whether any policy can stabilise a system, how far it is from the edge, and why."""

    stabilisable: bool
    margin: float
    """By how much all arrivals could grow (negative: must shrink) before the edge is reached."""
    words: str


def verdict(allocation: Allocation) -> Verdict:
    """Say whether any policy can stabilise a system, and how far it is from the edge.

    >>> from gridwright import System, allocate
    >>> print(verdict(allocate(System(arrivals=[5, 8], rates=[[8, 3], [4, 10]]))).words)
    A good policy can keep up: load 75.0 %. Arrivals could grow by 33.3 % before no policy could.
    """
    capacity = allocation.long_run_capacity
    margin = capacity - 1
    words = [_stranded(allocation)] if allocation.left_out else []
    if allocation.system.failures is not None:
        words.append(_failures(allocation))
    words.append(_edge(capacity))
    return Verdict(margin > EDGE and not allocation.left_out, margin, " ".join(words))


def _edge(capacity: float) -> str:
    if capacity <= 0:
        return "No policy can keep up: no machine that is up can run anything."
    load = f"load {100 / capacity:.1f} %"
    if capacity > 1 + EDGE:
        room = f"{100 * (capacity - 1):.1f} %"
        return (
            f"A good policy can keep up: {load}. "
            f"Arrivals could grow by {room} before no policy could."
        )
    if capacity >= 1 - EDGE:
        return f"No policy can keep up: {load}, exactly at the edge, where queues grow without end."
    cut = f"{100 * (1 - capacity):.1f} %"
    return f"No policy can keep up: {load}. Arrivals would have to fall by more than {cut}."


def _failures(allocation: Allocation) -> str:
    up = allocation.system.up_fraction[allocation.up]
    if not len(up):
        return "Every machine is down."
    which = "With the others up" if allocation.down else "With every machine up"
    load = f"{100 * allocation.load:.1f} %"
    return f"{which} the load is {load}; they are up {span(100 * up)} % of the time."


def span(values: Floats) -> str:
    """Write the smallest and the largest of some numbers, or the one that they all are.

    >>> import numpy as np
    >>> span(np.array([80.0, 100.0])), span(np.array([80.0, 80.01]))
    ('80.0 to 100.0', '80.0')
    """
    low, high = f"{values.min():.1f}", f"{values.max():.1f}"
    return low if low == high else f"{low} to {high}"


def _stranded(allocation: Allocation) -> str:
    names = ", ".join(map(repr, allocation.left_out))
    one = len(allocation.left_out) == 1
    return (
        f"{'Class' if one else 'Classes'} {names} cannot run on any machine that is up and "
        f"{'is' if one else 'are'} left out."
    )
