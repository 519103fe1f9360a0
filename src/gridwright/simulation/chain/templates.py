"""The templates of one replication: as they are given, or drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ...model import RandomTemplates, System

__all__ = ["Templates", "templates_of"]

Floats = NDArray[np.float64]


class Templates(NamedTuple):
    """The templates of a replication, and the times of all their applications."""

    applications: NDArray[np.int64]  # [template]
    rate: Floats
    latency: Floats
    customer: NDArray[np.int64]
    times: Floats  # [row, machine]: the applications of the first template, of the second …


def templates_of(system: System, rng: Generator) -> Templates:
    """Return the templates of a system, drawn with a generator where it draws them."""
    drawn = system.random_templates
    found = _given(system) if drawn is None else _drawn(drawn, system, rng)
    return found._replace(times=np.ascontiguousarray(found.times / system.mean_availability))


def _given(system: System) -> Templates:
    names = [customer.name for customer in system.customers]
    templates = system.templates
    return Templates(
        np.array([each.applications for each in templates]),
        np.array([each.rate for each in templates]),
        np.array([each.latency for each in templates]),
        np.array([names.index(each.customer) if each.customer else 0 for each in templates]),
        np.concatenate([each.times[:, system.column] for each in templates]),
    )


def _drawn(drawn: RandomTemplates, system: System, rng: Generator) -> Templates:
    """Draw templates; customers get them in turn."""
    count, machines = drawn.count, system.shape[1]
    cv = drawn.task_cv + drawn.task_cv_spread * _bounded_normals(rng, count)
    mean = drawn.mean + drawn.mean_spread * _bounded_normals(rng, count)
    rate = drawn.rate + drawn.rate_spread * _bounded_normals(rng, count)
    spread = drawn.applications_spread
    fewer = drawn.method == "entrywise" and spread > 0
    applications = drawn.applications + rng.integers(-spread, spread + (not fewer), count)
    rows = (np.repeat(mean, applications), np.repeat(cv, applications))
    times = _times(drawn, *rows, machines, rng)
    return Templates(
        applications,
        np.maximum(rate, 0.0),
        drawn.allowance * mean * applications,
        np.arange(count) % max(len(system.customers), 1),
        np.maximum(np.floor(times), 1.0),
    )


def _times(
    drawn: RandomTemplates, mean: Floats, cv: Floats, machines: int, rng: Generator
) -> Floats:
    """Draw times to compute [row, machine] by the coefficient-of-variation method."""
    shape, each = 1 / cv[:, None] ** 2, 1 / drawn.machine_cv**2
    size = (len(mean), machines)
    if drawn.method == "entrywise":
        shape, each = np.maximum(np.floor(shape), 1.0), max(np.floor(each), 1.0)
        means = rng.standard_gamma(shape, size) * (mean[:, None] / shape)
        return rng.standard_gamma(each, size) * (means / each)
    if drawn.method == "calibrated":
        mean, shape, each = 0.9 * mean, shape / 0.3**2, each / 1.25**2
    means = rng.standard_gamma(shape) * (mean[:, None] / shape)
    return rng.standard_gamma(each, size) * (means / each)


def _bounded_normals(rng: Generator, size: int) -> Floats:
    """Draw from the standard normal distribution within (−1, 1)."""
    values = rng.standard_normal(size)
    while (wild := np.abs(values) >= 1).any():
        values[wild] = rng.standard_normal(np.count_nonzero(wild))
    return values
