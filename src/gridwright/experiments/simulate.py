"""``simulate``: independent replications of a system under a policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any

import numpy as np

from ..catalogue import find_or_read
from ..model import Delays, InputError, System
from ..model.error import positive_numbers
from ..policies import Policy
from ..policies import find as find_policy
from ..simulation import (
    PCG64,
    PHILOX,
    Replication,
    check_rng,
    check_run,
    check_system,
    replicate,
)
from .cluster import run_on_cluster
from .device import GPU, check_on_gpu, run_on_gpu
from .rehearsal import prepare
from .result import Result
from .results_by_kind import result_of
from .store import Kept

HORIZON = 20_000.0
ROUND = 10
"""Replications added at a time until the precision is reached."""
MOST = 1000

SystemGiven = System | str | PathLike[str]
PolicyGiven = Policy | str | PathLike[str]
"""An object, its name, or the path of its file."""

Progress = Callable[[float, list[Replication]], None]
"""Called during a simulation with the share done and the replications so far."""


def simulate(
    system: SystemGiven,
    policy: PolicyGiven,
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    *,
    warmup: float = 0.0,
    precision: float | None = None,
    threads: int | None = None,
    delays: Delays | Mapping[str, Any] | None = None,
    trace: bool = False,
    rng: str = PCG64,
    tails: bool = False,
    within: Sequence[float] = (),
    on: str | None = None,
    store: Kept | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulate a system under a policy.

    Parameters
    ----------
    system
        A system, its name in the catalogue, or the path of its file.
    policy
        A policy, its name with parameters (``"kpb:k=3"``), or the path of its file.
    horizon
        The length of a run in time units; by default the published one if the catalogue has it,
        else 20,000.
    replications
        How many independent runs; with one there is no interval.
    seed
        Same seed, same result, whatever the number of threads.
    warmup
        Time at the start of every run that does not count.
    precision
        In place of replications: add replications until the half widths of the mean number and the
        mean response, or of the figures that policies of the kind are compared by, are within
        this share of them (at most 1,000 replications).
    threads
        How many run at once; by default one for each processor.
    delays
        The delays of a real grid, in place of those of the system: time to send a task, to hear
        that it is done, to notice that a machine has failed, and between reports of CPU
        availability (``{"before": 0.5, "after": 0.1}``).
    trace
        Keep the event log of every replication.
    rng
        The random generator: NumPy's ``"pcg64"``, or ``"philox"``, which gives the same numbers on
        every processor. Batches and chains have the first only.
    tails
        Also measure percentiles of the response: p50, p95, p99 and p99.9, exact to 1 %.
    within
        Times: also measure the share of tasks that respond within each of them.
    on
        The address of a Dask scheduler (``tcp://…``) whose workers run the replications, with the
        same numbers to the last digit; or ``"gpu"``, for push and pull policies, with the numbers
        of ``rng="philox"`` up to rounding.
    store
        Where replications are kept, so that none is simulated twice.
    progress
        Called from time to time with the share done and the replications so far.

    Examples
    --------
    >>> result = simulate("2.B", "lpas", horizon=2000, replications=4)
    >>> result.stable
    True
    >>> result.mean_number.overlaps(5.1, 5.3)
    True
    """
    system, horizon = resolve(system, horizon)
    policy = find_policy(policy)
    check_numbers(horizon, replications, seed, warmup, precision, threads)
    if delays is not None:
        system = system.replace(delays=delays)
    limits = positive_numbers("within", within, "time units")
    has_tails = tails or len(within) > 0
    options = options_of(system, policy, horizon, warmup, trace, has_tails, rng, on)
    runs: list[Replication] = []
    wanted = replications if precision is None else ROUND
    work = _Work(system, policy, options, threads, on, store, progress)
    while True:
        runs += work.run(seeds_of(seed, len(runs), wanted), runs)
        result = result_of(system, policy, horizon, warmup, seed, tuple(runs), limits)
        if precision is None or len(runs) >= MOST or _is_precise(result, precision):
            return result
        wanted = len(runs) + ROUND


def options_of(
    system: System,
    policy: Policy,
    horizon: float,
    warmup: float = 0.0,
    trace: bool = False,
    tails: bool = False,
    rng: str = PCG64,
    on: str | None = None,
) -> dict[str, Any]:
    """Return the conditions of all replications, checked; a GPU always draws with Philox."""
    check_system(system, policy)
    check_rng(rng, policy)
    if on == GPU:
        check_on_gpu(policy, trace=trace)
        rng = PHILOX
    return {
        "horizon": horizon,
        "warmup": float(warmup),
        "trace": trace,
        "tails": tails,
        "rng": rng,
    }


def seeds_of(seed: int, first: int, end: int) -> list[np.random.SeedSequence]:
    """Return the seeds of replications from the first up to the end."""
    return [np.random.SeedSequence(seed, spawn_key=(number,)) for number in range(first, end)]


