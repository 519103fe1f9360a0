"""``adversary``: search for the system on which a policy loses most to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import InputError, System
from ..policies import Policy, check_central
from ..policies import find as find_policy
from ..tabular import Tabular
from .ahead import Wanted, together
from .compare import Comparison, compare
from .device import GPU
from .results_by_kind import check_alike
from .simulate import PolicyGiven, simulate
from .variation import varied

SPREAD = 20.0
"""The largest ratio between two rates, and between the arrivals of two classes."""
SEARCH = {"tasks": 10_000, "replications": 2}
PROOF = {"tasks": 100_000, "replications": 10}
HEAT = 0.1, 0.005
"""The temperature of the annealing at first and at the end, in the logarithm of the ratio."""


class Point(NamedTuple):
    """A system in the search: logarithms of rates and arrivals, and the load."""

    rates: NDArray[np.float64]
    arrivals: NDArray[np.float64]
    load: float


@dataclass(frozen=True, eq=False)
class Adversary(Tabular):
    """The system found, and a comparison on it with random numbers that the search did not use."""

    system: System
    comparison: Comparison
    path: tuple[float, ...]
    """The ratio after every step of the search."""

    @property
    def ratio(self) -> float:
        """The policy's mean number in system over that of the best of the others, in these runs."""
        first, *others = (result.mean_number.mean for result in self.comparison.results)
        return first / min(others)

    @property
    def verdict(self) -> str:
        """The ratio in words; with unstable policies it depends on the length of the run."""
        found = [r for r in self.comparison.results if not r.stable]
        words = " and ".join(f"{r.policy} is {r.stability.word}" for r in found)
        return f"ratio {self.ratio:.3f}" + (f" in runs of this length ({words})" if words else "")

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each policy on the system found."""
        return self.comparison.rows()

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "ratio": self.ratio,
            "verdict": self.verdict,
            "arrivals": self.system.arrival_rates.tolist(),
            "rates": self.system.nominal.tolist(),
            "path": list(self.path),
            "comparison": self.comparison.as_json(),
        }


def adversary(
    policy: PolicyGiven,
    against: Sequence[PolicyGiven],
    classes: int = 2,
    machines: int = 3,
    load: tuple[float, float] = (0.3, 0.95),
    steps: int = 300,
    seed: int = 1,
    *,
    on: str | None = None,
    progress: Callable[[float, float], None] = lambda done, ratio: None,
) -> Adversary:
    """Search, by simulated annealing, for the system where a policy loses most.

    The search varies the rates and the shares of the classes, each within a factor of 20, and the
    load. It also finds systems on which the random numbers happen to be bad for the policy, so the
    system found is simulated again with other random numbers.

    Parameters
    ----------
    policy
        The policy to search against.
    against
        Others: the best of them on a system is what counts.
    classes, machines, load
        The size of the system, and the lowest and the highest load.
    steps
        Systems tried.
    on
        The address of a Dask scheduler whose workers run the simulations, or ``"gpu"``; here by
        default.
    progress
        Called with the share done and the ratio so far.

    Examples
    --------
    >>> found = adversary("mct", ["lpas"], classes=2, machines=2, steps=10)
    >>> found.ratio > 1
    True
    """
    chosen = [find_policy(each) for each in (policy, *against)]
    if len(chosen) < 2:
        raise InputError("there is no policy to compare with; name at least one other policy")
    check_alike(chosen)
    check_central(chosen[0], "the search is among systems for")
    if min(classes, machines) < 1 or steps < 1:
        raise InputError("expected at least one class, one machine and one step")
    if not 0 < load[0] <= load[1] < 1:
        raise InputError(f"load is {load[0]:g} to {load[1]:g}; expected numbers between 0 and 1")
    rng = np.random.default_rng(seed)
    here = Point(
        rng.uniform(0, np.log(SPREAD), (classes, machines)),
        rng.uniform(0, np.log(SPREAD), classes),
        float(rng.uniform(*load)),
    )
    worth = best = _loss(here, chosen, seed, on)
    found, path = here, [float(np.exp(best))]
    for step in range(1, steps):
        progress(step / steps, float(np.exp(best)))
        there = _moved(here, load, rng)
        loss = _loss(there, chosen, seed, on)
        heat = HEAT[0] * (HEAT[1] / HEAT[0]) ** (step / steps)
        if loss > worth or rng.random() < np.exp((loss - worth) / heat):
            here, worth = there, loss
        if loss > best:
            found, best = there, loss
        path.append(float(np.exp(best)))
    system = _system(found)
    length = PROOF["tasks"] / float(system.arrival_rates.sum())
    comparison = compare(
        system, chosen, length, PROOF["replications"], seed + 1, warmup=0.1 * length, on=on
    )
    return Adversary(system, comparison, tuple(path))


def _moved(here: Point, load: tuple[float, float], rng: np.random.Generator) -> Point:
    """Change a third of the numbers a little, within their limits."""

    def step(values: Any, low: float, high: float, size: float) -> Any:
        change = rng.normal(0, size, np.shape(values)) * (rng.random(np.shape(values)) < 1 / 3)
        return np.clip(values + change, low, high)

    return Point(
        step(here.rates, 0.0, np.log(SPREAD), 0.6),
        step(here.arrivals, 0.0, np.log(SPREAD), 0.6),
        float(step(here.load, *load, 0.1)),
    )


def _system(point: Point) -> System:
    rates = np.exp(point.rates).round(3)
    arrivals = np.exp(point.arrivals)
    system = varied(System(arrivals=arrivals, rates=rates), "load", point.load)
    return system.replace(name="adversary", arrivals=system.arrival_rates.round(5))


def _loss(point: Point, policies: Sequence[Policy], seed: int, on: str | None) -> float:
    """Return the logarithm of the ratio that is searched for."""
    system = _system(point)
    length = SEARCH["tasks"] / float(system.arrival_rates.sum())
    times = SEARCH["replications"]
    options: dict[str, Any] = {"on": on}
    if on == GPU:
        calls = [Wanted(system, each, length, times, seed) for each in policies]
        options = together(calls, options)
    means = [
        simulate(system, each, length, times, seed, **options).mean_number.mean for each in policies
    ]
    return float(np.log(means[0] / min(means[1:])))
