"""Choose the machines for a trace, and make a system of them and its jobs."""

from __future__ import annotations

import os
import re
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import allocate
from ..catalogue import load
from ..model import Failures, Floats, InputError, Profile, System, mode
from .read import read_trace
from .throughput import Throughputs
from .workload import Workload, apart, whole_number

USUAL = 10
"""Number of partitions that become machines by default."""
USUAL_LOAD = 0.8
"""The load if speeds are relative and no load is given."""
PRIOR = 10.0
"""Number of jobs of a class on a partition that gives their measured speed half the weight."""
SPEEDS = re.compile(r"(?:(\d{1,6})\s*x\s*)?(\d+(?:\.\d*)?(?:e[+-]?\d+)?)")


class Machines(NamedTuple):
    """Kinds of machines, the number of each, and the speed of each for each class."""

    groups: tuple[str, ...]
    counts: tuple[int, ...]
    speeds: Floats
    """[class, kind]: at speed 1 a job takes as long as in the trace; 0 if it cannot run there."""
    relative: bool = False
    """Whether the speeds only compare the machines with each other."""


def machines_for(work: Workload, text: str = "") -> Machines:
    """Return the machines that a text describes.

    - ``trace``, ``trace:20``: the partitions of the trace with most work, one machine for each. The
      speed of a machine is its share of the work, adapted for each class to how long its jobs ran
      there;
    - ``4x1,2x2.5``: four machines of speed 1 and two of speed 2.5;
    - a system, by name or file, or a table of throughputs: its matrix of rates, one row for each
      class in order.

    By default, the partitions of the trace; if it has none, as many machines of speed 1 as are busy
    for about 80 % of the time.
    """
    if not text and len(set(work.partitions.tolist())) > 1:
        text = "trace"
    text = text or f"{min(max(ceil(work.demand / USUAL_LOAD), 1), 1000)}x1"
    head, _, count = text.partition(":")
    if head.strip() == "trace":
        most = whole_number(count or str(USUAL), 1000)
        if most is None:
            raise InputError(f"{text}; expected a number of machines from 1 to 1000")
        return _of_trace(work, most)
    if all(SPEEDS.fullmatch(word.strip()) for word in text.split(",")):
        return _of_speeds(work, text)
    names, counts, matrix = _matrix(text)
    if len(matrix) < len(work.classes):
        raise InputError(
            f"{text} has {len(matrix)} classes, but the trace {len(work.classes)}; form fewer, "
            f"for example with --classes user:{len(matrix)}"
        )
    rates = matrix[: len(work.classes)]
    able = np.any(rates > 0, axis=0)
    rates, counts = rates[:, able], tuple(np.array(counts)[able].tolist())
    mean = np.average(rates, axis=1, weights=counts)[:, None]
    kinds = tuple(name for name, runs in zip(names, able.tolist(), strict=True) if runs)
    if (mean <= 0).any():
        raise InputError(f"{text}: no machine can run one of the classes of the trace")
    return Machines(kinds, counts, rates / mean, relative=True)


def _of_speeds(work: Workload, text: str) -> Machines:
    found = []
    for word in text.split(","):
        match = SPEEDS.fullmatch(word.strip())
        assert match is not None
        if match[1] is None and text.isdigit() and int(text) > 1:
            raise InputError(
                f"{text} is ambiguous: write {text}x1 for {text} machines, or 1x{text} for one of "
                f"speed {text}"
            )
        count, speed = int(match[1] or 1), float(match[2])
        if not (0 < count <= 100_000 and 1e-9 < speed < 1e9):
            raise InputError(f"{word.strip()!r}: expected machines such as 4x2.5: 4 of speed 2.5")
        found.append((count, speed))
    counts, speeds = zip(*found, strict=True)
    names = apart([f"speed {speed:g}" for speed in speeds])
    return Machines(names, counts, np.tile(speeds, (len(work.classes), 1)))


def _matrix(text: str) -> tuple[tuple[str, ...], tuple[int, ...], Floats]:
    if os.path.isfile(text) and not text.endswith(".toml"):
        found = read_trace(text)
        if not isinstance(found, Throughputs):
            raise InputError(f"{text}: expected a table of throughputs, or a system")
        one = found.on()
        return one.kinds, (1,) * len(one.kinds), one.steps
    system = load(text)
    if system.mode is mode.CHAINS:
        raise InputError(f"{text}: jobs of a trace cannot run as chains of applications")
    return system.groups, system.sizes, np.array(system.rates)


def _of_trace(work: Workload, most: int) -> Machines:
    values = sorted(set(work.partitions.tolist()))
    number = {value: k for k, value in enumerate(values)}
    codes = np.array([number[place] for place in work.partitions.tolist()])
    if len(values) < 2:
        raise InputError(
            "the trace does not say on which machines its jobs ran; add --machines 4x1,2x2.5"
        )
    carried = np.bincount(codes, work.works)
    chosen = np.lexsort((np.arange(len(values)), -carried))[:most]
    speeds = carried[chosen] / carried[chosen].mean() * _affinity(work, codes)[:, chosen]
    names = tuple(values[k] for k in chosen)
    return Machines(names, (1,) * len(chosen), speeds, relative=True)


def _affinity(work: Workload, place: NDArray[np.int64]) -> Floats:
    """Return how much faster than elsewhere each class ran in each place [class, place].

    This is the ratio of geometric means, closer to 1 where there are few jobs.
    """
    shape = len(work.classes), int(place.max()) + 1
    pair = work.task_classes * shape[1] + place
    logs = np.log(work.works)
    size = shape[0] * shape[1]
    count = np.bincount(pair, minlength=size).reshape(shape)
    total = np.bincount(pair, logs, minlength=size).reshape(shape)
    mean = total.sum(axis=1) / count.sum(axis=1)
    gap = mean[:, None] - total / np.maximum(count, 1)
    found = np.exp(np.where(count > 0, gap, 0.0) * count / (count + PRIOR))
    return found.round(12)  # later digits depend on the processor, and could change a plan


def system_of(
    work: Workload,
    machines: Machines,
    *,
    name: str = "",
    load: float | None = None,
    failures: Failures | None = None,
    execution: Any = "exponential",
    interarrival: Any = "exponential",
    arrivals: Floats | None = None,
    profile: Profile | None = None,
) -> System:
    """Return the system of a workload and machines; its time unit is a second.

    Given a ``load``, the speeds of all machines are scaled so that the best allocation keeps them
    busy for that share of the time. The default for relative speeds is 0.8. ``arrivals`` are used
    in place of the mean arrival rates of the window.
    """
    if load is None and machines.relative:
        load = USUAL_LOAD
    system = System(
        name=name,
        classes=work.classes,
        groups=machines.groups,
        counts=machines.counts,
        arrivals=work.arrivals if arrivals is None else arrivals,
        rates=machines.speeds / work.means[:, None],
        failures=failures,
        execution=execution,
        interarrival=interarrival,
        profile=profile,
    )
    if load is None:
        return system
    if not 0 < load < 100:
        raise InputError(f"a load of {load:g}; expected a number > 0, such as 0.8")
    return system.replace(rates=system.rates * (allocate(system).load / load))
