"""``gaps``: how far policies are from the optimum on many small random systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .families import INCONSISTENT, random_systems
from .optimum import Optimum, optimum
from .simulate import PolicyGiven

SMALL: dict[str, Any] = {"classes": (2, 3), "machines": (2, 4), "loads": (0.3, 0.95)}
"""The systems that are drawn: most of them are small enough for the exact optimum."""


class Far(NamedTuple):
    """How far one policy is from the optimum."""

    policy: str
    mean: float
    """Mean of the gaps on the systems that were solved: shares above the least mean number."""
    worst: float
    worst_on: str
    apart: float
    """Mean of the gaps to the lower bound, on the systems that were too large."""
    unstable: int
    """On how many systems it is unstable or undecided; these do not count in the means."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """The optima of many systems, and how far policies are from them."""

    optima: tuple[Optimum, ...]

    @property
    def solved(self) -> tuple[Optimum, ...]:
        """Those for which the optimum of pull and push was computed."""
        return tuple(each for each in self.optima if each.pull is not None)

    @property
    def policies(self) -> tuple[Far, ...]:
        """How far each policy is."""
        first = self.optima[0].policies
        return tuple(self._far(number) for number in range(len(first)))

    def _far(self, number: int) -> Far:
        solved = {each.system.name: each.policies[number].gap for each in self.solved}
        apart = [each.policies[number].gap for each in self.optima if each.pull is None]
        known = {name: gap for name, gap in solved.items() if not np.isnan(gap)}
        bounded = [gap for gap in apart if not np.isnan(gap)]
        worst_on = max(known, key=lambda name: known[name], default="")
        return Far(
            policy=str(self.optima[0].policies[number].result.policy),
            mean=float(np.mean(list(known.values()))) if known else np.nan,
            worst=known.get(worst_on, np.nan),
            worst_on=worst_on,
            apart=float(np.mean(bounded)) if bounded else np.nan,
            unstable=len(self.optima) - len(known) - len(bounded),
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "systems": [each.as_json() for each in self.optima],
            "policies": [each._asdict() for each in self.policies],
        }


def gaps(
    number: int,
    policies: Sequence[PolicyGiven],
    replications: int = 10,
    seed: int = 1,
    *,
    family: str = INCONSISTENT,
    tasks: float = 100_000,
    progress: Callable[[str, float], None] = lambda doing, done: None,
) -> Gaps:
    """Compute the optima of small random systems, and simulate policies on them.

    By default the systems have 2 or 3 classes, 2 to 4 machines, and loads from 0.3 to 0.95. Those
    that are too large for the optimum are compared with a lower bound, and reported apart.

    Parameters
    ----------
    number
        How many systems are drawn.
    policies, replications, seed
        As for ``optimum``; the seed also draws the systems.
    family
        The family of the systems, as for ``random_systems``.
    tasks
        The mean number of tasks in a run; the first tenth does not count.
    progress
        Called with the name of a system, and the share done.

    Examples
    --------
    >>> found = gaps(1, ["mct"], 2, seed=35, tasks=2000)
    >>> [each.policy for each in found.policies]
    ['mct']
    """
    optima: list[Optimum] = []
    for system in random_systems(number, seed, family, **SMALL):
        progress(system.name, len(optima) / number)
        horizon = tasks / float(system.arrival_rates.sum())
        optima.append(optimum(system, policies, horizon, replications, seed, accuracy=1e-4))
    return Gaps(tuple(optima))
