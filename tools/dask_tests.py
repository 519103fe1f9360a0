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

LEFT_OUT: dict[str, str] = {}
"""Tests that cannot pass with our placement, or not here, and why."""

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
    out = [item for item in items if item.name.partition("[")[0] in LEFT_OUT]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
