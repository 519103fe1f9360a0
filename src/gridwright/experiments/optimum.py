"""The best that any policy could do on a system, and how far each policy is from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, allocate, groups_of, make_workspace, prices, situation
from ..allocation.allocation import limiting_classes
from ..allocation.planner import solve as solve_allocation
from ..allocation.price import set_prices
from ..model import Exponential, InputError, MarkovChain, System, mode
from ..policies import PULL, Policy, Table, View, check_central, policy_of
from ..policies import find as find_policy
from ..policies import policies as known_policies
from ..simulation import check_system
from ..statistics import Estimate
from ..tabular import Tabular
from .markov_decision import Preemptive, Pull, UnsolvedError, solve
from .result import Result
from .simulate import PolicyGiven, SystemGiven, check_numbers, resolve, simulate

MOST_STATES = 1_000_000
MOST_PATTERNS = 1024
"""The most ways in which machines can be busy with classes."""
USELESS = 0.01
"""A value that may be off by more than this share is not reported."""
WARMUP = 0.1
"""Share of a simulation that does not count: it starts empty, which favours a policy."""


class Best(NamedTuple):
    """The least mean cost, on a state space with room for so many tasks."""

    mean_cost: float
    """Never above the true one: tasks that find no room are turned away."""
    error: float
    """An estimate of what is missing: with more room the value rises less and less; further rises
    are extrapolated from the last two."""
    tasks: int

    @property
    def mean_number(self) -> float:
        """The mean number in system: it is the mean cost where every task costs 1."""
        return self.mean_cost


class Gap(NamedTuple):
    """How much more a policy costs than the least possible."""

    result: Result
    gap: float
    """Share by which the mean cost is above the least; NaN if it is unstable or undecided."""

    @property
    def mean_number(self) -> Estimate:
        """The simulated mean number in system."""
        return self.result.mean_number

    @property
    def mean_cost(self) -> Estimate:
        """The simulated mean cost: the mean number in system where every task costs 1."""
        return self.result.figure(self.result.holding)


@dataclass(frozen=True, eq=False)
class Optimum(Tabular):
    """The least mean costs that policies can have: mean numbers in system if every task costs 1."""

    system: System
    preemptive: Best | None
    """Of all policies, also those that interrupt and move tasks. None: the system is too large."""
    pull: Best | None
    """Of policies that never interrupt a task, push policies included. None: the system is too
    large."""
    bound: float
    """A lower bound that needs no states, for systems of any size."""
    policy: Policy | None
    """The best pull policy, as a table; it can be simulated like any other."""
    policies: tuple[Gap, ...]

    @property
    def least(self) -> float:
        """The value that policies are compared with: the sharpest that could be computed."""
        best = self.pull or self.preemptive
        return best.mean_cost if best else self.bound

    def least_for(self, policy: Policy) -> float:
        """Return the value for a policy: the least of any, if it interrupts tasks."""
        if policy.preempts:
            return self.preemptive.mean_cost if self.preemptive else self.bound
        return self.least

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each policy; the gap is the share above the least mean cost."""
        return [
            {
                "policy": str(each.result.policy),
                each.result.holding: each.mean_cost,
                "stable": each.result.stable,
                "gap": each.gap,
            }
            for each in self.policies
        ]

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "system": self.system.name,
            "preemptive": self.preemptive and self._words(self.preemptive),
            "pull": self.pull and self._words(self.pull),
            "bound": self.bound,
            "policies": [{**row, self.holding: row[self.holding].as_json()} for row in self.rows()],
        }

    @property
    def holding(self) -> str:
        """The figure that is least: the mean cost if the system has costs, else the mean number."""
        return "mean_cost" if self.system.has_costs else "mean_number"

    def _words(self, best: Best) -> dict[str, Any]:
        return {self.holding: best.mean_cost, "error": best.error, "tasks": best.tasks}


