"""The result of a simulation: every figure with its interval, and the replications."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..allocation import long_run_of, lost_work, situation
from ..model import Floats, InputError, System
from ..policies import EXCLUDED, INFORMED, PUSH, Policy
from ..simulation import Replication
from ..statistics import (
    EDGE,
    PERCENTILES,
    RELAXATIONS,
    WITHIN,
    Estimate,
    Stability,
    estimate,
    quantile,
    share_within,
    stability,
    tail_names,
)
from ..tabular import Tabular

GROWING = ("mean_number", "mean_cost", "mean_response", *PERCENTILES)
"""Figures that grow with the horizon if a policy is unstable."""
WHOLE = ("mean_number", "mean_response", "mean_waiting", "mean_queueing")
"""The figures of all tasks that every kind of system has."""


class ClassResult(NamedTuple):
    """The figures of a class of tasks."""

    name: str
    arrivals: float
    mean_response: Estimate
    mean_waiting: Estimate
    mean_queueing: Estimate
    throughput: Estimate


@dataclass(frozen=True, eq=False)
class Result(Tabular):
    """The result of simulating a system under a policy."""

    further: ClassVar[tuple[str, ...]] = ()
    """Further figures that this kind of system has, from ``Replication.more``."""
    compared: ClassVar[tuple[str, ...]] = ()
    """The figures that a comparison shows; by default the criteria and all further figures."""
    criteria: ClassVar[tuple[str, ...]] = ("mean_number", "mean_response")
    """The figures that policies are compared by; the last one decides the winner."""
    more_is_better: ClassVar[frozenset[str]] = frozenset()

    system: System
    policy: Policy
    horizon: float
    warmup: float
    seed: int
    replications: tuple[Replication, ...]
    within: tuple[float, ...] = ()
    """Times: the share of tasks that respond within each is a figure."""

    @cached_property
    def mean_number(self) -> Estimate:
        """The time-average number of tasks in the system."""
        return estimate(self.values("mean_number"))

    @property
    def holding(self) -> str:
        """The figure of what is in the system: the mean cost if it has costs, else the number."""
        return "mean_cost" if self.system.has_costs else "mean_number"

    @cached_property
    def mean_response(self) -> Estimate:
        """The mean time from arrival to finish, over all tasks that finished."""
        return estimate(self.values("mean_response"))

    @cached_property
    def mean_waiting(self) -> Estimate:
        """The mean time from arrival until a task is sent to the machine that finishes it.

        Of a job with several applications, the sum over all of them.
        """
        return estimate(self._over_tasks("waiting"))

    @cached_property
    def mean_queueing(self) -> Estimate:
        """The mean time in the queue of the machine that ran the task."""
        return estimate(self._over_tasks("queueing"))

    @cached_property
    def figures(self) -> dict[str, Estimate]:
        """The further figures of this kind of system, and tails if they were measured, by name."""
        return {name: estimate(self.values(name)) for name in (*self.further, *self.tails)}

    @property
    def tails(self) -> tuple[str, ...]:
        """The names of the percentiles of the response and of shares within times, if measured."""
        if not len(self.replications[0].responses):
            return ()
        return tail_names(self.within)

    def tails_of(self, task_class: int) -> dict[str, Estimate]:
        """Return the tails of a class, if they were measured, by name."""
        return {name: estimate(self._tail(name, task_class)) for name in self.tails}

    def _tail(self, name: str, task_class: int | None = None) -> Floats:
        """Return a percentile or a share within a time, one value a replication."""
        rows = slice(None) if task_class is None else slice(task_class, task_class + 1)
        counts = [run.responses[rows].sum(axis=0) for run in self.replications]
        if name in PERCENTILES:
            return np.array([quantile(each, PERCENTILES[name]) for each in counts])
        limit = float(name.removeprefix(WITHIN))
        return np.array([share_within(each, limit) for each in counts])

    def figure(self, name: str) -> Estimate:
        """Return a criterion or further figure by its name."""
        return self.figures.get(name) or estimate(self.values(name))

    def written(self, name: str, found: Estimate | None = None) -> str:
        """Write a figure, or that of a class, with its interval, or without if it would mislead.

        The number in system and the response of an unstable policy grow with the horizon.
        """
        found = found or self.figure(name)
        if np.isnan(found.mean):
            return "–"
        if self.has_interval(name):
            return str(found)
        return f"{found.mean:,.0f}" if found.mean >= 1000 else f"{found.mean:.4g}"

    def has_interval(self, name: str) -> bool:
        """Tell whether a longer run would give about the same figure."""
        return self.stable is not False or name not in GROWING

    def values(self, name: str) -> Floats:
        """Return a figure by its name, one value a replication."""
        if name == "mean_number":
            return self._stack("mean_number")
        if name == "mean_response":
            return self._over_tasks("response")
        if name == "mean_cost":
            return self._stack("class_number") @ self.system.holding_costs
        if name in self.tails:
            return self._tail(name)
        if name not in self.replications[0].more:
            known = ", ".join(("mean_number", "mean_response", *self.further, *self.tails))
            raise InputError(f"no figure {name!r}; there are {known}")
        return np.array([r.more[name] for r in self.replications], dtype=float)

    def _over_tasks(self, field: str) -> Floats:
        """Return a mean over all tasks, one value a replication."""
        means = self._stack(field)
        counts = self._stack("responded")
        total = np.nansum(np.where(counts > 0, means, 0) * counts, axis=1)
        return np.divide(
            total, counts.sum(axis=1), out=np.full(len(total), np.nan), where=counts.sum(axis=1) > 0
        )

    @cached_property
    def classes(self) -> tuple[ClassResult, ...]:
        """The figures of every class."""
        fields = ("response", "waiting", "queueing", "throughput")
        stacks = [self._stack(field) for field in fields]
        return tuple(
            ClassResult(name, float(rate), *(estimate(stack[:, i]) for stack in stacks))
            for i, (name, rate) in enumerate(
                zip(self.system.classes, self.system.arrival_rates, strict=True)
            )
        )

    @property
    def by_class(self) -> dict[str, tuple[Estimate, ...]]:
        """The further figures of this kind of system, by class."""
        return {}

    @cached_property
    def utilisation(self) -> tuple[Estimate, ...]:
        """The share of time that every machine was busy."""
        return tuple(estimate(column) for column in self._stack("utilisation").T)

    @cached_property
    def long_run_load(self) -> float | None:
        """The load of the busiest machine under the best allocation, failures accounted for.

        It is the same for every policy; at 1 or more no policy is stable. None where the
        allocation LP does not apply: also if the work that is lost depends on how a policy moves
        tasks that it interrupts. Elsewhere lost work counts, unless ``load_words`` says that it is
        left out.
        """
        if self.policy.preempts and lost_work.lost_work_of(self.system).depends:
            return None
        return long_run_of(self.system).load

    @property
    def load_words(self) -> str:
        """The long-run load in words, which say whether it leaves out the work that is lost."""
        return lost_work.load_in_words(self.system, self.long_run_load or 0.0)

    @property
    def peak_load(self) -> float | None:
        """The load while arrival rates are highest; None if they do not change."""
        return long_run_of(self.system).peak

    @cached_property
    def stability(self) -> Stability:
        """Whether the number in system settles, grows without end, or the run cannot tell."""
        known = long_run_of(self.system)
        found = stability(
            self.replications[0].times,
            np.array([r.number for r in self.replications]),
            float(self.system.arrival_rates.sum()),
            load=lost_work.bound(self.system, self.long_run_load),
            variance=known.variance,
            settling=self._settling,
            waiting=known.queue,
            machines=len(self.system.machines),
            busy=float(self._stack("utilisation").sum(axis=1).mean()),
        )
        return Stability(False, found.growth) if lost_work.never_done(self.system) else found

    @property
    def _settling(self) -> float | None:
        """In how many time units the system settles, about: with the measured load if work is lost.

        The time is as 1 / (1 − load)².
        """
        known, keeps = long_run_of(self.system), lost_work.keeps_lost_work(self.system)
        if known.settling is None or known.load is None or not keeps:
            return known.settling
        busy = self._stack("utilisation").sum(axis=1).mean() / self.system.up_fraction.sum()
        return known.settling * ((1 - known.load) / (1 - min(max(busy, known.load), 0.999))) ** 2

    @property
    def length(self) -> str:
        """How long a run is, in words."""
        return f"{in_full(self.horizon)} time units"

    @property
    def stable(self) -> bool | None:
        """Whether the system is stable under the policy; None if the run is too short to tell."""
        return self.stability.stable

    @property
    def is_ranked(self) -> bool:
        """Whether the policy can be ranked among others.

        The mean number and the mean response of a policy that is not stable depend on the horizon.
        What is counted over a run of a given length, such as jobs on time, can be compared anyway.
        """
        return bool(self.stable) or self.criteria[-1] in self.more_is_better

    @property
    def verdict(self) -> str:
        """The verdict on stability in words.

        For example "stable", "unstable: grows by 10.2 tasks per time unit", or "undecided: a
        horizon of 12,000 time units would probably tell".
        """
        found = self.stability
        if endless := lost_work.never_done(self.system):
            return f"unstable: {lost_work.without_end(endless)}"
        if found.stable is False and self.is_overloaded:
            return f"unstable: the long-run load is {100 * (self.long_run_load or 0):.1f} %"
        if found.stable is False and self.never_offered:
            return f"unstable: {_never_offered(self.never_offered)}"
        if found.stable is False:
            return f"unstable: grows by {found.growth:.3g} tasks per time unit"
        if found.stable is None:
            return f"undecided: {self.advice}"
        return found.word

    @property
    def advice(self) -> str:
        """What a run that cannot tell whether the policy is stable needs, in words."""
        needed = f"a horizon of {in_full(self.stability.needed or 0.0)} time units"
        if self.critical_machine is None:
            return f"{needed} would probably tell"
        name, busy = self.critical_machine
        return (
            f"machine {name} is busy {100 * busy:.1f} % of the time; {needed} may tell, but no "
            "length will if its load is exactly 1"
        )

    @property
    def critical_machine(self) -> tuple[str, float] | None:
        """The busiest machine and its utilisation, if its load may well be exactly 1.

        A machine with a load of 1 is idle for a share of about √(2 / tasks that it runs) of the
        time, if all times are exponential. In a run that is long enough for the load of the
        system, the policy is the reason why a machine is that busy. Only a policy that sends tasks
        to machines gives each a load of its own.
        """
        if self.policy.kind is not PUSH:
            return None
        known, rate = long_run_of(self.system), float(self.system.arrival_rates.sum())
        if not self.tasks or not rate or self.horizon < RELAXATIONS * (known.settling or 0.0):
            return None
        busy = np.array([each.mean for each in self.utilisation])
        idle = self.system.up_fraction - busy
        j = int(np.argmin(idle))
        tasks = self.tasks / len(self.replications) / len(idle)
        if idle[j] ** 2 > 4 * known.variance / rate / tasks:
            return None
        return self.system.machines[j], float(busy[j])

    @cached_property
    def never_offered(self) -> tuple[str, ...]:
        """The classes whose plan is 0 on every machine while all are up: their tasks only wait."""
        if self.policy.planner is None or not self.policy.kind.is_central:
            return ()
        if self.system.believes_anew:  # there are several plans
            return ()
        plan = self.policy.plan(situation(self.system.believed))
        return tuple(np.array(self.system.classes)[(plan <= 0).all(axis=1)].tolist())

    @property
    def is_overloaded(self) -> bool:
        """Whether no policy can keep up with the arrivals."""
        return (lost_work.bound(self.system, self.long_run_load) or 0.0) >= 1 - EDGE

    @property
    def information(self) -> Estimate:
        """The mean number of machines asked about their state per arrival."""
        return estimate([self._informed(r) for r in self.replications])

    @property
    def messages(self) -> Estimate:
        """Messages sent: a request and an answer for every machine asked, or that asked."""
        if self.policy.kind.pulls:
            return estimate([2.0 * r.asked for r in self.replications])
        return estimate([2.0 * self._informed(r) * r.tasks for r in self.replications])

    @property
    def lost(self) -> Estimate:
        """Tasks interrupted by a failure and begun again."""
        return estimate([float(r.lost) for r in self.replications])

    @property
    def interrupted(self) -> Estimate:
        """How often a task gave way to another; 0 unless the policy has preempt=true."""
        return estimate([float(r.interrupted) for r in self.replications])

    @property
    def refusals(self) -> int:
        """Impossible answers of the policy, over all replications."""
        return sum(r.refusals for r in self.replications)

    @property
    def excluded(self) -> int:
        """Decisions in which a rule of the policy excluded its first choice."""
        return int(sum(r.tally[EXCLUDED] for r in self.replications))

    @property
    def tasks(self) -> int:
        """Arrivals simulated, over all replications."""
        return sum(r.tasks for r in self.replications)

    @property
    def seconds(self) -> float:
        """CPU seconds inside the engine."""
        return sum(r.seconds for r in self.replications)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each figure: of all tasks, of each class, of each machine."""
        by_class = ("mean_response", "mean_waiting", "mean_queueing", "throughput")
        figures = {name: getattr(self, name) for name in WHOLE} | self.figures
        found = [("all tasks", name, value) for name, value in figures.items()]
        found += [
            (f"class {each.name}", name, getattr(each, name))
            for each in self.classes
            for name in by_class
        ]
        found += [
            (f"class {each}", name, value)
            for i, each in enumerate(self.system.classes)
            for name, value in self.tails_of(i).items()
        ]
        machines = zip(self.system.machines, self.utilisation, strict=True)
        found += [(f"machine {name}", "utilisation", value) for name, value in machines]
        return [{"of": of, "figure": name, "value": value} for of, name, value in found]

    def as_json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        left_out = lost_work.lost_work_of(self.system).left_out
        return {
            "system": self.system.name,
            "policy": str(self.policy),
            "horizon": self.horizon,
            "warmup": self.warmup,
            "replications": len(self.replications),
            "seed": self.seed,
            "stable": self.stable,
            "growth": self.stability.growth,
            "needed_horizon": self.stability.needed,
            "long_run_load": self.long_run_load,
            **({"lost_work_left_out": left_out} if left_out else {}),
            **({} if self.peak_load is None else {"peak_load": self.peak_load}),
            "tasks": self.tasks,
            "seconds": self.seconds,
            **{name: getattr(self, name).as_json() for name in WHOLE},
            "classes": [
                named_as_json(each)
                | {name: value.as_json() for name, value in self.tails_of(i).items()}
                for i, each in enumerate(self.classes)
            ],
            "machines": [
                {"name": name, "utilisation": busy.as_json()}
                for name, busy in zip(self.system.machines, self.utilisation, strict=True)
            ],
            **{name: getattr(self, name).as_json() for name in ("messages", "information", "lost")},
            **({"interrupted": self.interrupted.as_json()} if self.policy.preempts else {}),
            "refusals": self.refusals,
            **{name: found.as_json() for name, found in self.figures.items()},
        }

    def __repr__(self) -> str:
        verdict = "" if self.stable else f", {self.stability.word}"
        return (
            f"{type(self).__name__}({self.system.name!r}, {self.policy}: "
            f"mean number {self.mean_number}, mean response {self.mean_response}{verdict})"
        )

    def _stack(self, field: str) -> Floats:
        return np.array([getattr(r, field) for r in self.replications], dtype=float)

    def _informed(self, replication: Replication) -> float:
        informed = self.policy.options.get("informed", 0)
        if informed is None:
            return float(replication.tally[INFORMED]) / max(replication.tasks, 1)
        asked = replication.permitted
        if informed >= 0:
            asked = np.minimum(asked, informed)
        return float(np.average(asked, weights=self.system.arrival_rates))


