"""Systems drawn at random, for statements about policies that hold beyond a few examples."""

from collections.abc import Iterator

import numpy as np

from ..model import System, etc
from .variation import varied

__all__ = ["random_systems"]

CLASSES, MACHINES = (2, 6), (2, 20)
LOADS = (0.3, 0.99)
VARIATION = (0.1, 1.0)


def random_systems(number: int, seed: int = 1) -> Iterator[System]:
    """Draw systems: 2 to 6 classes, 2 to 20 machines, loads from 0.3 to 0.99.

    Rates are from ETC matrices by the coefficient-of-variation method, half of them with tasks and
    machines exchanged, with coefficients from 0.1 to 1; the classes have random shares of the
    arrivals.

    Examples
    --------
    >>> [system.shape for system in random_systems(3)]
    [(4, 11), (4, 8), (5, 10)]
    """
    for k in range(number):
        rng = np.random.default_rng([seed, k])
        shape = (
            int(rng.integers(CLASSES[0], CLASSES[1] + 1)),
            int(rng.integers(MACHINES[0], MACHINES[1] + 1)),
        )
        draw = etc.cvb if rng.random() < 0.5 else etc.cvb_transposed
        task_cv, machine_cv = rng.uniform(*VARIATION, 2)
        times = draw(shape, rng, mean=1.0, task_cv=task_cv, machine_cv=machine_cv)
        rates = np.clip(1 / times, 0.01, 100.0).round(4)
        arrivals = rng.dirichlet(np.ones(shape[0])) + 0.01
        system = System(name=f"random {seed}:{k + 1}", arrivals=arrivals, rates=rates)
        yield varied(system, "load", rng.uniform(*LOADS))
