"""Random systems of the families that studies use, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.random import Generator

from ..allocation.planner import MANY_PLANS, compile_simplex
from ..model import Floats, InputError, System, did_you_mean, etc
from .variation import varied

INCONSISTENT = "inconsistent"
"""The family that was there first; its systems are called "random"."""
CLASSES, MACHINES = (2, 6), (2, 20)
LOADS = (0.3, 0.99)
VARIATION = (0.1, 1.0)
"""Coefficients of variation of ETC matrices."""
RATE_VARIATION = 0.5
"""The coefficient of variation of the rates of models and pools."""
COSTS = (1.0, 5.0)
"""Holding costs of models and pools."""
POOL = (1, 5)
"""Machines in a pool."""


class Shape(NamedTuple):
    """How large the systems of ETC matrices are."""

    classes: tuple[int, int]
    machines: tuple[int, int]


class Family(NamedTuple):
    """A family of random systems."""

    about: str
    draw: Callable[[Generator, Shape], System]
    """Draw a system; its arrivals are scaled to the load afterwards."""


def random_systems(
    number: int,
    seed: int = 1,
    family: str = INCONSISTENT,
    *,
    classes: tuple[int, int] = CLASSES,
    machines: tuple[int, int] = MACHINES,
    loads: tuple[float, float] = LOADS,
) -> Iterator[System]:
    """Draw systems of a family, with loads from 0.3 to 0.99 by default.

    Parameters
    ----------
    number
        How many are drawn.
    seed
        The same seed gives the same systems, however many are drawn.
    family
        ``inconsistent``, ``semi_consistent``, ``consistent``, ``n_model``, ``w_model``,
        ``m_model`` or ``skills``.
    classes, machines
        The smallest and largest number of classes and machines, of the first three families.
    loads
        The smallest and largest load.

    Examples
    --------
    >>> [system.shape for system in random_systems(3)]
    [(4, 11), (4, 8), (5, 10)]
    >>> next(random_systems(1, family="n_model")).rates > 0
    array([[ True,  True],
           [False,  True]])
    """
    if family not in FAMILIES:
        hint = did_you_mean(family, FAMILIES) or f"; there are {', '.join(FAMILIES)}"
        raise InputError(f"no family {family!r}{hint}")
    if number > MANY_PLANS:  # each has a load, which is found like a plan
        compile_simplex()
    first = family == INCONSISTENT
    own, called = ([], "random") if first else ([crc32(family.encode())], family)
    for k in range(number):
        rng = np.random.default_rng([seed, k, *own])
        system = FAMILIES[family].draw(rng, Shape(classes, machines))
        system = system.replace(name=f"{called} {seed}:{k + 1}")
        yield varied(system, "load", rng.uniform(*loads))


def _matrix(rng: Generator, shape: Shape, order: Callable[[Floats], Floats] | None) -> System:
    """Draw a system of an ETC matrix, half of them with tasks and machines exchanged."""
    size = (
        int(rng.integers(shape.classes[0], shape.classes[1] + 1)),
        int(rng.integers(shape.machines[0], shape.machines[1] + 1)),
    )
    draw = etc.cvb if rng.random() < 0.5 else etc.cvb_transposed
    task_cv, machine_cv = rng.uniform(*VARIATION, 2)
    times = draw(size, rng, mean=1.0, task_cv=task_cv, machine_cv=machine_cv)
    rates = np.clip(1 / (order(times) if order else times), 0.01, 100.0).round(4)
    return System(arrivals=rng.dirichlet(np.ones(size[0])) + 0.01, rates=rates)


def _model(rng: Generator, skills: list[list[int]]) -> System:
    """Draw rates and costs of a model with single machines, where all machines are pooled.

    Machines divide their time at random among all that they can run, and what they then finish
    is what arrives: so an optimum uses every pair, and no machine has capacity of its own to spare.
    """
    can = np.array(skills, dtype=bool)
    rates = np.where(can, _rates(rng, can.shape), 0)
    shares = np.where(can, rng.uniform(0.2, 0.8, can.shape), 0)
    shares /= shares.sum(axis=0)
    costs = rng.uniform(*COSTS, len(can)).round(1)
    return System(arrivals=(shares * rates).sum(axis=1), rates=rates, costs=costs.tolist())


def _pools(rng: Generator, shape: Shape) -> System:
    """Draw pools of equal machines, each with one to three skills."""
    classes, pools = (int(each) for each in rng.integers(3, 7, 2))
    pools = max(classes, pools)
    can = np.zeros((classes, pools), dtype=bool)
    for pool in range(pools):
        can[pool % classes, pool] = True
        can[rng.permutation(classes)[: rng.integers(0, 3)], pool] = True
    rates = np.where(can, _rates(rng, (classes, 1)) * _rates(rng, can.shape), 0).round(4)
    counts = rng.integers(POOL[0], POOL[1] + 1, pools).tolist()
    arrivals = rng.dirichlet(np.ones(classes)) + 0.01
    costs = rng.uniform(*COSTS, classes).round(1)
    return System(arrivals=arrivals, rates=rates, counts=counts, costs=costs.tolist())


def _rates(rng: Generator, size: tuple[int, int]) -> Floats:
    form = RATE_VARIATION**-2
    return np.clip(rng.gamma(form, 1 / form, size), 0.05, 20.0).round(4)


FAMILIES: dict[str, Family] = {
    "inconsistent": Family(
        "ETC matrices by the coefficient-of-variation method (CVB), as drawn",
        lambda rng, shape: _matrix(rng, shape, None),
    ),
    "semi_consistent": Family(
        "the same, every other machine of which is sorted: faster at one class, faster at all",
        lambda rng, shape: _matrix(rng, shape, etc.semi_consistent),
    ),
    "consistent": Family(
        "the same, all machines of which are sorted",
        lambda rng, shape: _matrix(rng, shape, etc.consistent),
    ),
    "n_model": Family(
        "2 classes, 2 machines; machine 2 runs both classes",
        lambda rng, shape: _model(rng, [[1, 1], [0, 1]]),
    ),
    "w_model": Family(
        "3 classes, 2 machines; both run class 2",
        lambda rng, shape: _model(rng, [[1, 0], [1, 1], [0, 1]]),
    ),
    "m_model": Family(
        "2 classes, 3 machines; machine 2 runs both classes",
        lambda rng, shape: _model(rng, [[1, 1, 0], [0, 1, 1]]),
    ),
    "skills": Family(
        "3 to 6 classes, 3 to 6 pools of 1 to 5 equal machines, each pool with 1 to 3 skills",
        _pools,
    ),
}
"""The families by name. Models are named as by Garnett and Mandelbaum 2000, "An introduction to
skills-based routing and its operational complexities"; CVB is from Ali et al. 2000."""
