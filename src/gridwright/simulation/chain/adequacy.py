"""Whether customers are served adequately: late jobs, window by window, against their limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model import Customer, System
from .state import ChainState

__all__ = ["adequacy", "margins"]


def adequacy(state: ChainState, system: System, horizon: float, warmup: float) -> dict[str, Any]:
    """Measure every customer: jobs, late ones, and δ = β^max − α over its windows.

    α counts the jobs that arrived in a window and took longer than acceptable: those that
    finished late, and those in progress that are too late already. With them f, the share of
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
    """Return δ of every window that lies after the warm-up; NaN where nothing is to be judged.

    A share of no jobs is no limit. A customer without limits has no margins.

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
    jobs = state.jobs[state.ticket["active"]]
    template = state.templates[jobs["template"]]
    late = (horizon - jobs["arrived"] > template["latency"]) & (jobs["arrived"] >= warmup)
    customer = template["customer"][late]
    window = (jobs["arrived"][late] / state.window[customer]).astype(np.int64)
    np.add.at(overdue, (customer, window), 1)
    return overdue
