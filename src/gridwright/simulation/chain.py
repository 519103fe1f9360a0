"""The mechanism of chain policies: jobs are chains of applications, and customers have limits."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..model import Customer, System
from ..policies import Policy
from .chain_loop import events_per_step, loop, next_tick
from .chain_setup import make_state
from .chain_state import ChainState
from .driver import Conditions, Mechanism, doubled


class Chains(Mechanism):
    """A grid of chains."""

    link_field: ClassVar[str] = "left"
    serving_field: ClassVar[str] = "job"
    tasks: ClassVar[str] = "jobs"
    most: ClassVar[int] = 1 << 23
    events_per_step = staticmethod(events_per_step)
    fewest = 8  # runs are short, and many

    def __init__(self, system: System, policy: Policy, conditions: Conditions) -> None:
        super().__init__(system, policy, conditions)
        horizon = conditions.horizon
        self.state, self.distributions = make_state(system, policy, self.streams, horizon)
        applications = float(self.state.templates["applications"].mean())
        self.effort = applications * (1 + system.shape[1] / 8)
        self.go = self.linked(loop, self.state.shapes, inlined=False)
        self.rest = (conditions.warmup, horizon, *self.streams[:4])

    def more_room(self, size: int) -> None:
        self.state.count[0].spare += size - len(self.state.jobs)
        self.replace(jobs=doubled(self.state.jobs), draws=doubled(self.state.draws))

    def upcoming(self) -> float:
        return float(next_tick(self.state)) if self.state.count[0].started else 0.0

    @property
    def responded(self) -> NDArray[np.int64]:
        """Jobs of each template that arrived after the warm-up and finished."""
        stream = np.asarray(self.state.stream)
        return stream["ok"] + stream["late"]

    def measured(self) -> dict[str, Any]:
        state, count, stream = self.state, self.state.count[0], np.asarray(self.state.stream)
        arrived, ok, late = (int(stream[field].sum()) for field in ("arrived", "ok", "late"))
        jobs = {
            "ok": ok,
            "late": late,
            "in_progress": arrived - ok - late,
            "performance": ok / (ok + late) if ok + late else 0.0,
        }
        customers = adequacy(state, self.system, self.conditions.horizon, self.conditions.warmup)
        return {
            **{name: int(count[name]) for name in ("lost", "held", "asked")},
            "tally": state.tally.copy(),
            "permitted": np.full(len(stream), float(len(state.server))),
            "memory": state.memory.copy(),
            "more": MappingProxyType(jobs | customers),
        }


def adequacy(state: ChainState, system: System, horizon: float, warmup: float) -> dict[str, Any]:
    """Measure every customer: jobs, late ones, and δ = β^max − α over its windows.

    α counts the jobs that arrived in a window and took longer than acceptable: those that
    finished late, and those in progress that are too late already. Also f, the share of
    arrivals that fail.
    """
    failed = state.failed + _overdue(state, horizon, warmup)
    customers = system.customers or (Customer(name="all"),)
    found = [
        margins(each, state.arrived[c], failed[c], horizon, warmup)
        for c, each in enumerate(customers)
    ]
    known = [each[~np.isnan(each)] for each in found]
    total = int(state.arrived.sum())
    return {
        "failure_share": float(failed.sum()) / total if total else 0.0,
        "customer_jobs": state.arrived.sum(axis=1),
        "customer_failures": failed.sum(axis=1),
        "least_margin": np.array([each.min() if len(each) else np.nan for each in known]),
        "mean_margin": np.array([each.mean() if len(each) else np.nan for each in known]),
        "adequate": np.array([float((each > 0).all()) for each in known]),
    }


def margins(
    customer: Customer, arrived: Any, failed: Any, horizon: float, warmup: float
) -> np.ndarray[Any, Any]:
    """Return δ of every window that lies after the warm-up; NaN where there is no limit.

    A limit on the share of jobs needs jobs. A customer without limits has no margins.

    >>> limited = Customer(name="bank", max_failures=2, window=10)
    >>> margins(limited, np.array([3, 0, 5]), np.array([1, 0, 3]), 30, 0)
    array([ 1.,  2., -1.])
    """
    windows = int(np.ceil(horizon / customer.window - 1e-9))
    if np.isnan(customer.limits(1)[0]):
        return np.full(1, np.nan)
    limit = customer.limits(windows)
    if customer.max_share is not None:
        limit = np.where(arrived[:windows] > 0, limit * arrived[:windows], np.nan)
    limit[np.arange(windows) * customer.window < warmup] = np.nan
    return limit - failed[:windows]


def _overdue(state: ChainState, horizon: float, warmup: float) -> Any:
    """Count the jobs in progress that are late already, by customer and window."""
    overdue = np.zeros_like(state.failed)
    jobs = np.asarray(state.jobs)[state.ticket["active"]]
    template = np.asarray(state.templates)[jobs["template"]]
    late = (horizon - jobs["arrived"] > template["latency"]) & (jobs["arrived"] >= warmup)
    customer = template["customer"][late]
    window = (jobs["arrived"][late] / state.window[customer]).astype(np.int64)
    np.add.at(overdue, (customer, window), 1)
    return overdue
