"""Solve the allocation LP with HiGHS: large problems, interior solutions, tests of our simplex."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import Any

import numpy as np

from ..model import InputError
from .simplex import Floats, Tableau
from .workspace import Situation, Workspace, totals

POSITIVE = 1e-6
"""An interior-point solution is only near the optimum: less than this share of the group's time
and of the class's work counts as 0."""


CELLS = 2_000
"""With more pairs of a class and a group, an interior-point method is faster than a simplex."""
TINY = 1e-12
"""A share that a general simplex method leaves below this is rounding."""

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=inf)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise an InputError if the allocations that this block solves take longer than this."""
    token = _DEADLINE.set(min(monotonic() + seconds, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_time() -> float:
    """Return the seconds that are left; raise if there are none."""
    left = _DEADLINE.get() - monotonic()
    if left <= 0:
        raise InputError(
            "the allocation takes too long; try fewer classes, or groups of equal machines"
        )
    return left


def solve_interior(situation: Situation, space: Workspace, capacity: float) -> None:
    """Replace the optimum in the workspace by that of an interior-point method without crossover.

    It has as many non-zeros as an optimum can have.
    """
    totals(situation, space)
    weights = _weights(space.tableau)
    _, shares, _ = solve_highs(weights / (capacity or 1.0), interior=True)
    some = (shares > POSITIVE) | (shares * weights > POSITIVE * capacity)
    classes, groups = space.classes[: len(shares)], space.groups[: shares.shape[1]]
    space.time[np.ix_(classes, groups)] = np.where(some, shares, 0) * space.capacity[groups]


def solve_general(t: Tableau) -> float:
    """Solve a problem that is too large for our own simplex, or on which it failed."""
    weights = _weights(t)
    largest = weights.max(axis=1, initial=0).min(initial=1)
    capacity, shares, prices = solve_highs(weights / largest)
    t.share[: len(weights), : weights.shape[1]] = np.where(shares > TINY, shares, 0)
    t.row["price"][: len(weights)] = prices / max(prices.sum(), TINY)
    return capacity * largest


def _weights(t: Tableau) -> Floats:
    classes, groups = t.size
    return t.given[:classes, :groups]


def solve_highs(weights: Floats, *, interior: bool = False) -> tuple[float, Floats, Floats]:
    """Return λ, the shares x[class, group] and the class prices, as ``simplex.solve`` does."""
    import highspy

    classes, groups = weights.shape
    if classes == 0:
        return 0.0, weights, np.zeros(0)
    model: Any = highspy.Highs()
    model.silent()
    options: dict[str, Any] = {"time_limit": check_time()}
    if interior or classes * groups > CELLS:
        # with crossover it also ends in a vertex, in a third of the time of a simplex method
        options |= {
            "solver": "ipm",
            "presolve": "off",
            "run_crossover": "off" if interior else "on",
        }
    for option, value in options.items():
        model.setOptionValue(option, value)
    model.passModel(_problem(weights))
    model.run()
    if model.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
        check_time()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        status = model.modelStatusToString(model.getModelStatus())
        raise InputError(
            "the rates and arrivals are spread over too many decades for the allocation to be "
            f"solved (HiGHS: {status})"
        )
    solution = model.getSolution()
    values = np.array(solution.col_value)
    prices = np.abs(solution.row_dual[:classes])
    return float(values[-1]), values[:-1].reshape(classes, groups), prices


def _problem(weights: Floats) -> object:
    """Write the LP in HiGHS' form: columns x[class, group] row by row, then λ."""
    import highspy

    classes, groups = weights.shape
    infinity = highspy.kHighsInf
    lp = highspy.HighsLp()
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.num_col_, lp.num_row_ = classes * groups + 1, classes + groups
    lp.col_cost_ = np.append(np.zeros(classes * groups), 1.0)
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.full(lp.num_col_, infinity)
    lp.row_lower_ = np.append(np.zeros(classes), np.full(groups, -infinity))
    lp.row_upper_ = np.append(np.full(classes, infinity), np.ones(groups))
    # by columns: x[i, g] stands in row i with its weight and in row classes + g with 1
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    rows = np.indices((classes, groups)).reshape(2, -1) + np.array([[0], [classes]])
    matrix.start_ = np.append(2 * np.arange(classes * groups + 1), 2 * classes * groups + classes)
    matrix.index_ = np.append(rows.T.ravel(), np.arange(classes))
    pairs = np.column_stack([weights.ravel(), np.ones(classes * groups)])
    matrix.value_ = np.append(pairs.ravel(), -np.ones(classes))
    return lp
