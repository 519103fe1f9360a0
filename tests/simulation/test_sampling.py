"""Distributions as compiled code draws them: mean 1, the right variance, the same numbers."""

from typing import Any

import numpy as np
import pytest

from gridwright import (
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
from gridwright.compiler.link import link
from gridwright.simulation.sampling import Shapes, draw

SHAPES: list[Distribution] = [
    Exponential(),
    Deterministic(),
    Hyperexponential(scv=2),
    Hyperexponential(probabilities=[0.2, 0.5, 0.3], means=[0.5, 1, 4]),
    Gamma(shape=0.7),
    Erlang(stages=4),
    Weibull(shape=0.6),
    Lognormal(scv=0.5),
    Uniform(low=1, high=3),
    Pmf(values=[1, 2, 6], probabilities=[0.5, 0.25, 0.25]),
]


def sample(shapes: Any, table: Any, number: int, count: int, rng: np.random.Generator) -> Any:
    values = np.empty(count)
    for k in range(count):
        values[k] = draw(shapes, table, number, rng)
    return values


@pytest.mark.parametrize("distribution", SHAPES, ids=str)
def test_shapes_are_drawn_with_mean_1_and_the_right_variance(distribution: Distribution) -> None:
    shapes = Shapes()
    for each in SHAPES:
        shapes.number("tasks", each)
    tables = shapes.tables()
    number = SHAPES.index(distribution)
    values = link(sample)(*tables, number, 400_000, np.random.default_rng(1))
    again = sample(*tables, number, 500, np.random.default_rng(1))
    assert np.array_equal(values[:500], again)
    error = 4.5 * values.std() / np.sqrt(len(values)) + 1e-12
    assert values.mean() == pytest.approx(1, abs=error)
    squares = (values - 1) ** 2
    error = 4.5 * squares.std() / np.sqrt(len(values)) + 1e-12
    assert squares.mean() == pytest.approx(distribution.variance / distribution.mean**2, abs=error)
