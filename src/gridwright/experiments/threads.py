"""Replications run in threads of this process; the engines release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import Any

import numpy as np

from ..model import System
from ..policies import Policy
from ..simulation import Replication, replicate

__all__ = ["run_in_threads"]


class _StoppedError(Exception):
    """Raised in a replication that nobody waits for any more."""


def run_in_threads(
    system: System,
    policy: Policy,
    seeds: Sequence[np.random.SeedSequence],
    options: dict[str, Any],
    on_done: Callable[[int, Replication], None],
    on_progress: Callable[[float], None],
    threads: int | None,
) -> None:
    """Run a replication for every seed; tell of each as it is done, and of the share done."""
    stop = Event()
    shares = [0.0] * len(seeds)

    def run(number: int) -> Replication:
        def on_slice(share: float) -> None:
            if stop.is_set():
                raise _StoppedError
            shares[number] = share

        return replicate(system, policy, seed=seeds[number], on_slice=on_slice, **options)

    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1)
    pending: dict[Future[Replication], int] = {pool.submit(run, k): k for k in range(len(seeds))}
    try:
        while pending:
            done, _ = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                on_done(pending.pop(future), future.result())
            on_progress(sum(shares) / len(shares))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
