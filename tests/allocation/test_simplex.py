"""Our simplex against HiGHS, against its own dual, and compiled against interpreted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridwright.allocation.highs import solve_highs
from gridwright.allocation.simplex import FAILED
from gridwright.allocation.simplex import solve as solve_in_place
from gridwright.allocation.workspace import tableau
from gridwright.compiler.link import link

Floats = NDArray[np.float64]


def solve(weights: Floats, solver: Any = solve_in_place) -> tuple[float, Floats, Floats]:
    """Return λ, the shares and the prices."""
    room = tableau(weights)
    return solver(room), room.share, room.row["price"]


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
    compiled = solve(weights, link(solve_in_place))
    pairs: Any = zip(solve(weights), compiled, strict=True)
    for ours, theirs in pairs:
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(("classes", "groups"), [(4, 300), (12, 60), (30, 30), (1, 1), (40, 3)])
def test_larger_problems(classes: int, groups: int) -> None:
    weights = np.random.default_rng(classes).gamma(1, 1, (classes, groups))
    capacity, _, _ = solve(weights, link(solve_in_place))
    assert capacity == pytest.approx(solve_highs(weights)[0], rel=1e-6)


def test_thousands_of_random_problems_end() -> None:
    rng = np.random.default_rng(5)
    for trial in range(20_000):
        shape = rng.integers(1, 7), rng.integers(1, 10)
        # small whole numbers make as many ties, and so degenerate steps, as there can be
        weights = rng.integers(0, 3, shape).astype(float) if trial % 2 else rng.gamma(1, 1, shape)
        weights[:, 0] += weights.sum(axis=1) == 0
        capacity, _, prices = solve(weights, link(solve_in_place))
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


@pytest.mark.parametrize("decades", [2, 4, 6, 8, 10, 12])
def test_badly_scaled_problems_are_right_or_refused(decades: int) -> None:
    rng = np.random.default_rng(decades)
    for _ in range(300):
        shape = rng.integers(2, 6), rng.integers(1, 5)
        weights = rng.uniform(0.5, 2, shape) * 10.0 ** rng.uniform(-decades / 2, decades / 2, shape)
        capacity, shares, prices = solve(weights, link(solve_in_place))
        if capacity == FAILED:
            assert decades > 6
            continue
        assert (shares.sum(axis=0) <= 1 + 1e-6).all()
        assert (prices[:, None] * weights).max(axis=0).sum() == pytest.approx(capacity, rel=1e-5)


@pytest.mark.slow
@given(problems(), st.lists(st.integers(0, 4), min_size=60, max_size=60))
@settings(max_examples=100, deadline=None)
def test_what_was_solved_before_does_not_change_the_answer(
    weights: Floats, machines: list[int]
) -> None:
    """A tableau that remembers bases, against a fresh one for every problem."""
    groups = weights.shape[1]
    remembering = tableau(weights.copy())
    for k in range(6):
        up = 1.0 + np.array(machines[k * groups : (k + 1) * groups])
        remembering.given[:] = weights * up
        capacity, shares, _ = solve(weights * up)
        assert solve_in_place(remembering) == pytest.approx(capacity, rel=1e-9)
        np.testing.assert_allclose(remembering.share, shares, atol=1e-8)


def test_bases_are_recalled() -> None:
    weights = np.random.default_rng(3).uniform(1, 9, (4, 6))
    t = tableau(weights.copy())
    found = []
    for up in np.random.default_rng(4).integers(3, 6, (200, 6)):
        t.given[:] = weights * up
        solve_in_place(t)
        found.append(int((t.known[:, 0] >= 0).sum()))
    assert found[0] == 1
    assert found[-1] == found[100] < 16, "a few bases serve all the problems"
