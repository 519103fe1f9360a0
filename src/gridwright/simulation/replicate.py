"""One replication of any system: each kind of policy has a mechanism of its own."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from ..model import InputError, System, did_you_mean, mode
from ..policies import BATCH, CHAIN, PEER, PULL, PUSH, Kind, Policy
from . import batch, central, chain, peer
from .driver import PHILOX, RNGS, Conditions, Mechanism, Replication, drive

MECHANISMS: dict[Kind, type[Mechanism]] = {
    PUSH: central.Central,
    PULL: central.Central,
    PEER: peer.Peers,
    BATCH: batch.Batch,
    CHAIN: chain.Chains,
}
OWN, INSTALLED = Path(__file__).parents[1], Path(np.__file__).parents[1]
NUMBA = Path(str(metadata.distribution("numba").locate_file("numba")))
PACKAGES = (OWN, INSTALLED, NUMBA.parent, Path(os.__file__).parent)
"""Where the code of this package is, of those that it uses, and of Python itself."""


def check_system(system: System, policy: Policy) -> None:
    """Refuse a system that policies of this kind cannot run."""
    mode.check(system, policy.kind.mode, f"{policy.name} is a {policy.kind} policy")
    MECHANISMS[policy.kind].check(system, policy)


def check_rng(rng: str, policy: Policy) -> None:
    """Refuse a random generator that is unknown, or that policies of this kind cannot use."""
    if rng not in RNGS:
        hint = did_you_mean(str(rng), RNGS) or f"; expected {' or '.join(RNGS)}"
        raise InputError(f"no random generator {rng!r}{hint}")
    if rng == PHILOX and policy.kind in (BATCH, CHAIN):
        raise InputError(f"{policy.name} is a {policy.kind} policy, which cannot use {PHILOX}")


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

    An error in a user's policy or planner is an ``InputError`` that names its line.
    """
    chosen = Conditions(float(horizon), seed, float(warmup), **conditions)
    try:
        return drive(MECHANISMS[policy.kind](system, policy, chosen))
    except InputError:
        raise
    except Exception as error:
        where = line_of(error, policy)
        if where is None:
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{where}: {said}") from None


def line_of(error: Exception, policy: Policy) -> str | None:
    """Name the line of a user's code that an error comes from; None where there is none.

    Compiled code that raises adds its own line to the traceback. Where that is a line of Numba,
    all that is known is that the policy called it. Without the quick compiler, a wrong index has no
    line: then the policy is named.
    """
    frames = [(Path(each.filename), each.lineno) for each in extract_tb(error.__traceback__)]
    for file, line in reversed(frames):
        if not _is_in(file, *PACKAGES):
            return f"{file.name if file.is_file() else f'policy {policy.name}'}, line {line}"
    *_, (caller, _), (file, _) = [(Path(), 0), (Path(), 0), *frames]
    if _is_in(caller, OWN) and _is_in(file, NUMBA) and not policy.is_shipped:
        code = policy.decide.__code__
        return f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    if str(error) == "index is out of bounds" and not policy.is_shipped:
        return f"policy {policy.name}"
    return None


def _is_in(file: Path, *folders: Path) -> bool:
    return any(map(file.is_relative_to, folders))
