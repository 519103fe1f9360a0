"""How unequal a system's classes and machines are, measured and named."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .system import System

__all__ = ["HIGH", "Heterogeneity", "heterogeneity"]

HIGH = 0.3
"""A coefficient of variation from here on is high heterogeneity, below it low."""


class Heterogeneity(NamedTuple):
    """Task and machine heterogeneity as mean coefficients of variation, and their name."""

    task: float
    machine: float
    consistent: bool

    @property
    def name(self) -> str:
        """``HiHi``, ``HiLo``, ``LoHi`` or ``LoLo``: task heterogeneity first, machines second."""
        return "".join("Hi" if value >= HIGH else "Lo" for value in (self.task, self.machine))


def heterogeneity(system: System) -> Heterogeneity:
    """Measure a system's heterogeneity on its expected execution times, 1/rate.

    Task heterogeneity is how much the classes differ on one machine: the coefficient of variation
    down a column, averaged over machines. Machine heterogeneity is how much the machines differ
    on one class: the same along a row, averaged over classes. Pairs that cannot run don't count.
    A system is consistent when a machine that beats another on one class beats it, or ties, on
    every class that both can run.

    >>> measured = heterogeneity(System(arrivals=[1, 1], rates=[[2, 4], [10, 20]]))
    >>> measured.name, measured.consistent
    ('HiHi', True)
    """
    with np.errstate(divide="ignore"):
        times = np.where(system.rates > 0, 1 / system.rates, np.nan)
    everywhere = times[:, system.column]
    return Heterogeneity(
        task=_mean_variation(everywhere.T),
        machine=_mean_variation(everywhere),
        consistent=_consistent(times),
    )


def _mean_variation(rows: NDArray[np.float64]) -> float:
    return float(np.mean(np.nanstd(rows, axis=1) / np.nanmean(rows, axis=1)))


def _consistent(times: NDArray[np.float64]) -> bool:
    first, second = np.triu_indices(times.shape[1], k=1)
    gaps = times[:, first] - times[:, second]
    wins, losses = (gaps < 0).any(axis=0), (gaps > 0).any(axis=0)
    return not bool((wins & losses).any())