def optimum(
    system: SystemGiven,
    policies: Sequence[PolicyGiven] | None = None,
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    *,
    accuracy: float = 1e-5,
    on: str | None = None,
    progress: Callable[[str, float], None] = lambda doing, done: None,
) -> Optimum:
    """Compute the least mean cost, and simulate policies to see how far they are.

    The cost is the number in system, unless the classes of the system have costs.

    Tasks must arrive and run with exponential times, on machines that do not fail. Where there are
    too many states only the lower bound is computed.

    Parameters
    ----------
    system
        A system, its name in the catalogue, or the path of its file.
    policies
        Policies to compare with it; by default every push and pull policy.
    horizon, replications, seed
        Of the simulations; the first tenth of the horizon does not count.
    accuracy
        The error, as a share of the value, at which it is good enough.
    on
        The address of a Dask scheduler whose workers run the simulations; here by default.
    progress
        Called with what is done next, and the share done.

    Examples
    --------
    >>> one = System(arrivals=[0.5], rates=[[1.0]])
    >>> found = optimum(one, [])
    >>> round(found.preemptive.mean_number, 6), round(found.pull.mean_number, 6)
    (1.0, 1.0)
    """
    system, horizon = resolve(system, horizon)
    if policies is None:
        policies = [policy for policy in known_policies().values() if policy.kind.is_central]
    chosen = list(map(find_policy, policies))
    check_numbers(horizon, replications, seed, WARMUP * horizon)
    _check(system)
    for policy in chosen:
        check_central(policy, "the optimum is for")
        check_system(system, policy)
    if not 0 < accuracy < 1:
        raise InputError(f"accuracy is {accuracy:g}; expected a number between 0 and 1")
    load = allocate(system).load
    if load >= 1 - 1e-9:
        raise InputError(f"no policy can keep up: the load is {100 * load:.1f} %")
    progress("any policy at all", 0.0)
    preemptive, _ = _best(Preemptive, system, load, accuracy)
    progress("pull and push", 0.1)
    pull, model = _best(Pull, system, load, accuracy)
    found = Optimum(
        system=system,
        preemptive=preemptive,
        pull=pull,
        bound=lower_bound(system),
        policy=None if model is None else _tabulated(*model),
        policies=(),
    )
    gaps = []
    for number, policy in enumerate(chosen):
        progress(str(policy), 0.5 + 0.5 * number / len(chosen))
        result = simulate(
            system, policy, horizon, replications, seed, warmup=WARMUP * horizon, on=on
        )
        above = result.figure(result.holding).mean / found.least_for(policy) - 1
        gaps.append(Gap(result, above if result.stable else np.nan))
    return replace(found, policies=tuple(gaps))


def _check(system: System) -> None:
    """Refuse systems for which the computation is wrong."""
    name = system.name or "the system"
    mode.check(system, mode.CENTRAL, "the optimum is for push and pull policies")
    if system.failures is not None or any(
        isinstance(each, MarkovChain) for each in system.availability
    ):
        raise InputError(f"{name} has machines that fail or change; the optimum is for fixed ones")
    if system.delays is not None:
        raise InputError(f"{name} has [delays]; the optimum is for systems without them")
    if system.profile is not None:
        raise InputError(f"{name} has [profile]; the optimum is for constant arrival rates")
    for what in ("interarrival", "execution"):
        if not all(isinstance(one, Exponential) for one in system.per_class(getattr(system, what))):
            raise InputError(
                f"{name} has {what} times that are not exponential; the optimum is for those that "
                "are"
            )


