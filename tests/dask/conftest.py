"""Workers of Dask in this process."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield a client of two workers with one thread each, or of the module's CLUSTER."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": ":0",
        **getattr(request.module, "CLUSTER", {}),
    }
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client
