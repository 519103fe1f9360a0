"""Fits: the family that data come from is found, with their mean and variability."""

import numpy as np
import pytest

from gridwright import (
    Distribution,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Weibull,
)
from gridwright.traces import fit


@pytest.mark.parametrize(
    "truth",
    [
        Exponential(),
        Gamma(shape=3.0),
        Weibull(shape=0.6),
        Lognormal(scv=2.0),
        Hyperexponential(scv=8.0),
    ],
    ids=lambda truth: type(truth).__name__,
)
def test_the_family_is_found(truth: Distribution) -> None:
    times = 50 * truth.sample(np.random.default_rng(5), 5000)
    found = fit(times)
    assert type(found.distribution) is type(truth)
    assert found.distance < 0.03
    if not isinstance(truth, Exponential):
        assert found.distribution.variance == pytest.approx(found.cv**2, rel=1e-6)
    assert found.mean == pytest.approx(times.mean())
    assert found.as_json()["size"] == 5000


@pytest.mark.parametrize("times", [[], [3.0], [1.0, 2.0], [0.0, 0.0, 0.0]])
def test_too_little_to_fit_is_taken_to_be_exponential(times: list[float]) -> None:
    found = fit(np.array(times))
    assert isinstance(found.distribution, Exponential)
    assert np.isnan(found.distance)


def test_heavy_tails_are_no_error() -> None:
    assert fit(np.array([1.0] * 10_000 + [1e9])).cv > 90
