"""``size``: the cheapest numbers of machines that hold a load, or a percentile of the response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..allocation import Fleet, PricesGiven, cheapest_fleets
from ..allocation.lost_work import keeps_lost_work, load_in_words, lost_work_of
from ..model import Exponential, InputError, System
from ..policies import Policy
from ..policies import find as find_policy
from ..statistics import Estimate
from ..tabular import Tabular
from .contest import WARMUP
from .simulate import PolicyGiven, SystemGiven, resolve, simulate

FULLEST = 0.99
"""The largest load of a fleet that is simulated: beyond it, runs are too short to tell."""
MOST_TRIED = 100
"""Fleets that are simulated before the search ends."""
MORE = 8
"""How many times the replications may grow while a percentile's interval contains the limit."""


class Tried(NamedTuple):
    """A fleet, and what was simulated of it."""

    fleet: Fleet
    p95: Estimate | None = None
    """The 95th percentile of the response; None if only the load was asked for."""
    replications: int = 0
    holds: bool | None = True
    """Whether it is enough; None if the simulations, or the allocation LP, cannot tell."""


@dataclass(frozen=True, eq=False)
class Size(Tabular):
    """The cheapest fleet that holds a load or a percentile, and those that were tried before."""

    system: System
    """With the numbers of machines that were given; these do not count."""
    prices: PricesGiven
    load: float | None
    p95: float | None
    policy: Policy | None
    tried: tuple[Tried, ...]

    @property
    def found(self) -> Tried | None:
        """The cheapest fleet that is enough; None if a cheaper one is undecided, or at the end."""
        return self.tried[-1] if self.tried and self.tried[-1].holds else None

    @property
    def fleet(self) -> System:
        """The system with the machines of the fleet that was found."""
        if self.found is None:
            raise InputError(f"no fleet was found: {self.words}")
        return self.system.with_counts(self.found.fleet.counts)

    @property
    def words(self) -> str:
        """The outcome in one sentence."""
        if self.found is not None:
            machines = self.named(self.found.fleet)
            words = f"The cheapest fleet is {machines}, for {self.found.fleet.price:g}."
            if lost_work_of(self.fleet).left_out:
                words += f" Its load is {self.load_words(self.found.fleet)}."
            return words
        last = self.tried[-1]
        if last.p95 is None:
            return (
                f"Undecided: {self.named(last.fleet)}, for {last.fleet.price:g}, has a load of "
                f"{self.load_words(last.fleet)}, because tasks that are lost keep their work. A "
                "p95 in place of a load would be simulated."
            )
        if last.holds is None:
            return (
                f"Undecided: {self.named(last.fleet)}, for {last.fleet.price:g}, may or may not "
                f"hold a p95 of {self.p95:g} (simulated: {last.p95}); use longer runs or more "
                "replications."
            )
        return (
            f"None of the {len(self.tried)} cheapest fleets holds a p95 of {self.p95:g}; the last "
            f"one costs {last.fleet.price:g}. No fleet may: a task may take longer by itself."
        )

    def load_words(self, fleet: Fleet) -> str:
        """Write the load of a fleet, and whether it leaves out the work that failures lose."""
        return load_in_words(self.system.with_counts(fleet.counts), fleet.load)

    def named(self, fleet: Fleet) -> str:
        """Write the machines of a fleet."""
        named = zip(fleet.counts, self.system.groups, strict=True)
        return ", ".join(f"{count} × {group}" for count, group in named if count)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each fleet that was tried."""
        return [
            {
                **dict(zip(self.system.groups, each.fleet.counts, strict=True)),
                "price": each.fleet.price,
                "load": each.fleet.load,
                "p95": each.p95,
                "holds": each.holds,
            }
            for each in self.tried
        ]

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        tried = [
            {
                "counts": dict(zip(self.system.groups, each.fleet.counts, strict=True)),
                "price": each.fleet.price,
                "load": each.fleet.load,
                "p95": each.p95 and each.p95.as_json(),
                "replications": each.replications,
                "holds": each.holds,
            }
            for each in self.tried
        ]
        return {
            "system": self.system.name,
            "policy": self.policy and str(self.policy),
            "wanted": {"load": self.load, "p95": self.p95},
            "found": tried[-1] if self.found else None,
            "tried": tried,
            "verdict": self.words,
        }


def size(
    system: SystemGiven,
    prices: PricesGiven = None,
    *,
    load: float | None = None,
    p95: float | None = None,
    policy: PolicyGiven = "pas",
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    most: int = MOST_TRIED,
    progress: Callable[[int, str], None] = lambda number, name: None,
    **options: Any,
) -> Size:
    """Find the cheapest numbers of machines of each group that hold a load or a p95.

    Fleets are tried by rising price. A fleet holds a p95 if the whole 95 % interval of its
    simulated percentile is at most the limit, and the policy is stable; it does not if the whole
    interval is above it. In between, up to eight times as many replications are run. If these
    cannot tell either, the search ends, and nothing is found. Nor is it where only a bound of the
    load is known, because tasks that are lost keep their work.

    Parameters
    ----------
    system
        A system, its name in the catalogue, or the path of its file. How many machines its groups
        have does not count.
    prices
        The price of a machine of each group, by name or in order; by default every machine costs 1.
    load
        The largest long-run load of the busiest machine under the best allocation.
    p95
        The largest 95th percentile of the response, in time units.
    policy, horizon, replications, seed, options
        As for ``simulate``, for a p95; the first tenth of a run does not count.
    most
        The search ends after this number of fleets.
    progress
        Called with the number and the machines of a fleet before it is simulated.

    Examples
    --------
    >>> system = System(arrivals=[6, 2], rates=[[4, 1], [0, 2]], groups=["big", "small"])
    >>> found = size(system, {"big": 3, "small": 1}, load=0.8)
    >>> found.words
    'The cheapest fleet is 2 × big, 2 × small, for 8.'
    """
    if load is None and p95 is None:
        raise InputError("nothing to hold; give a load, a p95 or both")
    if p95 is not None and not 0 < p95 < float("inf"):
        raise InputError(f"p95 is {p95:g}; expected a positive number of time units")
    if most < 1:
        raise InputError(f"most is {most}; expected at least 1")
    system, length = resolve(system, horizon)
    fleets = cheapest_fleets(system, prices, FULLEST if load is None else load)
    if p95 is None:
        fleet = next(fleets)
        lost = lost_work_of(system.with_counts(fleet.counts))
        holds = None if lost.left_out and keeps_lost_work(system) else True
        return Size(system, prices, load, p95, None, (Tried(fleet, holds=holds),))
    _check_possible(system, p95)
    chosen, tried = find_policy(policy), list[Tried]()
    while len(tried) < most and (not tried or tried[-1].holds is False):
        fleet = next(fleets)
        progress(len(tried), ", ".join(map(str, fleet.counts)))
        tried.append(
            _try(system, fleet, p95, chosen, length, replications, seed, most=MORE, **options)
        )
    return Size(system, prices, load, p95, chosen, tuple(tried))


def _check_possible(system: System, p95: float) -> None:
    """Refuse a percentile below that of the execution times alone, if these are exponential."""
    shapes = system.per_class(system.execution)
    if not all(isinstance(shape, Exponential) for shape in shapes):
        return
    fastest = system.effective.max(axis=1)
    longer = np.average(np.exp(-fastest * p95), weights=system.arrival_rates)
    if longer > 0.05:
        raise InputError(
            f"no fleet holds a p95 of {p95:g}: {100 * longer:.1f} % of the tasks run longer than "
            "that, even on the fastest machine"
        )


def _try(
    system: System,
    fleet: Fleet,
    p95: float,
    policy: Policy,
    horizon: float,
    replications: int,
    seed: int,
    *,
    most: int,
    **options: Any,
) -> Tried:
    """Simulate a fleet until the percentile is on one side of the limit, or for long enough."""
    runs = replications
    while True:
        result = simulate(
            system.with_counts(fleet.counts),
            policy,
            horizon,
            runs,
            seed,
            warmup=WARMUP * horizon,
            tails=True,
            **options,
        )
        found = result.figure("p95")
        holds: bool | None = None
        if result.stable is False or found.low > p95:
            holds = False
        elif result.stable and found.high <= p95:
            holds = True
        if holds is not None or 2 * runs > most * replications:
            return Tried(fleet, found, runs, holds)
        runs *= 2
