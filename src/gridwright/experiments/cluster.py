"""Replications run on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import numpy as np

from ..model import InputError, System
from ..policies import Policy
from ..simulation import Replication, replicate
from .serialise import pack, unpack
from .store import engine

PATIENCE = 10.0
"""Seconds to wait for a cluster to answer, and to wait for workers."""


class ClusterError(RuntimeError):
    """A cluster failed to run replications."""


def run_on_cluster(
    system: System,
    policy: Policy,
    seeds: Sequence[np.random.SeedSequence],
    options: dict[str, Any],
    on_done: Callable[[int, Replication], None],
    on_progress: Callable[[float], None],
    address: str,
) -> None:
    """Run a replication for every seed on a cluster; report each one that is done.

    A replication whose worker dies is run again by another, from its seed, to the same result.
    """
    with _connected(address) as client:
        parcel, run = pack((system, policy, options)), uuid4().hex
        pending = {
            client.submit(_replicate, parcel, seed, engine(), key=f"gridwright-{run}-{k}"): k
            for k, seed in enumerate(seeds)
        }
        try:
            _collect(client, address, pending, on_done, on_progress)
        finally:
            if client.status == "running":
                client.cancel(list(pending), force=True)


def _collect(
    client: Any,
    address: str,
    pending: dict[Any, int],
    on_done: Callable[[int, Replication], None],
    on_progress: Callable[[float], None],
) -> None:
    from distributed import wait

    total, last_seen = len(pending), monotonic()
    while pending:
        with suppress(TimeoutError), client.as_current():
            wait(list(pending), timeout=0.2, return_when="FIRST_COMPLETED")
        for future in [future for future in pending if future.done()]:
            if future.status != "finished":
                raise _explanation(future, address)
            on_done(pending.pop(future), future.result())
        on_progress(1 - len(pending) / total)
        if client.status == "running" and client.scheduler_info(n_workers=1)["workers"]:
            last_seen = monotonic()
        elif monotonic() - last_seen > PATIENCE:
            raise ClusterError(f"the cluster at {address} has no workers")


def _replicate(parcel: bytes, seed: np.random.SeedSequence, version: str) -> Replication:
    """Run one replication on a worker."""
    from distributed import get_worker

    from ..grid.executors.dask_internals import is_cancelled

    if version != engine():
        raise InputError(
            "a worker has another version of gridwright, Python, NumPy or Numba; "
            "install the same everywhere"
        )
    system, policy, options = _unpacked(parcel)
    worker = get_worker()
    key = worker.get_current_task()

    def on_slice(share: float) -> None:
        if is_cancelled(worker, key):
            raise ClusterError("nobody waits for this replication any more")

    return replicate(system, policy, seed=seed, on_slice=on_slice, **options)


_unpacked = cache(unpack)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect to a scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--on needs Dask: pip install 'gridwright[grid]'") from None
    place = re.fullmatch(r"(tcp|tls)://(\[.+\]|[^:/\s]+):(\d{1,5})", address)
    if place is None or int(place[3]) > 65535:
        raise InputError(f"{address!r} is not the address of a cluster; expected tcp://HOST:PORT")
    _reach(address, (place[2].strip("[]"), int(place[3])))
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are reported in one line
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        yield client


def _reach(address: str, place: tuple[str, int]) -> None:
    """Wait until something listens at the address: a scheduler takes a while to start."""
    begin = monotonic()
    while True:
        try:
            return socket.create_connection(place, PATIENCE).close()
        except OSError as error:
            if monotonic() - begin > PATIENCE:
                raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
        sleep(0.1)


def _explanation(future: Any, address: str) -> Exception:
    """Say why a replication has no result."""
    if future.status == "error":
        error = future.exception()
        if isinstance(error, InputError):
            return error
        return ClusterError(f"a replication failed at {address}: {type(error).__name__}: {error}")
    return ClusterError(f"the cluster at {address} went away during the run")
