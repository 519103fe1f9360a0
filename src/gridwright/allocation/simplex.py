"""The allocation LP solved by a simplex method made for its shape: see the tableau."""

import numpy as np

from .recall import recall, remember
from .tableau import Tableau, add_column, best_entering, invert, key_of, rekey, serve

__all__ = ["FAILED", "solve"]

ALLOCATES_NOTHING = True

ZERO = 1e-13
"""A step or a pivot below this counts as none."""
DUALITY = 1e-6
"""A relative gap between λ and the value of the prices from here on means a wrong answer."""
FAILED = -1.0
"""Returned in place of λ when rounding errors won: rates spread over very many decades."""


def solve(t: Tableau) -> float:
    """Return λ; the shares and the prices, which sum to 1, are left in the tableau.

    >>> from gridwright.allocation.room import tableau
    >>> t = tableau(np.array([[1.6, 0.6], [0.5, 1.25]]))
    >>> round(float(solve(t)), 4)
    1.3333
    >>> t.share.round(4).tolist(), t.row["price"].round(4).tolist()
    ([[0.8333, 0.0], [0.1667, 1.0]], [0.2381, 0.7619])
    """
    classes, groups = t.size
    _scale(t)
    if recall(t):
        return _answer(t)
    _start(t)
    idle_steps = 0
    for _ in range(50 * (classes + groups) + 1000):
        invert(t)
        careful = idle_steps > classes + groups
        entering = best_entering(t, careful)
        if entering < 0:
            if rekey(t):
                invert(t)
            remember(t)
            return _answer(t)
        step = _pivot(t, entering, careful)
        idle_steps = idle_steps + 1 if step < ZERO else 0
    return FAILED


def _scale(t: Tableau) -> None:
    """Scale the weights of every class to a largest one of 1, and its demand with them."""
    classes, groups = t.size
    weights = t.given
    least = np.inf
    for i in range(classes):
        largest = 0.0
        for g in range(groups):
            if weights[i, g] > largest:
                largest = weights[i, g]
        t.row[i]["demand"] = largest
        if largest < least:
            least = largest
        for g in range(groups):
            t.weight[g, i] = weights[i, g] / largest
    for i in range(classes):
        t.row[i]["demand"] = least / t.row[i]["demand"]


def _start(t: Tableau) -> None:
    """Give every group to the class it serves best; λ and the surpluses make up the basis."""
    classes, groups = t.size
    for g in range(groups):
        t.key[g] = 0
        for i in range(1, classes):
            if t.weight[g, i] > t.weight[g, t.key[g]]:
                t.key[g] = i
    serve(t)
    scarce = 0
    for i in range(1, classes):
        if (
            t.row[i]["value"] * t.row[scarce]["demand"]
            < t.row[scarce]["value"] * t.row[i]["demand"]
        ):
            scarce = i
    surplus = groups * (classes + 1) + 1
    for k in range(classes):
        t.row[k]["work"] = surplus + k
    t.row[scarce]["work"] = surplus
    t.row[0]["work"] = surplus - 1


def _pivot(t: Tableau, entering: int, careful: bool) -> float:
    """Bring a variable into the basis, drop the one that reaches 0 first, return the step.

    As the entering variable rises, variables of the working basis fall (never λ), and so may the
    keys of the groups that they or the entering variable belong to.
    """
    size = t.size[0]
    add_column(t, entering)
    for k in range(size):
        t.row[k]["fall"] = 0.0
        for i in range(size):
            t.row[k]["fall"] += t.matrix[k, size + i] * t.row[i]["column"]
    step, fastest, leaving, place = np.inf, 0.0, -1, -1
    for k in range(1, 2 * size):
        if k < size:
            variable, value, fall = t.row[k]["work"], t.row[k]["value"], t.row[k]["fall"]
        else:
            variable, value, fall = key_of(
                t, t.row[k - size]["work"] if k > size else entering, entering
            )
        if fall <= ZERO:
            continue
        ratio = max(value, 0.0) / fall
        tied = ratio <= step + ZERO
        if ratio < step - ZERO or (tied and (variable < leaving if careful else fall > fastest)):
            step, fastest, leaving, place = min(ratio, step), fall, variable, k
    _exchange(t, entering, leaving, place)
    return step


def _exchange(t: Tableau, entering: int, leaving: int, place: int) -> None:
    """Put the entering variable where the leaving one was, as the key of its group if need be."""
    size, per_group = t.size[0], t.size[0] + 1
    if place < size:
        t.row[place]["work"] = entering
        return
    g = leaving // per_group
    if entering // per_group == g:
        t.key[g] = entering % per_group
    else:
        t.key[g] = t.row[place - size]["work"] % per_group
        t.row[place - size]["work"] = entering


def _answer(t: Tableau) -> float:
    """Write the shares and prices of an optimal basis down, on the problem's own scale."""
    classes, groups = t.size
    weights = t.given
    for g in range(groups):
        rest = 1.0
        for i in range(classes):
            t.share[i, g] = 0.0
        for k in range(1, classes):
            variable = t.row[k]["work"]
            if variable // (classes + 1) == g:
                rest -= t.row[k]["value"]
                if variable % (classes + 1) < classes and t.row[k]["value"] > 0.0:
                    t.share[variable % (classes + 1), g] = t.row[k]["value"]
        if t.key[g] < classes and rest > 0.0:
            t.share[t.key[g], g] = rest
    # λ of the shares themselves, so that it is never more than they deliver, checked by the prices
    capacity, worth = np.inf, 0.0
    for i in range(classes):
        served = 0.0
        for g in range(groups):
            served += weights[i, g] * t.share[i, g]
        if served < capacity:
            capacity = served
        t.row[i]["price"] *= t.row[i]["demand"]
        if t.row[i]["price"] < 0.0:
            t.row[i]["price"] = 0.0
    for g in range(groups):
        most, used = 0.0, 0.0
        for i in range(classes):
            used += t.share[i, g]
            if t.row[i]["price"] * weights[i, g] > most:
                most = t.row[i]["price"] * weights[i, g]
        worth += most
        if used > 1.0 + DUALITY:
            return FAILED
    return capacity if capacity >= worth * (1.0 - DUALITY) else FAILED
