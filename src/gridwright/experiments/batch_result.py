"""What a simulation of batches measured: tasks on time, late, discarded; the makespan."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..model import System
from ..policies import Policy
from ..statistics import Estimate, Stability, estimate
from .result import Result

__all__ = ["BatchResult", "DeadlineResult", "batch_result"]

BY_CLASS = ("on_time", "late", "discarded")


class BatchResult(Result):
    """The result of a batch policy; every task that is finished is on time without deadlines."""

    further: ClassVar[tuple[str, ...]] = (
        "on_time",
        "on_time_fraction",
        "late",
        "discarded",
        "wasted_work",
        "makespan",
        "unfinished",
    )
    compared: ClassVar[tuple[str, ...]] = ("mean_response", "makespan")
    criteria: ClassVar[tuple[str, ...]] = ("makespan", "mean_response")
    more_is_better: ClassVar[frozenset[str]] = frozenset({"on_time", "on_time_fraction"})

    @property
    def by_class(self) -> dict[str, tuple[Estimate, ...]]:
        """Tasks of each class that were on time, late and discarded, and the share on time."""
        found = {name: self._stacked(f"class_{name}") for name in BY_CLASS}
        arrived = self._stacked("class_arrived")
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

    def _stacked(self, name: str) -> Any:
        return np.array([r.more[name] for r in self.replications], dtype=float)


class DeadlineResult(BatchResult):
    """The result of a batch policy where there are deadlines: they are what counts."""

    compared: ClassVar[tuple[str, ...]] = (
        "on_time",
        "late",
        "discarded",
        "unfinished",
        "wasted_work",
    )
    criteria: ClassVar[tuple[str, ...]] = ("mean_response", "on_time")


def batch_result(system: System, policy: Policy, *rest: Any) -> BatchResult:
    """Make the result of a batch policy."""
    kind = BatchResult if system.deadlines is None else DeadlineResult
    return kind(system, policy, *rest)
