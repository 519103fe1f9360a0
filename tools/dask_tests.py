"""A plugin for pytest that runs Dask's own tests with our placement in every scheduler.

    python -m pytest -p tools.dask_tests FOLDER

`tools/dask_versions.py` uses it. Schedulers in other processes than the tests' stay as they are.
"""

import functools
import os
from typing import Any

import pytest
from distributed import Scheduler
from distributed.scheduler import SchedulerState
from distributed.utils_test import *  # noqa: F403  # the fixtures of Dask's tests

import gridwright.dask

POLICY = os.environ.get("GRIDWRIGHT_POLICY", "pas_dg")
"""The policy of the placement; "" leaves Dask as it is."""

ON_WORKER = "wants tasks to wait on a worker; ours wait on the scheduler"
ON_SCHEDULER = "wants tasks to wait on the scheduler; ours go ahead to a worker if they seem short"
STOCK = "wants the worker that stock Dask chooses"
LEFT_OUT = {
    "test_executing_cancelled_error": ON_WORKER,
    "test_saturation_factor": ON_WORKER,
    "test_do_not_ping_pong": ON_WORKER,
    "test_stealing_objective_accounts_for_in_flight": ON_WORKER,
    "queue on worker": ON_WORKER,
    "queue on scheduler": "wants tasks without a running worker in a list; ours stay in the queue",
    "test_deadlock_dependency_of_queued_released_when_worker_replaced": ON_SCHEDULER,
    "test_deadlock_dependency_of_queued_released_when_worker_removed": ON_SCHEDULER,
    "test_override_is_rootish": "wants stock Dask's answer to whether a task may wait",
    "test_decide_worker_coschedule_order_neighbors": STOCK,
    "test_balance_many_workers_2": STOCK,
    "test_get_prefix_duration": "counts tasks that stock Dask may move to other workers",
    "test_unknown_task_duration_config": "counts tasks that stock Dask may move to other workers",
    "test_deadlock_resubmit_queued_tasks_fast": "wants tasks that stock Dask would not queue",
    "test_bad_local_directory": "fails without our placement too, where it was tried",
    "test_bad_address": "fails without our placement too, where it was tried",
}
"""Tests that cannot pass with our placement, by name or by their parameters, and why."""
if POLICY:
    _init = Scheduler.__init__

    @functools.wraps(_init)
    def _with_placement(self: Scheduler, *args: Any, plugins: Any = (), **options: Any) -> None:
        _init(self, *args, plugins=[*plugins, gridwright.dask.Placement(POLICY)], **options)

    Scheduler.__init__ = _with_placement
    _tables = vars(SchedulerState)["_TRANSITIONS_TABLE"]
    _queue = _tables["waiting", "queued"]

    def _queue_beside_idle(self: Scheduler, *args: Any, **options: Any) -> Any:
        """Queue a task without the check of Dask's tests that no worker is idle: ours may wait."""
        idle, self.idle_task_count = self.idle_task_count, set()
        try:
            return _queue(self, *args, **options)
        finally:
            self.idle_task_count = idle

    _tables["waiting", "queued"] = _queue_beside_idle


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are named above."""
    out = []
    for item in items:
        name, _, parameters = item.name.partition("[")
        if name in LEFT_OUT or parameters.rstrip("]") in LEFT_OUT:
            out.append(item)
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
