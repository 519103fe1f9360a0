"""How likely a draw of a distribution is at most a number."""

from functools import lru_cache
from math import gamma, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distribution import (
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

__all__ = ["cumulative"]

DRAWS = 100_000
"""A user's own distribution, of which only draws are to be had, is known by so many of them."""


def cumulative(distribution: Distribution, at: Any) -> Any:
    """Return P(draw ≤ at), for a number or an array of them.

    >>> cumulative(Uniform(low=1, high=3), 1.5)
    np.float64(0.25)
    """
    x = np.asarray(at, dtype=float)
    match distribution:
        case Deterministic():
            return (x >= 1.0).astype(float)[()]
        case Hyperexponential():
            phases = zip(*distribution.phases, strict=True)
            return sum(p * -np.expm1(-x / mean) for p, mean in phases)
        case Gamma(shape=shape) | Erlang(stages=shape):
            from scipy.special import gammainc

            return gammainc(shape, x * shape)
        case Weibull(shape=shape):
            return -np.expm1(-((x * gamma(1 + 1 / shape)) ** shape))
        case Lognormal(scv=scv):
            from scipy.special import ndtr

            sigma = sqrt(log1p(scv))
            return ndtr((np.log(np.maximum(x, 1e-300)) + sigma**2 / 2) / sigma)
        case Uniform(low=low, high=high):
            return np.clip((x - low) / (high - low), 0, 1)[()]
        case Pmf(values=values, probabilities=probabilities):
            order = np.argsort(values)
            steps = np.concatenate([[0.0], np.cumsum(np.array(probabilities)[order])])
            return steps[np.searchsorted(np.array(values)[order], x, side="right")]
        case _ if type(distribution) is Exponential:
            return -np.expm1(-x)
        case _:
            draws = _draws(distribution)
            return np.searchsorted(draws, x, side="right") / len(draws)


@lru_cache(maxsize=8)
def _draws(distribution: Distribution) -> NDArray[np.float64]:
    found = np.asarray(distribution.sample(np.random.default_rng(0), DRAWS), dtype=float)
    return np.sort(found)
