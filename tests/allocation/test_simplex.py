"""Our simplex against HiGHS, against its own dual, and compiled against interpreted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridwright import load
from gridwright.allocation import Situation, grouped, make_workspace, situation
from gridwright.allocation.bottlenecks import optimum
from gridwright.allocation.highs import solve_highs
from gridwright.allocation.planner import set_reference, spread
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


@pytest.mark.slow
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


@st.composite
def tied(draw: st.DrawFn) -> Situation:
    """Draw a situation with all machines up in which many vertices are optimal."""
    shape = draw(st.integers(2, 4)), draw(st.integers(2, 6))
    rows = st.lists(st.integers(0, 3), min_size=shape[1], max_size=shape[1])
    rates = np.array([draw(rows) for _ in range(shape[0])], float)
    rates[:, 0] += rates.max(axis=1) == 0  # every class can run
    times = draw(st.integers(1, 4))
    rates = np.repeat(rates, times, axis=1)
    _, group = np.unique(rates, axis=1, return_inverse=True)
    arrivals = np.array([draw(st.integers(1, 3)) for _ in range(shape[0])], float)
    return Situation(rates, arrivals, np.ones(rates.shape[1]), group.reshape(-1))


@given(tied(), st.data())
@settings(max_examples=150, deadline=None)
def test_plans_do_not_depend_on_plans_before(now: Situation, data: st.DataObject) -> None:
    all_up, used = now._replace(availability=now.availability.copy()), make_workspace(now)
    set_reference(all_up, used)
    for _ in range(5):
        states = st.lists(st.booleans(), min_size=len(now.group), max_size=len(now.group))
        now.availability[:] = data.draw(states)
        fresh = make_workspace(now)
        set_reference(all_up, fresh)
        capacity = optimum(now, fresh)
        assert optimum(now, used) == pytest.approx(capacity, rel=1e-9)
        np.testing.assert_allclose(used.time, fresh.time, atol=1e-8)


def test_the_reference_is_often_optimal_while_few_machines_are_down() -> None:
    """In 3.G2 many vertices are optimal, so no basis is kept but the reference."""
    now = situation(load("3.G2:alpha1:1"))
    room, up = make_workspace(now), now.availability.copy()
    set_reference(now, room)
    reference, same = room.tableau.known[-1].copy(), []
    for down in range(0, 300, 10):
        now.availability[:] = up
        now.availability[down] = 0.0
        assert optimum(now, room) != FAILED
        same.append(np.array_equal(room.tableau.row["work"], reference[: len(now.arrivals)]))
    assert sum(same) > 15
    assert (room.tableau.known[:-1] == -1).all()
    assert np.array_equal(room.tableau.known[-1], reference)


@given(tied(), st.data())
@settings(max_examples=50, deadline=None)
def test_a_single_plan_is_one_of_a_workspace_that_has_seen_all_up(
    now: Situation, data: st.DataObject
) -> None:
    """So a live grid, which makes each plan by itself, plans as a simulation does."""
    space = make_workspace(now)
    set_reference(now, space)
    states = st.lists(st.booleans(), min_size=len(now.group), max_size=len(now.group))
    now.availability[:] = data.draw(states)
    optimum(now, space)
    plan = np.empty(now.rates.shape)
    spread(now, space, plan)
    np.testing.assert_allclose(grouped(now), plan, atol=1e-8)
