"""A Dask cluster of this computer, for as long as a benchmark takes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["dask_workers"]


@contextmanager
def dask_workers(number: int) -> Iterator[str]:
    """Run Dask workers, named 1, 2, …; yield the address of their scheduler."""
    command = [sys.executable, "-m", "gridwright", "dask", "workers", "--local", str(number)]
    words = [*command, "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        try:
            yield json.loads(cluster.stdout.readline())["address"]
        finally:
            cluster.send_signal(signal.SIGINT)