def _best(
    kind: type[Preemptive] | type[Pull], system: System, load: float, accuracy: float
) -> tuple[Best | None, Any]:
    """Give a model more room until that hardly matters or there are too many states."""
    arrivals, rates = system.arrival_rates, np.array(system.effective)
    good = prices(situation(system))
    classes, machines = rates.shape
    patterns = (classes + 1) ** machines
    each = patterns if kind is Pull else 1
    tasks = max(8, ceil(log(0.0007) / log(load)))
    found: Best | None = None
    rise = np.inf
    model: Any = None
    actions: Any = None
    while patterns <= MOST_PATTERNS and comb(tasks + classes, classes) * each <= MOST_STATES:
        larger = kind(arrivals, rates, tasks, system.holding_costs)
        start = larger.first(good) if model is None else larger.extend(actions, model.queues)
        try:
            mean, actions = solve(larger, start, 0.1 * accuracy)
        except UnsolvedError:
            break
        before, rise = rise, max(mean - found.mean_cost, 0.0) if found else np.inf
        model, found = larger, Best(mean, _missing(before, rise), tasks)
        if found.error <= accuracy * mean:
            break
        tasks += -(-tasks // 2)
    if found is None or found.error > USELESS * found.mean_cost:
        return None, None
    return found, (model, actions)


def _missing(before: float, last: float) -> float:
    """Extrapolate the sum of all further rises from the last two."""
    if before == np.inf or last == 0:
        return float(last)
    return float(last / (before / last - 1)) if last < before else np.inf


def _tabulated(model: Pull, actions: Any) -> Policy:
    """Tabulate the actions for all numbers of waiting tasks up to the limit."""
    classes = len(model.rates)
    most = len(model.queues.number) - 2
    counts = np.indices((most + 1,) * classes).reshape(classes, -1)
    rows = model.queues.nearest(counts)
    table = np.stack([chosen[rows] for chosen in actions], axis=-1)
    return policy_of(optimal, PULL, idle="every")(table=Table(table.ravel()), most=most)


def optimal(machine: int, view: View, table: Any = Table([-1]), most: int = 0) -> int:  # noqa: B008
    """Look up the best action in a table."""
    index = 0
    for i in range(len(view.classes)):
        index = index * (most + 1) + min(view.classes[i].waiting, most)
    for j in range(len(view.machines)):
        index = index * (len(view.classes) + 1) + view.machines[j].serving + 1
    return int(np.int64(table[index * len(view.machines) + machine]))  # not of 8 bits


def lower_bound(system: System) -> float:
    """Return a lower bound on the mean cost of any policy, for exponential times.

    Give every class a price y ≥ 0 with Σ y × arrivals = 1. A machine finishes at most z = max y ×
    rate of priced tasks a time unit, all of them together at most Z. Let V be the priced number of
    tasks in the system. In the long run V² stays the same on average, so what arrivals add to it
    equals what finished tasks take away: E[V × (rate of finishing)] = E[V] + Σ arrivals × y². As
    the rate of finishing is at most Z, E[V] ≥ Σ arrivals × y² / (Z − 1). Also, every class has at
    least its work at its fastest machine in the system: arrivals / max rate. The cost is then least
    if whatever V needs beyond that is of the class with the highest price per cost.

    Any prices give a valid bound; those of the allocation LP make Z as small as can be. The
    classes that do not limit the capacity have a bound of their own, as if they had all machines
    to themselves, and so on; these bounds add up.

    >>> round(lower_bound(System(arrivals=[0.9], rates=[[1.0]])), 6)
    9.0
    """
    arrivals, rates = system.arrival_rates, np.array(system.effective)
    left = arrivals > 0
    total = 0.0
    while left.any():
        prices = _prices(arrivals * left, rates)
        limiting = prices > 0
        most = (prices[:, None] * rates).max(axis=0).sum()
        priced = (arrivals * prices**2).sum() / (most - 1) if most > 1 else np.inf
        served = arrivals[limiting] / rates[limiting].max(axis=1)
        missing = max(priced - prices[limiting] @ served, 0.0)
        costs = system.holding_costs[limiting]
        total += costs @ served + missing * (costs / prices[limiting]).min()
        left &= ~limiting
    return float(total)


def _prices(arrivals: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the prices of the classes that limit the capacity, worth 1 a time unit together."""
    now = Situation(rates, arrivals, np.ones(rates.shape[1]), groups_of(rates))
    room = make_workspace(now)
    solve_allocation(now, room)
    set_prices(now, room)
    limiting = limiting_classes(room)
    return np.where(limiting, room.price, 0) / len(set(room.part[limiting].tolist()))
