"""``compare``: several policies on the same arrivals, and the differences between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..model import InputError
from ..policies import Policy
from ..policies import find as find_policy
from ..simulation import Replication
from ..statistics import Estimate, estimate
from .result import Result
from .results_by_kind import check_alike
from .simulate import PolicyGiven, SystemGiven, simulate

__all__ = ["Comparison", "Difference", "compare", "difference", "may_be_better"]


class Difference(NamedTuple):
    """How much more a second policy has of something than a first, paired by replication."""

    first: str
    second: str
    metric: str
    difference: Estimate
    winner: str | None
    """The policy that is better by it; None where the interval holds 0, and where one of the two is
    unstable or undecided."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of several policies that met the same arrivals, works and failures."""

    results: tuple[Result, ...]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The paired differences of all pairs of policies."""
        return tuple(
            difference(first, second, metric)
            for first, second in combinations(self.results, 2)
            for metric in first.criteria
        )

    @property
    def ranked(self) -> tuple[Result, ...]:
        """The results of the stable policies: unstable and undecided ones are not ranked.

        All of them, where policies are compared by what is counted over a run.
        """
        return tuple(result for result in self.results if result.is_ranked)

    @property
    def ranked_differences(self) -> tuple[Difference, ...]:
        """The paired differences between policies that are ranked."""
        return Comparison(self.ranked).differences

    @property
    def winner(self) -> str | None:
        """The policy that is better than all others, beyond noise, if any.

        By the last of the criteria: the mean response, unless the kind of system has its own.
        Unstable policies are worse than stable ones. None if an undecided policy may be better: if
        its mean in these runs is not worse beyond noise.
        """
        best = self._best_ranked
        return None if best is None or self._rivals_of(best) else str(best.policy)

    def _rivals_of(self, best: Result) -> list[str]:
        """Name the policies that are not ranked and may be better than the best of the ranked."""
        unranked = [result for result in self.results if not result.is_ranked]
        return [str(r.policy) for r in unranked if may_be_better(r, best, best.criteria[-1])]

    @property
    def _best_ranked(self) -> Result | None:
        """The policy that is better than all others that are ranked, beyond noise."""
        ranked, metric = self.ranked, self.results[0].criteria[-1]
        for result in ranked if len(self.results) > 1 else ():
            rivals = [difference(result, other, metric) for other in ranked if other is not result]
            if all(each.winner == str(result.policy) for each in rivals):
                return result
        return None

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Say which policy is best, and which policies could not be ranked, a line each."""
        lines = []
        unranked = [result for result in self.results if not result.is_ranked]
        if unstable := [r for r in unranked if r.stable is False]:
            lines.append(f"{_named(unstable)} unstable and not ranked.")
        if undecided := [r for r in unranked if r.stable is None]:
            needed = max(result.stability.needed or 0.0 for result in undecided)
            lines.append(
                f"{_named(undecided)} undecided and not ranked: a horizon of {needed:,g} time "
                "units would probably tell."
            )
        if len(unstable) == len(self.results):
            lines.append("No policy is stable here.")
        elif self.winner is not None:
            lines.append(f"Best: {self.winner}{self._among()}")
        elif (best := self._best_ranked) is not None:
            rivals = " and ".join(self._rivals_of(best))
            lines.append(f"No winner: {rivals} may be better than {best.policy}.")
        elif len(self.ranked) > 1:
            lines.append("No policy beats all others beyond noise.")
        return tuple(lines)

    def _among(self) -> str:
        if len(self.ranked) == len(self.results):
            return ""
        return " (the only stable policy)" if len(self.ranked) == 1 else " (of the stable policies)"

    def improvement(self, reference: str) -> dict[str, float]:
        """Return (W_reference − W) / W_reference of every policy, as the sources print it.

        Where more is better, (X − X_reference) / X_reference. NaN where one of the two is unstable
        or undecided.
        """
        found = [r for r in self.results if reference in (str(r.policy), r.policy.name)]
        if not found:
            known = ", ".join(str(r.policy) for r in self.results)
            raise InputError(f"reference {reference!r} is not compared; there are {known}")
        metric = found[0].criteria[-1]
        sign = -1 if metric in found[0].more_is_better else 1
        base = found[0].figure(metric).mean
        return {
            str(r.policy): sign * (base - r.figure(metric).mean) / base
            if r.is_ranked and found[0].is_ranked
            else np.nan
            for r in self.results
        }

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as ``--json`` prints it."""
        first = self.results[0]
        return {
            "system": first.system.name,
            "horizon": first.horizon,
            "replications": len(first.replications),
            "seed": first.seed,
            "results": [result.as_json() for result in self.results],
            "differences": [
                {**d._asdict(), "difference": d.difference.as_json()} for d in self.differences
            ],
            "ranked": [str(result.policy) for result in self.ranked],
            "winner": self.winner,
        }


def compare(
    system: SystemGiven,
    policies: Sequence[PolicyGiven],
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    *,
    progress: Callable[[Policy, float, list[Replication]], None] | None = None,
    **options: Any,
) -> Comparison:
    """Simulate several policies with common random numbers; the parameters are simulate's.

    The n-th task of a class arrives at the same time and needs the same standardised work under
    every policy, and machines fail at the same times.

    >>> found = compare("2.B", ["mct", "lpas"], horizon=2000, replications=4)
    >>> found.winner
    'lpas'
    """
    chosen = [find_policy(policy) for policy in policies]
    names = [str(policy) for policy in chosen]
    if len(chosen) < 2:
        raise InputError("there is nothing to compare; name at least two policies")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"policy {twice!r} is named twice")
    check_alike(chosen)
    if options.get("precision") is not None:
        raise InputError("policies are compared on the same replications; precision is for one")
    results = []
    for policy in chosen:
        report = None
        if progress is not None:
            report = lambda done, runs, policy=policy: progress(policy, done, runs)  # noqa: E731
        results.append(
            simulate(system, policy, horizon, replications, seed, progress=report, **options)
        )
    return Comparison(tuple(results))


def difference(first: Result, second: Result, metric: str) -> Difference:
    """Return how much more the second has of something than the first, and who is better.

    Neither is, if one of them is not ranked: the difference depends on the horizon.
    """
    found = estimate(second.values(metric) - first.values(metric))
    if not (first.is_ranked and second.is_ranked):
        return Difference(str(first.policy), str(second.policy), metric, found, None)
    more, less = str(second.policy), str(first.policy)
    if found.high < 0:
        more, less = less, more
    winner = None
    nothing = [bool(np.isnan(each.values(metric)).all()) for each in (first, second)]
    if nothing[0] != nothing[1]:  # a policy that finishes no task has no response at all
        winner = str((second if nothing[0] else first).policy)
    elif found.low > 0 or found.high < 0:
        winner = more if metric in first.more_is_better else less
    return Difference(str(first.policy), str(second.policy), metric, found, winner)


def may_be_better(other: Result, best: Result, metric: str) -> bool:
    """Tell whether a policy is undecided, and has not more than another beyond noise."""
    if other.stable is not None:
        return False
    return not estimate(other.values(metric) - best.values(metric)).low > 0


def _named(results: Sequence[Result]) -> str:
    """Write the policies of some results as the subject of a sentence, with its verb."""
    *others, last = (str(result.policy) for result in results)
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"
