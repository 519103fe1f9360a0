"""Our simplex against HiGHS, against its own dual, and compiled against interpreted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridwright.allocation.highs import solve_highs
from gridwright.allocation.simplex import FAILED, solve
from gridwright.link import link

Floats = NDArray[np.float64]


@st.composite
def problems(draw: st.DrawFn) -> Floats:
    """Draw weights: smooth, full of ties and zeros, or spread over six orders of magnitude."""
    classes, groups = draw(st.integers(1, 6)), draw(st.integers(1, 10))
    entry = draw(
        st.sampled_from(
            [
                st.floats(0.1, 10),
                st.sampled_from([0.0, 1.0, 2.0, 3.0]),
                st.sampled_from([0.0, 1e-3, 1.0, 5.0]),
                st.floats(-3, 3).map(lambda power: 10**power),
            ]
        )
    )
    row = st.lists(entry, min_size=groups, max_size=groups).filter(any)
    return np.array(draw(st.lists(row, min_size=classes, max_size=classes)))


def check(weights: Floats) -> None:
    """Check feasibility, the dual, and the number of non-zeros: together, optimality."""
    classes, groups = weights.shape
    capacity, shares, prices = solve(weights)
    assert capacity != FAILED
    assert (shares >= 0).all()
    assert (shares.sum(axis=0) <= 1 + 1e-9).all()
    served = (shares * weights).sum(axis=1)
    assert (served >= capacity * (1 - 1e-9)).all()
    assert (prices >= 0).all()
    assert prices.sum() == pytest.approx(1)
    worth = (prices[:, None] * weights).max(axis=0).sum()
    assert worth == pytest.approx(capacity, rel=1e-8), "the dual value is the primal value"
    assert (shares > 1e-12).sum() <= classes + groups - 1


@given(problems())
@settings(deadline=None, max_examples=300)
def test_solutions_are_optimal(weights: Floats) -> None:
    check(weights)


@given(problems())
@settings(deadline=None, max_examples=150)
def test_highs_agrees(weights: Floats) -> None:
    assert solve(weights)[0] == pytest.approx(solve_highs(weights)[0], rel=1e-6)


@given(problems())
@settings(deadline=None, max_examples=150)
def test_compiled_and_interpreted_are_bit_identical(weights: Floats) -> None:
    pairs: Any = zip(solve(weights), link(solve)(weights), strict=True)
    for ours, theirs in pairs:
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(("classes", "groups"), [(4, 300), (12, 60), (30, 30), (1, 1), (40, 3)])
def test_larger_problems(classes: int, groups: int) -> None:
    weights = np.random.default_rng(classes).gamma(1, 1, (classes, groups))
    capacity, _, _ = link(solve)(weights)
    assert capacity == pytest.approx(solve_highs(weights)[0], rel=1e-6)


def test_thousands_of_random_problems_end() -> None:
    rng = np.random.default_rng(5)
    compiled = link(solve)
    for trial in range(20_000):
        shape = rng.integers(1, 7), rng.integers(1, 10)
        # small whole numbers make as many ties, and so degenerate steps, as there can be
        weights = rng.integers(0, 3, shape).astype(float) if trial % 2 else rng.gamma(1, 1, shape)
        weights[:, 0] += weights.sum(axis=1) == 0
        capacity, _, prices = compiled(weights)
        assert capacity > 0
        assert (prices[:, None] * weights).max(axis=0).sum() == pytest.approx(capacity, rel=1e-8)


def test_all_alike() -> None:
    capacity, shares, _ = solve(np.ones((3, 6)))
    assert capacity == pytest.approx(2)
    assert shares.sum() == pytest.approx(6)


def test_identity() -> None:
    capacity, shares, prices = solve(np.diag([1.0, 2.0, 4.0]))
    assert capacity == pytest.approx(1)
    assert prices.tolist() == pytest.approx([1, 0, 0])
    assert shares[0, 0] == pytest.approx(1)
