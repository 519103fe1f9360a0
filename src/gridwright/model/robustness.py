"""How surely the tasks on machines meet their deadlines: the stochastic robustness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .pmf import GridPmf

__all__ = ["Robustness", "robustness"]

NEVER = 1e-12
"""A probability below this is none."""


class Robustness(NamedTuple):
    """How surely what machines hold is done on time."""

    rho: float
    """ρ, the probability that all of it is."""
    counted: float
    """The published count: Σ ρ_j (n_j − m_j), tasks that cannot be on time left out of both."""
    expected: float
    """The expected number on time, Σ P(finish ≤ deadline)."""


def robustness(*machines: Sequence[tuple[GridPmf, float]]) -> Robustness:
    """Judge an allocation: for each machine its tasks in order, each a pmf and a deadline.

    The pmf of the first is that of its finish, in absolute time: ``pmf.shift(now)`` where the
    machine is idle, ``pmf.shift(begun).after(now)`` where the task runs. Those of the others are
    of their execution times.

    >>> run = GridPmf(1, [0, 0.5, 0.5])
    >>> robustness([(run.shift(10), 11), (run, 13)])
    Robustness(rho=0.5, counted=1.0, expected=1.25)
    """
    rho, counted, expected = 1.0, 0.0, 0.0
    for tasks in machines:
        own, missed = 1.0, 0
        given: GridPmf | None = None
        free: GridPmf | None = None
        for pmf, deadline in tasks:
            given = pmf if given is None else given.convolve(pmf)
            free = pmf if free is None else free.convolve(pmf)
            expected += free.by(deadline)
            chance = given.by(deadline)
            if chance <= NEVER:
                missed += 1
            else:
                own *= chance
                given = given.truncate(deadline)
        rho *= 0.0 if missed else own
        counted += own * (len(tasks) - missed)
    return Robustness(rho, counted, expected)