def in_full(number: float) -> str:
    """Write a number with its thousands apart, and without digits that say nothing.

    >>> in_full(20000.0), in_full(2500000.0), in_full(0.25)
    ('20,000', '2,500,000', '0.25')
    """
    return f"{number:,.0f}" if number == round(number) else f"{number:,g}"


def in_words(name: str) -> str:
    """Write the name of a figure in words.

    >>> in_words("mean_response"), in_words("on_time")
    ('mean response time', 'on time')
    """
    known = {
        "mean_number": "mean number in system",
        "mean_response": "mean response time",
        "mean_cost": "mean cost per time unit",
    }
    return known.get(name, name.replace("_", " "))


UNITS = {
    "mean_number": "tasks",
    "mean_response": "time units",
    "makespan": "time units",
    "wasted_work": "time units",
    "on_time": "tasks",
    "late": "tasks",
    "discarded": "tasks",
    "unfinished": "tasks",
    "ok": "jobs",
    "in_progress": "jobs",
}
"""The units of figures; those not named here are shares and have none."""


def with_unit(value: Estimate | float, name: str) -> str:
    """Write an amount of a figure with its unit.

    >>> with_unit(Estimate(2.0, 1.5, 2.5), "mean_response")
    '2.00 ± 0.50 time units'
    """
    number = str(value) if isinstance(value, Estimate) else f"{value:.4g}"
    return f"{number} {UNITS[name]}" if name in UNITS else number


def named_as_json(result: Any) -> dict[str, Any]:
    """Return a named tuple of figures as ``--json`` prints it."""
    return {
        key: value.as_json() if isinstance(value, Estimate) else value
        for key, value in result._asdict().items()
    }


def _never_offered(classes: tuple[str, ...]) -> str:
    verb = "class {} is" if len(classes) == 1 else "classes {} are"
    return f"{verb.format(', '.join(classes))} never offered, because the plan is 0 everywhere"
