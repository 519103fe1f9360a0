"""Solve the allocation LP as textbooks do, and so choose one of its optimal vertices.

    maximise λ  subject to  Σ_j rate[i, j] x[i, j] ≥ λ arrivals[i]  for every class i,
                            Σ_i x[i, j] ≤ availability[j]           for every machine j,  x ≥ 0.

Where machines are alike the LP has many optimal vertices, and the steps of the simplex method
decide which one it finds. Here they are those of the full tableau, in two ways. Of all rules that
were tried (``tools/vertex_rules.py``) these two meet the most published numbers.

``dantzig``: the slacks are the first basis, the variable with the largest gain enters (Dantzig's
rule), and of equal gains the last one. The columns are x[i, j] class by class, λ, the slacks of the
rows, and the right side.

``dual`` solves the dual LP in two phases: minimise Σ availability[j] w[j] subject to
w[j] ≥ rate[i, j] p[i] and Σ arrivals[i] p[i] ≥ 1. The variable with the largest gain per length of
its step enters (steepest edge), and of equal ones the first. The shares x are the prices of its
constraints. The columns are w, p, the slacks of the rows x[i, j], the surplus of the last row, and
the right side. The artificial variable of the last row needs no column: it never comes back.

In the loops, r is a row and c a column of the tableau; below the rows of the constraints are the
gains.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..compiler.link import allocates_nothing, link, shared
from ..model import InputError
from .planner import LARGE, vertex
from .simplex import Floats, Integers
from .workspace import Situation

SMALL = 1e-9
"""A gain, a pivot or an allocation below this is rounding; so is a relative difference."""
TINY = 1e-12
"""Ratios that differ by less are tied."""
STALLED = 100
"""Steps without progress after which the first variable with a gain enters, to end a cycle."""
CELLS = 2_000_000
"""The largest tableau: with four classes about 600 machines, or 300 for the dual LP."""


@shared
class Dense(NamedTuple):
    """A tableau, the variable that is basic in each of its rows, and the classes it is about."""

    cells: Floats  # [row, column]
    basis: Integers  # [row]
    asks: Integers  # [class], 0 for one that does not arrive or that nothing up can run


def dantzig(situation: Situation) -> Floats:
    """Plan with the vertex that the textbook's simplex method finds, machine by machine.

    A reading of Al-Azzoni 2009, chapter 3: of machines that differ in availability it meets the
    most printed class means. It takes seconds for hundreds of machines; ``vertex`` is far faster.
    """
    return _planned(situation, make_dense(situation), plan_dantzig)


def dual(situation: Situation) -> Floats:
    """Plan with the vertex that the simplex method finds on the dual LP, by steepest edges.

    The reading of Al-Azzoni 2009, chapter 3, that meets the most printed class means of all tables.
    It is a few times slower than ``dantzig``.
    """
    return _planned(situation, make_dense_dual(situation), plan_dual)


def _planned(
    situation: Situation, dense: Dense, fill: Callable[[Situation, Dense, Floats], bool]
) -> Floats:
    plan = np.empty(situation.rates.shape)
    small = dense.cells.size * len(dense.basis) <= LARGE
    return plan if (fill if small else link(fill))(situation, dense, plan) else vertex(situation)


def make_dense(situation: Situation) -> Dense:
    """Make the tableau of ``dantzig`` for situations with these classes and machines."""
    classes, machines = situation.rates.shape
    rows = classes + machines
    return _empty("dantzig", rows, classes * machines + 1 + rows + 1, situation)


def make_dense_dual(situation: Situation) -> Dense:
    """Make the tableau of ``dual`` for situations with these classes and machines."""
    classes, machines = situation.rates.shape
    rows = classes * machines + 1
    return _empty("dual", rows, machines + classes + rows + 1, situation)


def _empty(planner: str, rows: int, columns: int, situation: Situation) -> Dense:
    classes, machines = situation.rates.shape
    if rows * columns > CELLS:
        raise InputError(
            f"planner={planner} is for at most {CELLS:,} cells of its tableau; {classes} classes "
            f"on {machines} machines need {rows * columns:,}. Use planner=vertex"
        )
    return Dense(
        np.zeros((rows + 1, columns)), np.zeros(rows, np.int64), np.zeros(classes, np.int64)
    )


@allocates_nothing
def plan_dantzig(now: Situation, dense: Dense, plan: Floats) -> bool:
    """Write the plan of the vertex; return False if rounding errors won or starve a class."""
    classes, machines = now.rates.shape
    for i in range(classes):
        for j in range(machines):
            plan[i, j] = 0.0
    if not _write(now, dense):
        return True  # no class can run now
    if not _climb(dense, len(dense.basis), False):
        return False
    end = dense.cells.shape[1] - 1
    for r in range(len(dense.basis)):
        variable, value = dense.basis[r], dense.cells[r, end]
        if variable < classes * machines and value > SMALL:
            plan[variable // machines, variable % machines] = value
    return _is_served(dense, plan)


@allocates_nothing
def plan_dual(now: Situation, dense: Dense, plan: Floats) -> bool:
    """Write the plan of the vertex; return False if rounding errors won or starve a class."""
    classes, machines = now.rates.shape
    for i in range(classes):
        for j in range(machines):
            plan[i, j] = 0.0
    if not _write_dual(now, dense):
        return True  # no class can run now
    t, gains = dense.cells, len(dense.basis)
    if not (_climb(dense, gains - 1, True) and _climb(dense, gains, True)):
        return False
    for i in range(classes):
        for j in range(machines):
            price = -t[gains, machines + classes + i * machines + j]
            if price > SMALL:
                plan[i, j] = price
    return _is_served(dense, plan)


def _is_served(dense: Dense, plan: Floats) -> bool:
    """Tell whether every class that asks for something has a machine."""
    for i in range(len(plan)):
        some = not dense.asks[i]
        for share in plan[i]:
            some = some or share > 0.0
        if not some:
            return False
    return True


def _asked(now: Situation, dense: Dense) -> bool:
    """Empty the tableau, and find the classes that ask for something; return whether any does."""
    t = dense.cells
    for r in range(t.shape[0]):
        for c in range(t.shape[1]):
            t[r, c] = 0.0
    some = False
    for i in range(now.rates.shape[0]):
        runs = False
        for j in range(now.rates.shape[1]):
            runs = runs or (now.rates[i, j] > 0.0 and now.availability[j] > 0.0)
        dense.asks[i] = runs and now.arrivals[i] > 0.0
        some = some or dense.asks[i] > 0
    return some


def _write(now: Situation, dense: Dense) -> bool:
    """Write the LP down; return whether any class asks for something."""
    t, basis = dense.cells, dense.basis
    classes, machines = now.rates.shape
    rows, capacity = classes + machines, classes * machines
    some = _asked(now, dense)
    for i in range(classes):
        for j in range(machines):
            t[classes + j, i * machines + j] = 1.0
        if dense.asks[i]:
            t[i, capacity] = now.arrivals[i]
            for j in range(machines):
                t[i, i * machines + j] = -now.rates[i, j]
    for j in range(machines):
        t[classes + j, t.shape[1] - 1] = now.availability[j]
    for r in range(rows):
        basis[r] = capacity + 1 + r
        t[r, basis[r]] = 1.0
    t[rows, capacity] = 1.0
    return some


def _write_dual(now: Situation, dense: Dense) -> bool:
    """Write the dual LP down; return whether any class asks for something.

    A class that asks for nothing, or a machine that cannot run it, makes no constraint.
    """
    t, basis = dense.cells, dense.basis
    classes, machines = now.rates.shape
    last, slack, end = classes * machines, machines + classes, t.shape[1] - 1
    some = _asked(now, dense)
    for i in range(classes):
        for j in range(machines):
            r = i * machines + j
            basis[r] = slack + r
            t[r, slack + r] = 1.0
            if dense.asks[i] and now.rates[i, j] > 0.0:
                t[r, j] = -1.0
                t[r, machines + i] = now.rates[i, j]
        if dense.asks[i]:
            t[last, machines + i] = now.arrivals[i]
    t[last, slack + last] = -1.0
    t[last, end] = 1.0
    basis[last] = end  # the artificial variable
    for j in range(machines):
        t[last + 1, j] = -now.availability[j]
    return some


def _climb(dense: Dense, gains: int, steepest: bool) -> bool:
    """Go from vertex to vertex until no variable gains; return False if that takes too long.

    In the first phase the gains are the row of the artificial variable, until that leaves.
    """
    rows, end = len(dense.basis), dense.cells.shape[1] - 1
    still = 0
    for _ in range(50 * rows + 1000):
        if gains < rows and dense.basis[gains] != end:
            return True
        entering = _entering(dense, gains, steepest, still > STALLED)
        if entering < 0:
            return gains == rows
        leaving, step = _leaving(dense, entering)
        if leaving < 0:
            return False
        _exchange(dense, leaving, entering)
        still = still + 1 if step < SMALL else 0
    return False


def _entering(dense: Dense, gains: int, steepest: bool, careful: bool) -> int:
    """Choose the variable that gains the most; −1 if none gains.

    Of equal ones the last, by steepest edges the first.
    """
    t, rows = dense.cells, len(dense.basis)
    entering, best = -1, 0.0
    for c in range(t.shape[1] - 1):
        gain = t[gains, c]
        if gain <= SMALL:
            continue
        if careful:
            return c
        if steepest:
            length = 1.0
            for r in range(rows):
                length += t[r, c] * t[r, c]
            gain /= np.sqrt(length)
        margin = 1.0 + SMALL if steepest else 1.0 - SMALL
        if entering < 0 or gain >= best * margin:
            entering, best = c, max(gain, best)
    return entering


def _leaving(dense: Dense, entering: int) -> tuple[int, float]:
    """Return the row whose variable reaches 0 first, of equal ones the first variable, and when."""
    t, basis = dense.cells, dense.basis
    leaving, step, end = -1, np.inf, t.shape[1] - 1
    for r in range(len(basis)):
        if t[r, entering] <= SMALL:
            continue
        ratio = max(t[r, end], 0.0) / t[r, entering]
        if leaving < 0 or ratio < step * (1.0 - SMALL) - TINY:
            leaving, step = r, ratio
        elif ratio <= step * (1.0 + SMALL) + TINY:
            step = min(step, ratio)
            if basis[r] < basis[leaving]:
                leaving = r
    return leaving, step


def _exchange(dense: Dense, row: int, column: int) -> None:
    """Bring a variable into the basis in place of that of a row."""
    t = dense.cells
    pivot = t[row, column]
    for c in range(t.shape[1]):
        t[row, c] /= pivot
    for r in range(len(t)):
        factor = t[r, column]
        if r != row and factor != 0.0:
            for c in range(t.shape[1]):
                t[r, c] -= factor * t[row, c]
            t[r, column] = 0.0
    t[row, column] = 1.0
    dense.basis[row] = column
