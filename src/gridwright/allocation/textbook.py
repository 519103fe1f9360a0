"""Solve the allocation LP as a textbook does, and so choose one of its optimal vertices.

    maximise λ  subject to  Σ_j rate[i, j] x[i, j] ≥ λ arrivals[i]  for every class i,
                            Σ_i x[i, j] ≤ availability[j]           for every machine j,  x ≥ 0.

Where machines are alike the LP has many optimal vertices, and the steps of the simplex method
decide which one it finds. Here they are those of the full tableau: the slacks are the first basis,
the variable with the largest gain enters (Dantzig's rule), and of equal gains the last one. Of all
rules that were tried this one meets the most published numbers (``tools/vertex_rules.py``).

In the loops, r is a row and c a column of the tableau. Its columns are x[i, j] class by class, λ,
the slacks of the rows, and the right side; below the rows of the constraints are the gains.
"""

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
"""The largest tableau: about 600 machines with four classes."""


@shared
class Dense(NamedTuple):
    """A tableau, the variable that is basic in each of its rows, and the classes it is about."""

    cells: Floats  # [row, column]
    basis: Integers  # [row]
    asks: Integers  # [class], 0 for one that does not arrive or that nothing up can run


def dantzig(situation: Situation) -> Floats:
    """Plan with the vertex that the textbook's simplex method finds, machine by machine.

    The reading of Al-Azzoni 2009, chapter 3, that meets the most printed class means. It takes
    seconds for hundreds of machines; ``vertex`` is far faster.
    """
    dense, plan = make_dense(situation), np.empty(situation.rates.shape)
    fill = plan_dantzig if dense.cells.size * len(dense.basis) <= LARGE else link(plan_dantzig)
    return plan if fill(situation, dense, plan) else vertex(situation)


def make_dense(situation: Situation) -> Dense:
    """Make a tableau for situations with these classes and machines."""
    classes, machines = situation.rates.shape
    rows = classes + machines
    columns = classes * machines + 1 + rows + 1
    if rows * columns > CELLS:
        raise InputError(
            f"planner=dantzig is for at most {CELLS:,} cells of its tableau; {classes} classes on "
            f"{machines} machines need {rows * columns:,}. Use planner=vertex"
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
    if not _climb(dense):
        return False
    end = dense.cells.shape[1] - 1
    for r in range(len(dense.basis)):
        variable, value = dense.basis[r], dense.cells[r, end]
        if variable < classes * machines and value > SMALL:
            plan[variable // machines, variable % machines] = value
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


def _write(now: Situation, dense: Dense) -> bool:
    """Write the LP down; return whether any class asks for something."""
    t, basis = dense.cells, dense.basis
    classes, machines = now.rates.shape
    rows, capacity = classes + machines, classes * machines
    some = False
    for r in range(rows + 1):
        for c in range(t.shape[1]):
            t[r, c] = 0.0
    for i in range(classes):
        runs = False
        for j in range(machines):
            t[classes + j, i * machines + j] = 1.0
            runs = runs or (now.rates[i, j] > 0.0 and now.availability[j] > 0.0)
        dense.asks[i] = runs and now.arrivals[i] > 0.0
        if dense.asks[i]:
            some = True
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


def _climb(dense: Dense) -> bool:
    """Go from vertex to vertex until no variable gains; return False if that takes too long."""
    rows = len(dense.basis)
    still = 0
    for _ in range(50 * rows + 1000):
        careful = still > STALLED
        entering = _entering(dense, careful)
        if entering < 0:
            return True
        leaving, step = _leaving(dense, entering)
        if leaving < 0:
            return False
        _exchange(dense, leaving, entering)
        still = still + 1 if step < SMALL else 0
    return False


def _entering(dense: Dense, careful: bool) -> int:
    """Choose the variable with the largest gain, of equal ones the last; −1 if none gains."""
    t, rows = dense.cells, len(dense.basis)
    entering, best = -1, SMALL
    for c in range(t.shape[1] - 1):
        gain = t[rows, c]
        if gain > SMALL and gain >= best * (1.0 - SMALL):
            entering, best = c, max(gain, best)
            if careful:
                return entering
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
