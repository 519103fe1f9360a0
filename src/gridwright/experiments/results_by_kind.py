"""Results of peer, batch and chain policies, and which result belongs to which kind of policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..model import Floats, InputError, System
from ..policies import BATCH, CHAIN, PEER, PULL, PUSH, Kind, Policy
from ..policies import find as find_policy
from ..statistics import Estimate, Stability, estimate
from .result import Result, named_as_json

COUNTS_ITSELF = ("kpb_dec",)
"""Policies for which the source counts the asking machine among those asked."""


class PeerResult(Result):
    """The result of a peer policy: messages, and how much machines know of each other."""

    further: ClassVar[tuple[str, ...]] = (
        "messages_per_task",
        "like_for_like",
        "view_age",
        "disagreement",
    )

    def values(self, name: str) -> Floats:
        """Return a figure by its name, one value a replication.

        ``messages_per_task`` by the rule of the source for the policy: a question and an answer for
        every machine asked, the asking one included for KPB and never for the others;
        ``like_for_like`` never counts it.
        """
        if name not in ("messages_per_task", "like_for_like"):
            return super().values(name)
        counts_itself = name == "messages_per_task" and self.policy.name in COUNTS_ITSELF
        asked = super().values("considered" if counts_itself else "met")
        return 2 * asked / np.maximum(self._stack("tasks"), 1)

    @property
    def messages(self) -> Estimate:
        """Messages sent, by the rule of the source for the policy."""
        return estimate(self.values("messages_per_task") * self._stack("tasks"))

    @property
    def information(self) -> Estimate:
        """The mean number of other machines asked about their state per arrival."""
        return estimate(self.values("like_for_like") / 2)


class CostResult(Result):
    """The result of a push or pull policy on a system with costs: it is compared by its cost."""

    further = ("mean_cost",)
    criteria = ("mean_response", "mean_cost")


class PeerCostResult(PeerResult):
    """The result of a peer policy on a system with costs."""

    further = ("mean_cost", *PeerResult.further)
    criteria = ("mean_response", "mean_cost")


BY_CLASS = ("on_time", "late", "discarded")
CUSTOMER_FIGURES = ("customer_jobs", "customer_failures", "least_margin", "mean_margin", "adequate")


class BatchResult(Result):
    """The result of a batch policy; without deadlines every finished task is on time."""

    further = (
        "on_time",
        "on_time_fraction",
        "late",
        "discarded",
        "wasted_work",
        "makespan",
        "unfinished",
    )
    compared: ClassVar[tuple[str, ...]] = ("mean_response", "makespan")
    criteria = ("makespan", "mean_response")
    more_is_better = frozenset({"on_time", "on_time_fraction"})

    @property
    def by_class(self) -> dict[str, tuple[Estimate, ...]]:
        """Tasks of each class that were on time, late and discarded, and the share on time."""
        found = {name: self.values(f"class_{name}") for name in BY_CLASS}
        arrived = self.values("class_arrived")
        found["on_time_fraction"] = found["on_time"] / arrived.clip(min=1)
        return {
            name: tuple(estimate(column) for column in values.T) for name, values in found.items()
        }

    @property
    def moments(self) -> Any:
        """Of a traced run, a row a sample: time, ρ, the published count, expected on time."""
        return self.replications[0].more.get("moments")

    @property
    def length(self) -> str:
        """How long a run is, in words."""
        tasks = None if self.system.batch is None else self.system.batch.tasks
        return super().length if tasks is None else f"{tasks:,} tasks"

    @cached_property
    def long_run_load(self) -> None:
        """None: tasks may be discarded, so the allocation LP does not bound what arrives."""
        return None

    @cached_property
    def stability(self) -> Stability:
        """Whether the number in system settles; a run that ends by itself has no trend."""
        if self.system.batch is not None and self.system.batch.tasks is not None:
            return Stability(True, 0.0)
        return super().stability

    def as_json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        whole = super().as_json()
        for i, each in enumerate(whole["classes"]):
            each |= {name: found[i].as_json() for name, found in self.by_class.items()}
        return whole


class DeadlineResult(BatchResult):
    """The result of a batch policy on a system with deadlines: it is compared by tasks on time."""

    compared = ("on_time", "late", "discarded", "unfinished", "wasted_work")
    criteria = ("mean_response", "on_time")


def batch_result(system: System, policy: Policy, *rest: Any) -> BatchResult:
    """Make the result of a batch policy."""
    kind = BatchResult if system.deadlines is None else DeadlineResult
    return kind(system, policy, *rest)


class CustomerResult(NamedTuple):
    """How a customer was served."""

    name: str
    jobs: Estimate
    failures: Estimate
    """Σ α: jobs that took longer than acceptable, or already have."""
    failure_share: Estimate
    """Of its jobs."""
    least_margin: Estimate
    """The least δ = β^max − α of a window; NaN without a limit."""
    mean_margin: Estimate
    adequate: Estimate
    """The share of replications in which δ > 0 in every window."""


class ChainResult(Result):
    """The result of simulating chains of applications under a policy.

    ``performance`` is ok / (ok + late): jobs in progress are left out, and it is 0 where no job
    has finished.
    """

    further = ("ok", "late", "in_progress", "performance", "failure_share")
    criteria = ("ok", "performance")
    more_is_better = frozenset({"ok", "performance"})

    @cached_property
    def customers(self) -> tuple[CustomerResult, ...]:
        """The figures of every customer; of all jobs together where there is none."""
        names = [each.name for each in self.system.customers] or ["all"]
        jobs, failures, least, mean, adequate = (self.values(name) for name in CUSTOMER_FIGURES)
        shares = np.divide(failures, jobs, out=np.zeros_like(jobs), where=jobs > 0)
        stacks = (jobs, failures, shares, least, mean, adequate)
        return tuple(
            CustomerResult(name, *(estimate(stack[:, c]) for stack in stacks))
            for c, name in enumerate(names)
        )

    @property
    def adequate(self) -> bool:
        """Whether δ > 0 for every customer, in every window of every replication."""
        return all(customer.adequate.mean == 1 for customer in self.customers)

    def as_json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        customers = [named_as_json(each) for each in self.customers]
        return {**super().as_json(), "customers": customers, "adequate": self.adequate}


def central_result(system: System, policy: Policy, *rest: Any) -> Result:
    """Make the result of a push or pull policy."""
    return (CostResult if system.has_costs else Result)(system, policy, *rest)


def peer_result(system: System, policy: Policy, *rest: Any) -> PeerResult:
    """Make the result of a peer policy."""
    return (PeerCostResult if system.has_costs else PeerResult)(system, policy, *rest)


RESULTS: dict[Kind, Callable[..., Result]] = {
    PUSH: central_result,
    PULL: central_result,
    PEER: peer_result,
    BATCH: batch_result,
    CHAIN: ChainResult,
}


def result_of(system: System, policy: Policy, *rest: Any) -> Result:
    """Make the result of a simulation; the rest are the further fields of ``Result``."""
    return RESULTS[policy.kind](system, policy, *rest)


def choose_policies(policies: Iterable[Any], fewest: int, missing: str) -> list[Policy]:
    """Find policies that can be compared; refuse too few of them, and one that is named twice."""
    chosen = [find_policy(policy) for policy in policies]
    names = [str(policy) for policy in chosen]
    if len(chosen) < fewest:
        raise InputError(missing)
    if len(set(names)) < len(names):
        raise InputError(f"policy {max(names, key=names.count)!r} is named twice")
    check_alike(chosen)
    return chosen


def check_alike(policies: Sequence[Policy]) -> None:
    """Refuse policies of kinds that have different figures and different arrivals."""
    first, *others = policies
    for other in others:
        if RESULTS.get(first.kind) is not RESULTS.get(other.kind):
            raise InputError(
                f"{first.name} is a {first.kind} policy and {other.name} a {other.kind} policy; "
                "they cannot be compared, since they have different figures"
            )
