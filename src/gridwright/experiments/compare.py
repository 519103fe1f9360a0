"""``compare``: several policies on the same arrivals, and the differences between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..model import InputError
from ..policies import Policy
from ..simulation import Replication
from ..statistics import Estimate, estimate
from ..tabular import Tabular
from .ahead import Wanted, together
from .device import GPU
from .result import UNITS, Result, in_words, with_unit
from .results_by_kind import choose_policies
from .simulate import PolicyGiven, SystemGiven, simulate

ALONE = "there is nothing to compare; name at least two policies"
MOST_SENTENCES = 3
"""Policies up to which every pair has a sentence; more policies are shown as a matrix."""


class Difference(NamedTuple):
    """How much more a second policy has of a measure than a first, paired by replication."""

    first: str
    second: str
    metric: str
    difference: Estimate
    winner: str | None
    """The better policy; None if the interval contains 0, or if one of the two is unstable or
    undecided."""

    @property
    def sentence(self) -> str:
        """Which policy is better, by how much of which measure, in which unit."""
        gap, measure = self.difference, in_words(self.metric).removesuffix(" time")
        both = f"{self.first} and {self.second}"
        if np.isnan(gap.mean) and self.winner is None:
            return f"Neither {self.first} nor {self.second} finishes a task."
        loser = self.second if self.winner == self.first else self.first
        if np.isnan(gap.mean):
            return f"{self.winner} is better than {loser}, which finishes no task."
        amount = with_unit(abs(gap.mean), self.metric)
        if np.isnan(gap.low):
            return (
                f"{both} differ by {amount} in {measure}; one replication does not tell whether "
                "that is noise."
            )
        if self.winner is None:
            return (
                f"{both} do not differ in {measure} beyond noise ({with_unit(gap, self.metric)})."
            )
        is_lower = (gap.mean > 0) == (self.winner == self.first)
        size = gap if gap.mean > 0 else Estimate(-gap.mean, -gap.high, -gap.low)
        return (
            f"{self.winner}: {measure} {with_unit(size, self.metric)} "
            f"{'lower' if is_lower else 'higher'} than {loser}."
        )


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Results of several policies under the same arrivals, amounts of work and failures."""

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

        All policies are ranked if they are compared by counts over a run, such as jobs on time.
        """
        return tuple(result for result in self.results if result.is_ranked)

    @property
    def ranked_differences(self) -> tuple[Difference, ...]:
        """The paired differences between policies that are ranked."""
        return Comparison(self.ranked).differences

    @property
    def statements(self) -> tuple[str, ...]:
        """A sentence for each pair of ranked policies; none for many policies: see ``matrix``."""
        if len(self.ranked) > MOST_SENTENCES:
            return ()
        metric = self.results[0].criteria[-1]
        return tuple(d.sentence for d in self.ranked_differences if d.metric == metric)

    def matrix(self) -> list[dict[str, str]]:
        """Return a row for each ranked policy: how much more it has than the policy of a column.

        By the last of the criteria. What is in brackets is not beyond noise.
        """
        metric = self.results[0].criteria[-1]
        return [
            {"policy": str(row.policy)}
            | {
                str(column.policy): "–" if row is column else _cell(difference(column, row, metric))
                for column in self.ranked
            }
            for row in self.ranked
        ]

    @property
    def matrix_caption(self) -> str:
        """What the numbers of the matrix are."""
        metric = self.results[0].criteria[-1]
        unit = f" in {UNITS[metric]}" if UNITS.get(metric) else ""
        return (
            f"{in_words(metric)}{unit}: the policy of the row minus the policy of the column; "
            "in brackets: not beyond noise"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each policy."""
        return [
            {
                "policy": str(result.policy),
                "stable": result.stable,
                **{name: result.figure(name) for name in result.criteria},
            }
            for result in self.results
        ]

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
        """Say which policies can keep up and which one is best, a line each."""
        lines = []
        unranked = [result for result in self.results if not result.is_ranked]
        unstable = [str(result.policy) for result in unranked if result.stable is False]
        undecided = [result for result in unranked if result.stable is None]
        stable = [str(result.policy) for result in self.results if result.stable]
        if len(unstable) == len(self.results):
            return ("No policy is stable here.",)
        if unstable:
            others = f"; {_listed(stable)} can" if stable else ""
            lines.append(f"{_listed(unstable)} cannot keep up{others}.")
        if undecided:
            names = _listed([str(result.policy) for result in undecided])
            verb = "are" if len(undecided) > 1 else "is"
            critical = [each for each in undecided if each.critical_machine is not None]
            longest = max(critical or undecided, key=lambda each: each.stability.needed or 0.0)
            lines.append(f"{names} {verb} undecided and not ranked: {longest.advice}.")
        if self.winner is not None:
            lines.append(f"Best: {self.winner} ({self._why_best})")
        elif (best := self._best_ranked) is not None:
            rivals = _listed(self._rivals_of(best))
            lines.append(f"No winner: {rivals} may be better than {best.policy}.")
        elif len(self.ranked) > 1:
            lines.append("No policy beats all others beyond noise.")
        return tuple(lines)

    @property
    def _why_best(self) -> str:
        """By which measure, and among which policies, the winner is best."""
        if len(self.ranked) == 1:
            is_open = any(result.stable is None for result in self.results)
            return "the only policy known to be stable" if is_open else "the only stable policy"
        first = self.results[0]
        metric = first.criteria[-1]
        which = "highest" if metric in first.more_is_better else "lowest"
        if which == "highest" and metric in UNITS:
            which = f"most {UNITS[metric]}"
        among = " of the stable policies" if len(self.ranked) < len(self.results) else ""
        return f"{which} {in_words(metric)}{among}, beyond noise"

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
            "conclusions": list(self.conclusions),
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
    chosen = choose_policies(policies, 2, ALONE)
    if options.get("precision") is not None:
        raise InputError(
            "compare takes no precision: all policies need the same replications; "
            "use simulate for one policy"
        )
    if options.get("on") == GPU:
        calls = [Wanted(system, each, horizon, replications, seed) for each in chosen]
        report_all = partial(_report_all, progress, chosen[0]) if progress is not None else None
        options = together(calls, options, report_all)
    results = []
    for policy in chosen:
        report = partial(progress, policy) if progress is not None else None
        results.append(
            simulate(system, policy, horizon, replications, seed, progress=report, **options)
        )
    return Comparison(tuple(results))


def _report_all(
    progress: Callable[[Policy, float, list[Replication]], None], policy: Policy, share: float
) -> None:
    progress(policy, share, [])


def difference(first: Result, second: Result, metric: str) -> Difference:
    """Return how much more the second has of a measure than the first, and which one is better.

    Neither is better if one of them is not ranked: the difference depends on the horizon.
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


def with_known_load(results: Iterable[Result]) -> Result | None:
    """Return the first of several results of a system whose load is known: not for all policies."""
    return next((each for each in results if each.long_run_load is not None), None)


def may_be_better(other: Result, best: Result, metric: str) -> bool:
    """Tell whether an undecided policy may be better: it is not worse beyond noise."""
    if other.stable is not None:
        return False
    return not estimate(other.values(metric) - best.values(metric)).low > 0


def _cell(found: Difference) -> str:
    """Write a difference into a cell of the matrix."""
    words = str(found.difference)
    return words if found.winner is not None else f"({words})"


def _listed(names: Sequence[str]) -> str:
    """Join names as in a sentence.

    >>> _listed(["mct", "lpas", "pas"])
    'mct, lpas and pas'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
