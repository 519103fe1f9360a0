"""One replication of any system: each kind of policy has a mechanism of its own."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

import numpy as np

from ..model import InputError, System
from ..policies import Policy
from . import batch, central, chain, peer
from .replication import Conditions, Replication

__all__ = ["check_system", "line_of", "replicate"]

MECHANISMS: dict[str, ModuleType] = {
    "push": central,
    "pull": central,
    "peer": peer,
    "batch": batch,
    "chain": chain,
}
"""By kind of policy: a module that checks whether a system suits, and runs one replication."""
PACKAGES = (Path(__file__).parents[1], Path(np.__file__).parent)
"""Where the code of this package and of NumPy is."""


def check_system(system: System, policy: Policy) -> None:
    """Refuse a system that policies of this kind cannot run."""
    if policy.kind not in MECHANISMS:
        raise InputError(f"{policy.kind} policies cannot be simulated")
    if system.has_chains and policy.kind != "chain":
        raise InputError(
            f"{system.name or 'the system'} has chains of applications (templates), which is for "
            f"policies for chains; {policy.name} is a {policy.kind} policy"
        )
    MECHANISMS[policy.kind].check(system, policy)
    if system.batch_only and policy.kind != "batch":
        raise InputError(
            f"{system.name or 'the system'} has {', '.join(system.batch_only)}, for batch policies "
            f"only; {policy.name} is a {policy.kind} policy"
        )


def replicate(
    system: System,
    policy: Policy,
    *,
    horizon: float,
    seed: np.random.SeedSequence,
    warmup: float = 0.0,
    **conditions: Any,
) -> Replication:
    """Simulate one replication; the other conditions are those of ``Conditions``.

    An index out of range in a user's policy is an ``InputError`` that names its line.
    """
    chosen = Conditions(float(horizon), seed, float(warmup), **conditions)
    try:
        replication: Replication = MECHANISMS[policy.kind].run(system, policy, chosen)
        return replication
    except IndexError as error:
        where = line_of(error, policy)
        if where is None:
            raise
        raise InputError(f"{where}: IndexError: {error}") from None


def line_of(error: Exception, policy: Policy) -> str | None:
    """Name the line of a user's code that an error comes from; None where there is none.

    Compiled code that meets an index out of range adds its own line to the traceback.
    """
    for frame in reversed(extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if not any(file.is_relative_to(package) for package in PACKAGES):
            name = file.name if file.is_file() else f"policy {policy.name}"
            return f"{name}, line {frame.lineno}"
    return None
