"""What a capacity means, in plain words."""

from typing import NamedTuple

from .allocation import Allocation

__all__ = ["Verdict", "verdict"]

EDGE = 1e-9
"""A capacity this close to 1 counts as 1."""


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
    up = allocation.system.up_fraction
    low, high = 100 * up.min(), 100 * up.max()
    share = f"{low:.1f} %" if high - low < 0.05 else f"{low:.1f} to {high:.1f} %"
    load = f"{100 * allocation.load:.1f} %"
    return f"With every machine up the load is {load}; they are up {share} of the time."


def _stranded(allocation: Allocation) -> str:
    names = ", ".join(map(repr, allocation.left_out))
    one = len(allocation.left_out) == 1
    return (
        f"{'Class' if one else 'Classes'} {names} cannot run on any machine that is up and "
        f"{'is' if one else 'are'} left out."
    )
