"""Sampling in compiled code: a table of the shapes of distributions, each with mean 1."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, gamma, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compiler.link import hook, special_case
from ..compiler.philox import Philox
from ..model import (
    Deterministic,
    Distribution,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Pmf,
    Uniform,
    Weibull,
)
from ..policies.view import record_type, records

SHAPE = record_type(
    kind="i8",
    a="f8",
    b="f8",
    first="i8",  # where its part of the table begins
    count="i8",  # and how long that is
    used="i8",  # of a buffer: how many of its draws are used up
)
EXPONENTIAL, CONSTANT, GAMMA, WEIBULL, LOGNORMAL, UNIFORM, MIXTURE, VALUES, BUFFERED = range(9)
CYCLE, BURSTS = 9, 10
"""No distributions: periods with factors of an arrival rate. The table has their durations."""

BUFFER = 4096
"""Draws taken at a time, in Python, from a user's own distribution."""
SPARE = 4
"""A buffer with at most this many draws left is filled before the next event."""


class Cycle(NamedTuple):
    """The periods of a class's arrival rate."""

    durations: tuple[float, ...]
    factors: tuple[float, ...]
    random: bool


class Shapes:
    """The distinct distributions of a run, numbered; each belongs to one random stream."""

    def __init__(self) -> None:
        self.distributions: list[tuple[str, Distribution | Cycle]] = []

    def number(self, stream: str, distribution: Distribution | Cycle) -> int:
        """Return the number of a distribution; give it one if it has none."""
        if (stream, distribution) not in self.distributions:
            self.distributions.append((stream, distribution))
        return self.distributions.index((stream, distribution))

    def tables(self) -> tuple[Any, NDArray[np.float64]]:
        """Return the records of the shapes, and the table [2, n] that some of them point into."""
        shapes = records(len(self.distributions), SHAPE)
        parts: list[NDArray[np.float64]] = []
        for number, (_, distribution) in enumerate(self.distributions):
            *shape, part = _describe(distribution)
            first, count = sum(each.shape[1] for each in parts), part.shape[1]
            shapes[number] = (*shape, first, count, count)  # a buffer is used up at first
            parts.append(part)
        return shapes, np.concatenate([*parts, np.zeros((2, 1))], axis=1)


def draw(shapes: Any, table: NDArray[np.float64], number: int, rng: Generator) -> float:
    """Draw from a shape; the mean is 1."""
    shape = shapes[number]
    kind = shape.kind
    if kind == EXPONENTIAL:
        return rng.standard_exponential()
    if kind == CONSTANT:
        return 1.0
    if kind == GAMMA:
        return rng.standard_gamma(shape.a) * shape.b
    if kind == WEIBULL:
        return rng.standard_exponential() ** shape.a * shape.b
    if kind == LOGNORMAL:
        return exp(rng.standard_normal() * shape.a) * shape.b
    if kind == UNIFORM:
        return shape.a + rng.random() * shape.b
    if kind == BUFFERED:
        value = table[0, shape.first + shape.used]
        shape.used += 1
        return value
    u = rng.random()
    k = shape.first
    while u >= table[0, k] and k < shape.first + shape.count - 1:
        k += 1
    return table[1, k] * rng.standard_exponential() if kind == MIXTURE else table[1, k]


@special_case(of=draw)
def draw_exponential(shapes: Any, table: NDArray[np.float64], number: int, rng: Generator) -> float:
    """Draw where every shape is exponential: the same numbers, quicker to compile and to run."""
    return rng.standard_exponential()


def is_low(shapes: Any) -> bool:
    """Tell whether a buffer of draws must be filled again."""
    for k in range(len(shapes)):
        if shapes[k].kind == BUFFERED and shapes[k].used > shapes[k].count - SPARE:
            return True
    return False


def never_low(shapes: Any) -> bool:
    """Stand in for ``is_low`` where nothing is buffered."""
    return False


def samplers(shapes: Any) -> dict[str, Any]:
    """Return the functions for the hooks of a loop: simpler ones where the shapes allow it."""
    kinds, cycles = shapes["kind"], _cycles(shapes)
    return {
        "shape_draw": draw if kinds[~cycles].any() else draw_exponential,
        "low": is_low if (kinds == BUFFERED).any() else never_low,
    }


def arrival_hook(shapes: Any) -> dict[str, Any]:
    """Return the function for the hook of a loop that says when tasks arrive."""
    return {"arrives": arrives_in_cycle if _cycles(shapes).any() else arrives_steadily}


