"""Matrices of estimated times to compute (ETC): rows are tasks or classes, columns machines.

Draw them in two ways, sort them into usual forms, mark pairs that cannot run (infinity), turn one
into a system, and measure how unequal the classes and machines of a system are.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .error import InputError
from .system import Floats, System


def range_based(
    shape: tuple[int, int], rng: Generator, *, task_range: float, machine_range: float
) -> Floats:
    """Draw entry (i, j) as τ_i × U(1, machine_range), with τ_i from U(1, task_range).

    Ranges of 3,000 and 1,000 are usual for high heterogeneity of tasks and machines, 100 and 10
    for low.

    >>> range_based((3, 2), np.random.default_rng(1), task_range=100, machine_range=10).shape
    (3, 2)
    """
    _check(shape, above=1, task_range=task_range, machine_range=machine_range)
    return rng.uniform(1, task_range, (shape[0], 1)) * rng.uniform(1, machine_range, shape)


def cvb(
    shape: tuple[int, int], rng: Generator, *, mean: float, task_cv: float, machine_cv: float
) -> Floats:
    """Draw a matrix by the coefficient-of-variation method.

    Every task has a mean time q_i from a gamma distribution with the given mean and coefficient
    of variation ``task_cv``; its time on each machine is gamma with mean q_i and coefficient of
    variation ``machine_cv``.

    >>> rng = np.random.default_rng(1)
    >>> cvb((200, 50), rng, mean=20, task_cv=0.6, machine_cv=0.1).shape
    (200, 50)
    """
    _check(shape, mean=mean)
    _check(shape, above=1e-6, task_cv=task_cv, machine_cv=machine_cv)
    return _gamma(rng, _gamma(rng, np.full((shape[0], 1), mean), task_cv), machine_cv, shape)


def cvb_transposed(
    shape: tuple[int, int], rng: Generator, *, mean: float, task_cv: float, machine_cv: float
) -> Floats:
    """Draw a matrix by the same method with tasks and machines exchanged.

    Use it for low task and high machine heterogeneity: the means belong to the machines, so that
    tasks are alike on one machine.

    >>> rng = np.random.default_rng(1)
    >>> cvb_transposed((9, 4), rng, mean=20, task_cv=0.1, machine_cv=0.6).shape
    (9, 4)
    """
    return cvb(shape[::-1], rng, mean=mean, task_cv=machine_cv, machine_cv=task_cv).T


def consistent(etc: Floats) -> Floats:
    """Sort every row, so that a machine that is faster on one task is faster on all.

    >>> consistent(np.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]))
    array([[1., 2., 3.],
           [4., 5., 6.]])
    """
    return np.sort(np.asarray(etc, dtype=float), axis=1)


def semi_consistent(etc: Floats) -> Floats:
    """Sort the first, third, fifth … entry of every row; the rest stay as they are.

    >>> semi_consistent(np.array([[3.0, 1.0, 2.0, 9.0]]))
    array([[2., 1., 3., 9.]])
    """
    mixed = np.array(etc, dtype=float)
    mixed[:, ::2] = np.sort(mixed[:, ::2], axis=1)
    return mixed


def with_gaps(etc: Floats, rng: Generator, *, share: float) -> Floats:
    """Make a share of the entries infinite (cannot run), as far as possible.

    Every task keeps a machine and every machine a task, so a large share may not be reached.

    >>> np.isinf(with_gaps(np.ones((4, 5)), np.random.default_rng(1), share=0.5)).sum()
    np.int64(10)
    """
    if not 0 <= share < 1:
        raise InputError(f"share is {share:g}; expected at least 0 and less than 1")
    gaps = np.array(etc, dtype=float)
    wanted = round(share * gaps.size)
    in_row, in_column = np.isfinite(gaps).sum(axis=1), np.isfinite(gaps).sum(axis=0)
    for place in rng.permutation(gaps.size):
        row, column = divmod(int(place), gaps.shape[1])
        if wanted and in_row[row] > 1 and in_column[column] > 1:
            gaps[row, column] = np.inf
            in_row[row] -= 1
            in_column[column] -= 1
            wanted -= 1
    return gaps


def system(etc: Floats, arrivals: Any, **parts: Any) -> System:
    """Make a system of an ETC matrix: rate = 1 / time, 0 where the time is infinite.

    >>> system(np.array([[0.5, np.inf], [0.25, 0.1]]), arrivals=[1, 2]).rates
    array([[ 2.,  0.],
           [ 4., 10.]])
    """
    times = np.asarray(etc, dtype=float)
    if not (times > 0).all():
        raise InputError("an ETC entry is not > 0; expected times, infinite where it cannot run")
    return System(arrivals=arrivals, rates=1 / times, **parts)


def _gamma(rng: Generator, mean: Floats, cv: float, size: tuple[int, int] | None = None) -> Floats:
    shape = 1 / cv**2
    return rng.standard_gamma(shape, mean.shape if size is None else size) * (mean / shape)


def _check(shape: tuple[int, int], above: float = 0, **numbers: float) -> None:
    if len(shape) != 2 or min(shape) < 1:
        raise InputError(f"shape is {shape}; expected at least one task and one machine")
    for name, value in numbers.items():
        if not above < value < np.inf:
            raise InputError(f"{name} is {value:g}; expected a number > {above:g}")


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
    first, second = np.triu_indices(times.shape[1], k=1)
    gaps = times[:, first] - times[:, second]
    contradictory = (gaps < 0).any(axis=0) & (gaps > 0).any(axis=0)
    consistent = not bool(contradictory.any())
    return Heterogeneity(_mean_variation(everywhere.T), _mean_variation(everywhere), consistent)


def _mean_variation(rows: NDArray[np.float64]) -> float:
    return float(np.mean(np.nanstd(rows, axis=1) / np.nanmean(rows, axis=1)))
