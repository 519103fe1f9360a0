"""The pmfs of a system as tables: the true ones, and those that policies believe in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .distribution import Distribution, Pmf
from .error import InputError
from .pmf import GridPmf, moved
from .system import Floats, System

LARGEST = 50_000_000
"""Entries of a table at most: 400 MB."""

Pmfs = list[list[GridPmf | None]]
"""By class and machine; None where the machine cannot run the class."""


class Tables(NamedTuple):
    """Pmfs of execution times as compiled code reads them."""

    mean: Floats  # [class, machine], infinite where it cannot run it
    mass: Floats  # [class, machine, bin]
    cdf: Floats
    after: Floats  # mean of a time, given that it is longer than a bin's
    bins: NDArray[np.int64]  # [class, machine]
    width: float


def true_pmfs(system: System, rng: Generator) -> Pmfs:
    """Make the pmf of every class and machine.

    Machines of a column have the same; drawn ones are drawn for every machine. By default, the
    width of a bin is a twentieth of the mean best time.
    """
    source, width = system.pmf, float(np.mean(1 / system.effective.max(axis=1))) / 20
    if source is not None and source.width is not None:
        width = source.width
    found: Pmfs = []
    for i in range(len(system.classes)):
        row: list[GridPmf | None] = []
        for j, column in enumerate(system.column):
            rate, share = system.effective[i, j], system.mean_availability[j]
            if rate <= 0:
                row.append(None)
            elif source is not None and source.samples is not None:
                row.append(_drawn(system, i, 1 / rate, width, rng))
            elif source is not None and source.times:
                times = source.times[i][column]
                row.append(_made(times, times.mean / share, width))
            elif source is not None and source.measured:
                times = source.measured[system.classes[i]][system.groups[column]]
                row.append(GridPmf.from_samples(np.array(times) / share, width))
            else:
                row.append(_made(system.per_class(system.execution)[i], 1 / rate, width))
        found.append(row)
    return found


def _made(distribution: Distribution, mean: float, width: float) -> GridPmf:
    if isinstance(distribution, Pmf):
        values = np.array(distribution.values) * mean / distribution.mean
        return GridPmf.from_histogram(values, distribution.probabilities, width)
    return GridPmf.of(distribution, mean, width)


def _drawn(system: System, i: int, mean: float, width: float, rng: Generator) -> GridPmf:
    """Draw samples, and make their histogram."""
    assert system.pmf is not None
    size = system.pmf.samples
    assert size is not None
    if system.pmf.scale is not None:
        scale = rng.uniform(*system.pmf.scale)
        return GridPmf.from_samples(rng.gamma(mean / scale, scale, size), width)
    shape = system.per_class(system.execution)[i]
    draws = np.asarray(shape.sample(rng, size), dtype=float) * mean / shape.mean
    return GridPmf.from_samples(draws, width)


def believed_pmfs(system: System, truth: Pmfs, rng: Generator) -> Pmfs:
    """Return the pmfs that policies see: the true ones, unless the system assumes others."""
    assumed = system.assumed
    if assumed is None:
        return truth
    wrong = assumed.inaccuracy.rates
    errors = 1 + rng.uniform(-wrong, wrong, system.shape)
    rates = system.believed.effective * errors
    found: Pmfs = []
    for i, row in enumerate(truth):
        found.append([])
        for j, pmf in enumerate(row):
            if pmf is None or rates[i, j] <= 0:
                found[i].append(None)
                continue
            factor = assumed.scale * system.effective[i, j] / rates[i, j]
            if assumed.execution is not None:
                shape = system.per_class(system.believed.execution)[i]
                pmf = _made(shape, pmf.mean * factor, pmf.width)
            elif factor != 1:
                pmf = pmf.scale(factor)
            bins = round(assumed.shift / pmf.width)
            found[i].append(moved(pmf, bins) if bins else pmf)
    return found


def table_of(pmfs: Sequence[Sequence[GridPmf | None]]) -> Tables:
    """Write pmfs as tables."""
    shape = len(pmfs), len(pmfs[0])
    every = [pmf for row in pmfs for pmf in row if pmf is not None]
    longest = max(len(pmf.mass) for pmf in every)
    if shape[0] * shape[1] * longest > LARGEST:
        raise InputError(
            f"the pmfs of {shape[0]} classes on {shape[1]} machines have up to {longest:,} bins, "
            "which is too much; choose a greater [pmf] width"
        )
    tables = Tables(
        mean=np.full(shape, np.inf),
        mass=np.zeros((*shape, longest)),
        cdf=np.ones((*shape, longest)),
        after=np.zeros((*shape, longest)),
        bins=np.zeros(shape, np.int64),
        width=float(every[0].width),
    )
    for i, row in enumerate(pmfs):
        for j, pmf in enumerate(row):
            if pmf is not None:
                n = len(pmf.mass)
                tables.bins[i, j], tables.mean[i, j] = n, pmf.mean
                tables.mass[i, j, :n], tables.cdf[i, j, :n] = pmf.mass, pmf.cdf
                tables.after[i, j, :n] = _mean_after(pmf)
    return tables


def _mean_after(pmf: GridPmf) -> Floats:
    """Return, for every bin, the mean of what is longer; 0 where nothing is."""
    left = np.append(np.cumsum(pmf.mass[::-1])[::-1][1:], 0.0)
    total = np.append(np.cumsum((pmf.mass * pmf.values)[::-1])[::-1][1:], 0.0)
    return np.divide(total, left, out=np.zeros(len(left)), where=left > 1e-12)


def allowances(system: System, mean: Floats) -> Floats:
    """Return the time from arrival to deadline of every class; infinite without deadlines."""
    rule = system.deadlines
    if rule is None:
        return np.full(len(system.classes), np.inf)
    if rule.allowance is not None:
        return np.array(np.broadcast_to(rule.allowance, len(system.classes)), dtype=float)
    assert rule.factor is not None
    best = [np.sort(row[np.isfinite(row)])[: rule.best].mean() for row in mean]
    return rule.factor * np.array(best)
