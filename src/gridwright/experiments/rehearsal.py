"""Rehearse a policy before it is used, so that a mistake is reported with its line.

A user's policy first runs a few hundred tasks in plain Python, where every error has a line. Then
it is compiled and runs the same tasks again. Where its decisions differ, it is refused: compiled
code counts in 64 bits, for example, and plain Python does not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from ..model import InputError, System
from ..policies import Policy
from ..simulation import Replication, line_of, replicate

TASKS = 200
Run = Callable[..., Replication]
"""Runs some hundred tasks under a policy, the same ones every time."""
ALLOCATES = ("NRT required", "Only accept returning of array passed into the function")
"""What Numba says of code that allocates memory where it must not."""


def prepare(system: System, policy: Policy, rng: str) -> Policy:
    """Rehearse a policy on a system and compile it; return the policy in the form that compiles."""
    short = TASKS / float(system.arrival_rates.sum())
    seed = np.random.SeedSequence(0)
    run = partial(replicate, _shortened(system), seed=seed, rng=rng)
    if policy.is_shipped:
        return _compile(run, policy, short / TASKS)[0]
    interpreted = _interpret(run, policy, short)
    prepared, compiled = _compile(run, policy, short)
    _compare(policy, interpreted, compiled)
    return prepared


def _shortened(system: System) -> System:
    """Return the system with few tasks, if a number of tasks ends its runs."""
    if system.batch is None or system.batch.tasks is None:
        return system
    few = min(system.batch.tasks, TASKS)
    return system.replace(batch={**system.batch.parts(), "tasks": few})


def _interpret(run: Run, policy: Policy, horizon: float) -> Replication:
    """Run the policy in plain Python; refuse it if its answers are wrong."""
    try:
        with _overheard(policy) as no_answers:
            found = run(policy, horizon=horizon, trace=True, interpreted=True)
        again = run(policy, horizon=horizon, trace=True, interpreted=True)
    except InputError:
        raise
    except Exception as error:
        where = line_of(error, policy)
        if where is not None or not no_answers:
            where = where or f"policy {policy.name}"
            raise InputError(f"{where}: {type(error).__name__}: {error}") from None
    if no_answers:
        line, said = no_answers[0]
        raise InputError(f"{_where(policy, [line])}: it answered {said!r}; expected a whole number")
    if _first_difference(found, again) is not None:
        raise InputError(
            f"policy {policy.name} gives another answer to the same question: the same seed "
            "would not give the same result; take random numbers from view.rng"
        )
    _refuse_impossible(policy, found)
    return found


def _compile(run: Run, policy: Policy, horizon: float) -> tuple[Policy, Replication]:
    """Compile the policy and run it; return the form of it that compiles, and the run."""
    try:
        return policy, run(policy, horizon=horizon, trace=not policy.is_shipped)
    except InputError:
        raise
    except Exception as error:
        if not policy.allocating and any(words in str(error) for words in ALLOCATES):
            return _compile(run, replace(policy, allocating=True), horizon)
        raise InputError(_why_not_compiled(policy, str(error))) from error


def _refuse_impossible(policy: Policy, run: Replication) -> None:
    """Refuse a policy that gives only impossible answers."""
    idle = not run.responded.sum() and not run.utilisation.any()
    refused = policy.kind.serves_refused and run.refusals == run.asked
    if run.tasks > 0 and run.refusals and (idle or refused):
        raise InputError(
            f"policy {policy.name}: every answer is impossible; expected {policy.kind.answer}"
        )


def _compare(policy: Policy, interpreted: Replication, compiled: Replication) -> None:
    """Refuse a policy that decides differently in compiled code."""
    when = _first_difference(interpreted, compiled)
    if when is not None:
        raise InputError(
            f"{_where(policy, [policy.decide.__code__.co_firstlineno])}: {policy.name} decides "
            f"differently in compiled code than in plain Python, first at time {when:g}: look for "
            "whole numbers beyond 64 bits, division by 0, and arrays that are not filled"
        )


def _first_difference(one: Replication, other: Replication) -> float | None:
    """Return the time of the first event that two runs do not have in common."""
    both = min(len(one.trace), len(other.trace))
    different = np.flatnonzero(one.trace[:both] != other.trace[:both])
    if len(different):
        return float(min(run.trace[different[0]].time for run in (one, other)))
    if len(one.trace) != len(other.trace):
        return float(max(one.trace, other.trace, key=len)[both].time)
    counts = ("refusals", "held", "asked")
    if any(getattr(one, count) != getattr(other, count) for count in counts):
        return float(one.times[-1])
    return None


@contextmanager
def _overheard(policy: Policy) -> Iterator[list[tuple[int, Any]]]:
    """Record return values of a policy that are not whole numbers, with their lines."""
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


def _where(policy: Policy, lines: list[int]) -> str:
    file = Path(policy.decide.__code__.co_filename)
    name = file.name if file.is_file() else f"policy {policy.name}"
    return f"{name}, line {lines[-1]}" if lines else f"policy {policy.name}"


COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACE = re.compile(r'(?:File "| at )(.+?)(?:", line | \()(\d+)')
FRAME = ("Failed in nopython", "File ", "During: ")
"""The beginnings of lines in which the compiler describes its steps, not the error."""


def _why_not_compiled(policy: Policy, told: str) -> str:
    """Find the line of the policy and the reason in the long message of the compiler."""
    told = COLOUR.sub("", told)
    file = Path(policy.decide.__code__.co_filename).name
    lines = [int(line) for path, line in PLACE.findall(told) if Path(path).name == file]
    said = [line.strip() for line in told.splitlines() if line.strip()]
    reason = next((line for line in said if not line.startswith(FRAME)), said[0])
    if "Cannot modify" in told:  # deep in Numba's message
        reason = next(line[line.index("Cannot") :] for line in said if "Cannot modify" in line)
    reason = reason.partition(", defined")[0].rstrip(".:")
    return (
        f"{_where(policy, lines[:1])}: this cannot be compiled: {reason}"
        "; a policy is numbers, arrays, tuples, loops and plain functions"
    )