@dataclass
class _Work:
    """Replications of one system under one policy: here, elsewhere, or from a store."""

    system: System
    policy: Policy
    options: dict[str, Any]
    threads: int | None
    on: str | None
    store: Kept | None
    progress: Progress | None
    prepared: Policy | None = None

    def run(
        self, seeds: list[np.random.SeedSequence], before: list[Replication]
    ) -> list[Replication]:
        """Return a replication for every seed: from the store if it is there, else simulated."""
        store, options = self.store, self.options
        where = {**options, "on": GPU if self.on == GPU else None}
        keys = [store and store.key(self.system, self.policy, seed, where) for seed in seeds]
        kept = {k: store.get(key) for k, key in enumerate(keys) if store and key}
        found = {k: each for k, each in kept.items() if each is not None}
        missing = [k for k in range(len(seeds)) if k not in found]

        def on_done(number: int, replication: Replication) -> None:
            found[missing[number]] = replication
            if store and (key := keys[missing[number]]):
                store.put(key, replication)

        def on_progress(share: float) -> None:
            if self.progress is not None:
                done = 1 - (1 - share) * len(missing) / len(seeds)
                self.progress(done, [*before, *(found[k] for k in sorted(found))])

        on_progress(0.0)  # compiling may take some seconds
        if missing:
            if self.prepared is None and self.on == GPU and self.policy.is_shipped:
                self.prepared = self.policy  # it needs no CPU
            elif self.prepared is None:
                self.prepared = prepare(self.system, self.policy, self.options["rng"])
            what = (self.system, self.prepared, [seeds[k] for k in missing], self.options)
            if self.on is None:
                run_in_threads(*what, on_done, on_progress, self.threads)
            elif self.on == GPU:
                run_on_gpu(*what, on_done, on_progress)
            else:
                run_on_cluster(*what, on_done, on_progress, self.on)
        return [found[k] for k in range(len(seeds))]


def resolve(system: SystemGiven, horizon: float | None) -> tuple[System, float]:
    """Return a system by its name or path, and the length of a run of it."""
    if horizon is not None:
        _check_kind("horizon", horizon, Real)
    if isinstance(system, System):
        return system, HORIZON if horizon is None else float(horizon)
    entry = find_or_read(system)
    if entry.down:
        raise InputError(f"{entry.name} has machines down; it is an example for allocate only")
    return entry.system, float(horizon if horizon is not None else entry.horizon or HORIZON)


def check_numbers(
    horizon: float,
    replications: int,
    seed: int,
    warmup: float = 0.0,
    precision: float | None = None,
    threads: int | None = None,
) -> None:
    """Refuse numbers that cannot be simulated."""
    _check_kind("replications", replications, Integral)
    _check_kind("seed", seed, Integral)
    _check_kind("warmup", warmup, Real)
    if precision is not None:
        _check_kind("precision", precision, Real)
    if threads is not None:
        _check_kind("threads", threads, Integral)
    check_run(horizon, warmup)
    if replications < 1:
        raise InputError(f"replications is {replications}; expected at least 1")
    if seed < 0:
        raise InputError(f"seed is {seed}; expected 0 or more")
    if precision is not None and not 0 < precision < 1:
        raise InputError(f"precision is {precision:g}; expected a number between 0 and 1")
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; expected at least 1")


def _check_kind(name: str, value: Any, kind: type[Real] | type[Integral]) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        what = "a whole number" if kind is Integral else "a number"
        raise InputError(f"{name} is {value!r}; expected {what}")


def _is_precise(result: Result, precision: float) -> bool:
    return all(
        each.half_width <= precision * abs(each.mean)
        for each in map(result.figure, result.criteria)
    )


class _StoppedError(Exception):
    """Raised in a replication whose result is no longer needed."""


def run_in_threads(
    system: System,
    policy: Policy,
    seeds: Sequence[np.random.SeedSequence],
    options: dict[str, Any],
    on_done: Callable[[int, Replication], None],
    on_progress: Callable[[float], None],
    threads: int | None,
) -> None:
    """Run a replication for every seed in threads; report each one, and the share done.

    Compiled loops release the interpreter's lock.
    """
    stop = Event()
    running: dict[int, float] = {}  # the share done of each

    def run(number: int) -> Replication:
        def on_slice(share: float) -> None:
            if stop.is_set():
                raise _StoppedError
            running[number] = share

        return replicate(system, policy, seed=seeds[number], on_slice=on_slice, **options)

    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1)
    ended: SimpleQueue[Future[Replication]] = SimpleQueue()  # to wait for all would take n² steps
    pending: dict[Future[Replication], int] = {pool.submit(run, k): k for k in range(len(seeds))}
    for future in pending:
        future.add_done_callback(ended.put)
    try:
        while pending:
            with suppress(Empty):
                future = ended.get(timeout=0.1)
                number = pending.pop(future)
                running.pop(number, None)
                on_done(number, future.result())
            done = len(seeds) - len(pending) + sum(tuple(running.values()))
            on_progress(done / len(seeds))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
