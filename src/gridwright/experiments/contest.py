"""``contest``: several policies on many systems; which is best where, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import allocate
from ..model import InputError, System
from ..policies import BATCH, CHAIN
from ..tabular import Tabular
from .ahead import Wanted, together
from .compare import ALONE, Comparison, Difference, compare, difference, may_be_better
from .device import GPU
from .results_by_kind import choose_policies
from .simulate import PolicyGiven, SystemGiven, resolve

WARMUP = 0.1
"""Share of a run that does not count: it starts empty, which favours slow policies."""


VERDICTS = ("better", "same", "worse", "unranked")


class Bout(NamedTuple):
    """The results of all policies on one system."""

    system: System
    load: float
    comparison: Comparison

    @property
    def means(self) -> NDArray[np.float64]:
        """The mean number in system of every policy, or its mean cost if the system has costs."""
        return np.array([result.figure(result.holding).mean for result in self.comparison.results])

    @property
    def against_best(self) -> Difference | None:
        """The mean number, or cost, of the best stable rival, minus that of the first policy.

        None where the first or all of the others are unstable or undecided. Undecided ones do not
        count here; the verdict counts them.
        """
        first, *others = self.comparison.results
        ranked = [result for result in others if result.stable]
        if not (first.stable and ranked):
            return None
        best = min(ranked, key=lambda result: result.figure(result.holding).mean)
        return difference(first, best, first.holding)

    @property
    def verdict(self) -> str:
        """How the first policy did against the best of the others: better, same or worse.

        A stable policy is better than unstable ones. "unranked" if no policy is stable, if the
        first is undecided, or if an undecided one may be better than the first, which is not worse
        than the stable ones.
        """
        first, *others = self.comparison.results
        found = self.against_best
        if found is not None and found.winner == found.second:
            return "worse"
        if not first.stable:
            beaten = first.stable is False and any(other.stable for other in others)
            return "worse" if beaten else "unranked"
        if any(may_be_better(other, first, first.holding) for other in others):
            return "unranked"
        return "same" if found is not None and found.winner is None else "better"

    @property
    def ratios(self) -> NDArray[np.float64]:
        """The mean number of every policy over the least; NaN for those that are not ranked."""
        stable = np.array([bool(result.stable) for result in self.comparison.results])
        means = np.where(stable, self.means, np.nan)
        return np.asarray(means / np.nanmin(means)) if stable.any() else means


class Standing(NamedTuple):
    """The results of a policy over all systems; ratios are of its mean number to the least.

    Ratios are over the systems on which the policy is stable, and to the stable policies.
    """

    policy: str
    best: float
    """Share of all systems where it is stable and has the least mean number."""
    mean_ratio: float
    """Geometric mean; NaN, like the worst ratio, for a policy that is stable on no system."""
    worst_ratio: float
    worst_on: str
    unstable: int
    """Systems on which it is unstable."""
    undecided: int
    """Systems on which the runs are too short to tell."""


@dataclass(frozen=True, eq=False)
class Contest(Tabular):
    """Results of policies under the same arrivals and amounts of work on many systems."""

    policies: tuple[str, ...]
    bouts: tuple[Bout, ...]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """[system, policy]: the mean number over the least of the stable policies, or NaN."""
        return np.array([bout.ratios for bout in self.bouts])

    @property
    def standings(self) -> tuple[Standing, ...]:
        """How every policy did, in the order given."""
        return tuple(self._standing(k) for k in range(len(self.policies)))

    def _standing(self, k: int) -> Standing:
        ratios = self.ratios[:, k]
        known = ratios[~np.isnan(ratios)]
        worst = int(np.nanargmax(ratios)) if len(known) else None
        stable = [bout.comparison.results[k].stable for bout in self.bouts]
        return Standing(
            self.policies[k],
            best=float((ratios == 1).mean()),
            mean_ratio=float(np.exp(np.log(known).mean())) if len(known) else np.nan,
            worst_ratio=np.nan if worst is None else float(ratios[worst]),
            worst_on="" if worst is None else self.bouts[worst].system.name,
            unstable=stable.count(False),
            undecided=stable.count(None),
        )

    @property
    def verdicts(self) -> dict[str, int]:
        """On how many systems the first policy is better, the same or worse than the best other."""
        all_verdicts = [bout.verdict for bout in self.bouts]
        return {word: all_verdicts.count(word) for word in VERDICTS}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each policy."""
        return [standing._asdict() for standing in self.standings]

    def as_json(self) -> dict[str, Any]:
        """Return the contest as ``--json`` prints it."""
        return {
            "policies": list(self.policies),
            "standings": self.rows(),
            "verdicts": self.verdicts,
            "systems": [
                {
                    "system": bout.system.name,
                    "load": bout.load,
                    "verdict": bout.verdict,
                    "stable": [result.stable for result in bout.comparison.results],
                    (first := bout.comparison.results[0]).holding: [
                        result.figure(first.holding).as_json() for result in bout.comparison.results
                    ],
                }
                for bout in self.bouts
            ],
        }


def contest(
    systems: Iterable[SystemGiven],
    policies: Sequence[PolicyGiven],
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    *,
    tasks: float | None = None,
    progress: Callable[[int, str], None] = lambda number, name: None,
    **options: Any,
) -> Contest:
    """Simulate policies on many systems with common random numbers.

    Parameters
    ----------
    systems
        Systems, their names in the catalogue, or the paths of their files.
    policies
        The first is compared with the best of the others on every system.
    horizon, replications, seed, options
        As for ``simulate``; the first tenth of a run does not count.
    tasks
        In place of a horizon: the mean number of tasks in a run.
    progress
        Called with the number and the name of a system before it is simulated.

    Examples
    --------
    >>> found = contest(["2.B", "2.D"], ["pas", "mct"], tasks=5000, replications=4)
    >>> found.verdicts
    {'better': 2, 'same': 0, 'worse': 0, 'unranked': 0}
    """
    chosen = choose_policies(policies, 2, ALONE)
    for each in chosen:
        if each.kind in (BATCH, CHAIN):
            raise InputError(
                f"{each.name} is a {each.kind} policy, and a contest compares the mean number in "
                "system, which such policies are not judged by; use compare"
            )
    bouts = []
    names: tuple[str, ...] = ()
    lengths: Iterable[tuple[System, float]] = (_length(each, horizon, tasks) for each in systems)
    if options.get("on") == GPU:
        every = list(lengths)
        calls = [
            Wanted(system, policy, length, replications, seed, WARMUP * length)
            for system, length in every
            for policy in chosen
        ]
        lengths = every
        options = together(calls, options, lambda share: progress(0, "on the GPU"))
    for number, (system, length) in enumerate(lengths):
        progress(number, system.name)
        found = compare(
            system, chosen, length, replications, seed, warmup=WARMUP * length, **options
        )
        names = tuple(str(result.policy) for result in found.results)
        bouts.append(Bout(system, 1 / allocate(system).long_run_capacity, found))
    if not bouts:
        raise InputError("a contest needs at least one system")
    return Contest(names, tuple(bouts))


def _length(given: SystemGiven, horizon: float | None, tasks: float | None) -> tuple[System, float]:
    """Return a system, and the length of a run of it."""
    system, length = resolve(given, horizon)
    return system, length if tasks is None else tasks / float(system.arrival_rates.sum())
