"""Templates that are drawn have the moments that were asked for."""

from typing import Any

import numpy as np
import pytest

from gridwright import load
from gridwright.simulation.chain_setup import templates_of


def drawn(**changes: Any) -> Any:
    system = load("Wisnesky:16")
    assert system.random_templates is not None
    parts = {**system.random_templates.parts(), "count": 4000, **changes}
    return templates_of(system.replace(random_templates=parts), np.random.default_rng(1))


def test_as_printed() -> None:
    found = drawn()
    assert set(found.applications.tolist()) == set(range(3, 18))
    assert found.applications.mean() == pytest.approx(10, abs=0.3)
    assert (found.rate.min() > 0.005, found.rate.max() < 0.015) == (True, True)
    assert found.rate.mean() == pytest.approx(0.01, rel=0.02)
    mean = found.latency / 1.5 / found.applications
    assert (mean.min() > 18, mean.max() < 22) == (True, True)
    assert found.times.shape == (found.applications.sum(), 16)
    assert (found.times == np.floor(found.times)).all()
    assert found.times.min() >= 1
    assert found.times.mean() == pytest.approx(19.5, rel=0.01)  # rounded down
    assert np.std(np.log(found.times).mean(axis=1)) > 0.3  # applications differ


def test_the_fitted_methods_differ_as_described() -> None:
    calibrated, entrywise = (drawn(method=m) for m in ("calibrated", "entrywise"))
    assert calibrated.times.mean() == pytest.approx(0.9 * 20 - 0.5, rel=0.01)
    assert np.std(np.log(calibrated.times).mean(axis=1)) < 0.25
    assert set(entrywise.applications.tolist()) == set(range(3, 17))
    assert np.std(np.log(entrywise.times).mean(axis=1)) < 0.25  # no mean of their own


def test_customers_get_templates_in_turn() -> None:
    system = load("Wisnesky:4").replace(customers=[{"name": "a"}, {"name": "b"}])
    found = templates_of(system, np.random.default_rng(1))
    assert found.customer.tolist() == [0, 1] * 10
