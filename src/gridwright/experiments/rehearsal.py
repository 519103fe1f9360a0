"""A short rehearsal in plain Python before a policy is compiled: mistakes show where they are.

Compiled code does not check indices and says little about what it cannot compile. A user's policy
is therefore run interpreted on a few hundred tasks first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb
from types import FrameType
from typing import Any

import numpy as np

from ..model import InputError, System
from ..policies import Policy
from ..simulation import Delays, Replication, replicate

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
        raise InputError(_why_not_compiled(policy, str(error))) from error


def _shortened(system: System) -> System:
    """Return the system with a few tasks, where their number is what ends a run."""
    if system.batch is None or system.batch.tasks is None:
        return system
    few = min(system.batch.tasks, TASKS)
    return system.replace(batch={**system.batch.parts(), "tasks": few})


def _rehearse(system: System, policy: Policy, delays: Delays | None, short: float) -> None:
    def once() -> Replication:
        seed = np.random.SeedSequence(0)
        return replicate(system, policy, horizon=short, seed=seed, delays=delays, interpreted=True)

    with _overheard(policy) as no_answers:
        try:
            run, again = once(), once()
        except InputError:
            raise
        except Exception as error:
            lines = _lines(policy, error)
            if lines or not no_answers:
                where = _where(policy, lines)
                raise InputError(f"{where}: {type(error).__name__}: {error}") from None
    if no_answers:
        line, said = no_answers[0]
        raise InputError(f"{_where(policy, [line])}: it answered {said!r}; expected a whole number")
    if not np.array_equal(run.number, again.number) or run.refusals != again.refusals:
        raise InputError(
            f"policy {policy.name} answers otherwise when the same is asked again: the same seed "
            "would not give the same result; take random numbers from view.rng"
        )
    idle = not run.responded.sum() and not run.utilisation.any()
    refused = policy.kind == "chain" and run.refusals == run.asked  # nodes take them all the same
    if run.tasks > 0 and run.refusals and (idle or refused):
        if policy.kind == "batch":
            expected = "places of waiting tasks, and machines with room that can run them"
        else:
            expected = f"a {'class' if policy.kind == 'pull' else 'machine'} that can do it, or -1"
        raise InputError(f"policy {policy.name}: every answer is impossible; expected {expected}")


@contextmanager
def _overheard(policy: Policy) -> Iterator[list[tuple[int, Any]]]:
    """Note what a policy returns that is no answer at all, and in which line."""
    code, found = policy.decide.__code__, []

    def listen(frame: FrameType, event: str, value: Any) -> None:
        if event == "return" and frame.f_code is code and not isinstance(value, int | np.integer):
            found.append((frame.f_lineno, value))

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        yield found
    finally:
        sys.setprofile(before)


def _lines(policy: Policy, error: Exception) -> list[int]:
    """Return the lines of a policy's file that an error went through."""
    file = policy.decide.__code__.co_filename
    frames = extract_tb(error.__traceback__)
    return [frame.lineno or 0 for frame in frames if frame.filename == file]


def _where(policy: Policy, lines: list[int]) -> str:
    file = Path(policy.decide.__code__.co_filename)
    name = file.name if file.is_file() else f"policy {policy.name}"
    return f"{name}, line {lines[-1]}" if lines else f"policy {policy.name}"


COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACE = re.compile(r'File "([^"]+)", line (\d+)')
FRAME = ("Failed in nopython", "File ", "During: ")
"""How lines begin that tell how the compiler went about it, and not what is wrong."""


def _why_not_compiled(policy: Policy, told: str) -> str:
    """Pick from what the compiler says, which is long, the line of the policy and the reason."""
    told = COLOUR.sub("", told)
    file = Path(policy.decide.__code__.co_filename).name
    lines = [int(line) for path, line in PLACE.findall(told) if Path(path).name == file]
    said = [line.strip() for line in told.splitlines() if line.strip()]
    reason = next((line for line in said if not line.startswith(FRAME)), said[0])
    reason = reason.partition(", defined")[0].rstrip(".:")
    return (
        f"{_where(policy, lines[:1])}: this cannot be compiled: {reason}"
        "; a policy is numbers, arrays, tuples, loops and plain functions"
    )