def _cycles(shapes: Any) -> Any:
    """Tell of each shape whether it is a cycle of arrival rates."""
    kinds = np.asarray(shapes["kind"])
    return (kinds == CYCLE) | (kinds == BURSTS)


def arrives_in_cycle(
    stream: Any, i: int, shapes: Any, table: NDArray[np.float64], now: float, gap: float, rng: Any
) -> float:
    """Return when the next task arrives if the gap passes as fast as the factor of each period.

    Without cycles, ``cycle`` is the number of another shape.
    """
    q = stream[i]
    shape = shapes[q.cycle]
    if shape.kind != CYCLE and shape.kind != BURSTS:
        return now + gap
    if shape.kind == CYCLE and gap > shape.b:
        whole = gap // shape.b
        gap -= whole * shape.b
        now += whole * shape.a
        q.period_end += whole * shape.a
    while True:
        factor = table[1, shape.first + q.period]
        passes = (q.period_end - now) * factor
        if gap < passes:
            return now + gap / factor
        gap -= passes
        now = q.period_end
        q.period = q.period + 1 if q.period + 1 < shape.count else 0
        share = rng.standard_exponential() if shape.kind == BURSTS else 1.0
        q.period_end = now + table[0, shape.first + q.period] * share


@special_case(of=arrives_in_cycle)
def arrives_steadily(
    stream: Any, i: int, shapes: Any, table: NDArray[np.float64], now: float, gap: float, rng: Any
) -> float:
    """Return when the next task of a class arrives, a gap after the last one."""
    return now + gap


@hook
def arrives(
    stream: Any, i: int, shapes: Any, table: NDArray[np.float64], now: float, gap: float, rng: Any
) -> float:
    """Stand in for the arrivals of a run: ``arrives_steadily`` or ``arrives_in_cycle``."""
    return now + gap


@hook
def shape_draw(shapes: Any, table: NDArray[np.float64], number: int, rng: Generator) -> float:
    """Stand in for the sampler of a run: ``draw`` or ``draw_exponential``."""
    return 1.0


@hook
def low(shapes: Any) -> bool:
    """Stand in for the check of a run's buffers: ``is_low`` or ``never_low``."""
    return False


def refill(
    distributions: Iterable[tuple[str, Distribution | Cycle]],
    shapes: Any,
    table: NDArray[np.float64],
    streams: Any,
) -> None:
    """Fill the buffers of users' own distributions that are low; keep the draws left in them."""
    for number, (stream, distribution) in enumerate(distributions):
        shape, rng = shapes[number], getattr(streams, stream)
        if shape.kind == BUFFERED and shape.used > shape.count - SPARE:
            assert isinstance(distribution, Distribution)
            left = table[0, shape.first + shape.used : shape.first + shape.count].copy()
            source = rng.numpy() if isinstance(rng, Philox) else rng
            fresh = np.asarray(distribution.sample(source, BUFFER - len(left)), dtype=float)
            part = table[0, shape.first : shape.first + shape.count]
            part[:] = np.concatenate([left, fresh / distribution.mean])
            shape.used = 0


def _describe(distribution: Distribution | Cycle) -> tuple[int, float, float, NDArray[np.float64]]:
    nothing = np.zeros((2, 0))
    match distribution:
        case Cycle(durations, factors, random):
            kind, whole = BURSTS if random else CYCLE, float(np.dot(durations, factors))
            return kind, sum(durations), whole, np.array([durations, factors])
        case Deterministic():
            return CONSTANT, 0, 0, nothing
        case Hyperexponential():
            probabilities, means = distribution.phases
            return MIXTURE, 0, 0, _steps(probabilities, means, distribution.mean)
        case Gamma(shape=shape) | Erlang(stages=shape):
            return GAMMA, shape, 1 / shape, nothing
        case Weibull(shape=shape):
            return WEIBULL, 1 / shape, 1 / gamma(1 + 1 / shape), nothing
        case Lognormal(scv=scv):
            return LOGNORMAL, sqrt(log1p(scv)), exp(-log1p(scv) / 2), nothing
        case Uniform(low=low, high=high):
            return UNIFORM, low / distribution.mean, (high - low) / distribution.mean, nothing
        case Pmf(values=values, probabilities=probabilities):
            return VALUES, 0, 0, _steps(probabilities, values, distribution.mean)
        case _ if type(distribution) is Exponential:
            return EXPONENTIAL, 0, 0, nothing
        case _:
            return BUFFERED, 0, 0, np.zeros((2, BUFFER))


def _steps(
    probabilities: tuple[float, ...], values: tuple[float, ...], mean: float
) -> NDArray[np.float64]:
    return np.array([np.cumsum(probabilities), np.array(values) / mean])
