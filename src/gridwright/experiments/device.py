"""Replications run on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..model import InputError, System
from ..policies import Policy
from ..simulation import Device, Job, Replication, launch

GPU = "gpu"
"""The place, as users write it."""


@cache
def find_device() -> Device:
    """Return the GPU of this computer; refuse if there is none, or if the extra is missing."""
    try:
        from ..compiler import cuda
    except ImportError:
        raise InputError("a GPU needs numba-cuda: pip install 'gridwright[gpu]'") from None
    try:
        return cuda.Device()
    except cuda.NoDeviceError as error:
        raise InputError(f"no GPU of NVIDIA was found: {error}") from None


def check_on_gpu(policy: Policy, *, trace: bool = False) -> None:
    """Refuse what stays on the CPU."""
    if not policy.kind.is_central:
        raise InputError(
            f"{policy.name} is a {policy.kind} policy; a GPU runs push and pull policies"
        )
    if trace:
        raise InputError("a GPU keeps no event log; leave out the trace, or run on the CPU")


def run_on_gpu(
    system: System,
    policy: Policy,
    seeds: Sequence[np.random.SeedSequence],
    options: dict[str, Any],
    on_done: Callable[[int, Replication], None],
    on_progress: Callable[[float], None],
) -> None:
    """Run a replication for every seed on the GPU; report each one, and the share done."""
    job = job_of(system, policy, seeds, options)
    launch(find_device(), [job], lambda _, k, found: on_done(k, found), on_progress)


def job_of(
    system: System,
    policy: Policy,
    seeds: Sequence[np.random.SeedSequence],
    options: dict[str, Any],
) -> Job:
    """Return what is to be run; refuse a policy that a GPU cannot run."""
    if policy.allocating:
        raise InputError(f"policy {policy.name} creates arrays, which a GPU cannot; use loops")
    given = [options[name] for name in ("horizon", "warmup", "tails")]
    return Job(system, policy, seeds, *given)
