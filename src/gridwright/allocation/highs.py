"""The allocation LP given to HiGHS: the interior solution, and a check of our own simplex."""

from typing import Any

import numpy as np

from .optimum import Floats, Optimum, Situation, Totals, optimum, totals

__all__ = ["solve_general", "solve_highs", "solve_interior"]

POSITIVE = 1e-6
"""An interior-point solution is only near the optimum: less than this share of the group's time
and of the class's work counts as 0."""


def solve_interior(situation: Situation) -> Optimum:
    """Solve by an interior-point method without crossover: the solution with most non-zeros."""
    sums = totals(situation)
    capacity = optimum(situation).capacity
    if capacity <= 0:
        capacity = solve_general(situation).capacity
    scaled = sums.weights / (capacity or 1.0)
    _, shares, prices = solve_highs(scaled, interior=True)
    some = (shares > POSITIVE) | (shares * scaled > POSITIVE)
    return _on_groups(situation, sums, capacity, np.where(some, shares, 0), prices)


def solve_general(situation: Situation) -> Optimum:
    """Solve by a general simplex method, where our own has lost its way."""
    sums = totals(situation)
    largest = sums.weights.max(axis=1, initial=0).min(initial=1)
    capacity, shares, prices = solve_highs(sums.weights / largest)
    return _on_groups(
        situation, sums, capacity * largest, np.where(shares > 1e-12, shares, 0), prices
    )


def solve_highs(weights: Floats, *, interior: bool = False) -> tuple[float, Floats, Floats]:
    """Return λ, the shares x[class, group] and the class prices, as ``simplex.solve`` does."""
    import highspy

    classes, groups = weights.shape
    if classes == 0:
        return 0.0, weights, np.zeros(0)
    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    if interior:
        for option, value in (("solver", "ipm"), ("run_crossover", "off"), ("presolve", "off")):
            model.setOptionValue(option, value)
    model.passModel(_problem(weights))
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS: {model.modelStatusToString(model.getModelStatus())}")
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


def _on_groups(
    situation: Situation, sums: Totals, capacity: float, shares: Floats, prices: Floats
) -> Optimum:
    time = np.zeros(sums.rates.shape)
    time[np.ix_(sums.classes, sums.groups)] = shares * sums.capacity[sums.groups]
    price = np.zeros(len(situation.arrivals))
    price[sums.classes] = prices / situation.arrivals[sums.classes]
    return Optimum(capacity, time, price, sums)
