"""A short rehearsal in plain Python before a policy is compiled: mistakes show where they are.

Compiled code does not check indices and says little about what it cannot compile. A user's policy
is therefore run interpreted on a few hundred tasks first.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

import numpy as np

from ..model import InputError, System
from ..policies import Policy
from ..simulation import Delays, replicate

__all__ = ["prepare"]

TASKS = 200


def prepare(system: System, policy: Policy, delays: Delays | None) -> Policy:
    """Try a policy out on a system and compile it; return it as it compiles."""
    seed = np.random.SeedSequence(0)
    short = TASKS / float(system.arrival_rates.sum())
    system = _shortened(system)
    if not policy.is_shipped:
        _rehearse(system, policy, delays, short)
    try:
        replicate(system, policy, horizon=short / TASKS, seed=seed, delays=delays)
        return policy
    except InputError:
        raise
    except Exception as error:
        if not policy.allocating and "NRT required" in str(error):
            return prepare(system, replace(policy, allocating=True), delays)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        telling = next((line for line in lines if "File" not in line and len(line) > 20), lines[0])
        raise InputError(
            f"policy {policy.name} cannot be compiled: {type(error).__name__}: {telling[:200]}"
        ) from error


def _shortened(system: System) -> System:
    """Return the system with a few tasks, where their number is what ends a run."""
    if system.batch is None or system.batch.tasks is None:
        return system
    few = min(system.batch.tasks, TASKS)
    return system.replace(batch={**system.batch.parts(), "tasks": few})


def _rehearse(system: System, policy: Policy, delays: Delays | None, short: float) -> None:
    seed = np.random.SeedSequence(0)
    try:
        run = replicate(system, policy, horizon=short, seed=seed, delays=delays, interpreted=True)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{_place(policy, error)}: {type(error).__name__}: {error}") from None
    idle = not run.responded.sum() and not run.utilisation.any()
    refused = policy.kind == "chain" and run.refusals == run.asked  # nodes take them all the same
    if run.tasks > 0 and run.refusals and (idle or refused):
        if policy.kind == "batch":
            expected = "places of waiting tasks, and machines with room that can run them"
        else:
            expected = f"a {'class' if policy.kind == 'pull' else 'machine'} that can do it, or -1"
        raise InputError(f"policy {policy.name}: every answer is impossible; expected {expected}")


def _place(policy: Policy, error: Exception) -> str:
    file = policy.decide.__code__.co_filename
    lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == file]
    name = Path(file).name if Path(file).is_file() else f"policy {policy.name}"
    return f"{name}, line {lines[-1]}" if lines else f"policy {policy.name}"
