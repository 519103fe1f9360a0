"""What a simulation of chains measured: jobs within their acceptable latency, and customers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..statistics import Estimate, estimate
from .result import Result

__all__ = ["ChainResult", "CustomerResult"]


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


@dataclass(frozen=True, eq=False)
class ChainResult(Result):
    """The result of simulating chains of applications under a policy.

    ``performance`` is ok / (ok + late): jobs in progress are left out, and it is 0 where no job
    has finished.
    """

    further: ClassVar[tuple[str, ...]] = (
        "ok",
        "late",
        "in_progress",
        "performance",
        "failure_share",
    )
    criteria: ClassVar[tuple[str, ...]] = ("ok", "performance")
    more_is_better: ClassVar[frozenset[str]] = frozenset({"ok", "performance"})

    @cached_property
    def customers(self) -> tuple[CustomerResult, ...]:
        """The figures of every customer; of all jobs together where there is none."""
        names = [each.name for each in self.system.customers] or ["all"]
        jobs, failures, least, mean, adequate = (
            np.array([run.more[key] for run in self.replications], dtype=float)
            for key in (
                "customer_jobs",
                "customer_failures",
                "least_margin",
                "mean_margin",
                "adequate",
            )
        )
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
        customers = [
            {
                key: value.as_json() if isinstance(value, Estimate) else value
                for key, value in each._asdict().items()
            }
            for each in self.customers
        ]
        return {**super().as_json(), "customers": customers, "adequate": self.adequate}
