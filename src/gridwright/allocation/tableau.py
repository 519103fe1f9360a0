"""The allocation LP in the form that the simplex method works on.

    maximise λ  subject to  Σ_g w[i, g] x[i, g] ≥ λ for every class i,
                            Σ_i x[i, g] ≤ 1 for every group g,  x ≥ 0.

Every x[i, g] stands in just one of the group constraints, so each group keeps one of its basic
variables apart as its *key* (generalised upper bounding), and the rest of the basis is no larger
than the number of classes, however many groups there are. That small working basis is inverted
anew at every step, so errors do not build up.

The functions are plain Python and compile as they are; loops are spelt out because they compile
faster than array expressions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiler.link import shared

__all__ = [
    "ROW",
    "Floats",
    "Integers",
    "Tableau",
    "add_column",
    "best_entering",
    "invert",
    "key_of",
    "rekey",
    "serve",
]

ALLOCATES_NOTHING = True

GAIN = 1e-12
"""A gain in price below this is no gain; prices and weights are scaled to about 1."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@shared
class Tableau(NamedTuple):
    """The scaled problem, and the basis at work on it.

    A variable is a number: group * (classes + 1) + class for a share, the same with class =
    classes for the group's idle time, then λ, then the surplus of every class. λ is always basic
    and stands first in the working basis.
    """

    given: Floats  # [class, group], the weights; the first size[0] and size[1] of them count
    size: Integers  # [2], classes and groups
    weight: Floats  # [group, class], every class scaled to a largest weight of 1
    key: Integers  # [group], the class (or idle time) kept apart
    matrix: Floats  # [place, 2 * place], the working basis, its inverse on the right
    row: NDArray[np.void]  # [class or place], a ROW each
    share: Floats  # [class, group], the answer
    known: Integers  # [basis, class + group], optimal bases found before


ROW = np.dtype(
    [
        ("demand", "f8"),  # of a class: what one unit of λ asks for on the scale of the weights
        ("price", "f8"),  # of a class
        ("column", "f8"),  # of a class: what one unit of the entering variable adds to it
        ("work", "i8"),  # of a place in the working basis: its variable
        ("value", "f8"),  # of a place: the value of its variable
        ("fall", "f8"),  # of a place: how fast that falls as the entering variable rises
    ],
    align=True,
)


def serve(t: Tableau) -> None:
    """Write into the values what every class gets when the keys take their whole groups."""
    classes, groups = t.size
    for i in range(classes):
        t.row[i]["value"] = 0.0
    for g in range(groups):
        if t.key[g] < classes:
            t.row[t.key[g]]["value"] += t.weight[g, t.key[g]]


def add_column(t: Tableau, variable: int) -> None:
    """Write what one unit of a variable adds to every class, taken from the key of its group."""
    classes, groups = t.size
    shares = groups * (classes + 1)
    for i in range(classes):
        t.row[i]["column"] = -t.row[i]["demand"] if variable == shares else 0.0
    if variable > shares:
        t.row[variable - shares - 1]["column"] = -1.0
    if variable < shares:
        g, i = variable // (classes + 1), variable % (classes + 1)
        if i < classes:
            t.row[i]["column"] += t.weight[g, i]
        if t.key[g] < classes:
            t.row[t.key[g]]["column"] -= t.weight[g, t.key[g]]


def invert(t: Tableau) -> None:
    """Invert the working basis; find its values and the class prices."""
    size = t.size[0]
    for k in range(size):
        add_column(t, t.row[k]["work"])
        for i in range(size):
            t.matrix[i, k] = t.row[i]["column"]
            t.matrix[k, size + i] = 1.0 if i == k else 0.0
    _eliminate(t.matrix, size)
    serve(t)
    for k in range(size):
        t.row[k]["column"] = t.row[k]["value"]
        t.row[k]["price"] = -t.matrix[0, size + k]
    for k in range(size):
        t.row[k]["value"] = 0.0
        for i in range(size):
            t.row[k]["value"] -= t.matrix[k, size + i] * t.row[i]["column"]


def _eliminate(matrix: Floats, size: int) -> None:
    """Turn [B | I] into [I | B⁻¹], exchanging rows for the largest pivot."""
    width = 2 * size
    for k in range(size):
        best = k
        for row in range(k + 1, size):
            if abs(matrix[row, k]) > abs(matrix[best, k]):
                best = row
        for c in range(k, width):
            matrix[k, c], matrix[best, c] = matrix[best, c], matrix[k, c]
        scale = 1.0 / matrix[k, k]
        for c in range(k, width):
            matrix[k, c] *= scale
        for row in range(size):
            factor = matrix[row, k]
            if row != k and factor != 0.0:
                for c in range(k, width):
                    matrix[row, c] -= factor * matrix[k, c]


def best_entering(t: Tableau, careful: bool) -> int:
    """Choose the variable with the largest gain, or the first with any when careful; −1: none."""
    weight, row = t.weight, t.row
    classes, groups = t.size
    best, gain = -1, GAIN
    for g in range(groups):
        key = t.key[g]
        worth = row[key]["price"] * weight[g, key] if key < classes else 0.0
        for i in range(classes):
            more = row[i]["price"] * weight[g, i] - worth
            if more > gain:
                best, gain = g * (classes + 1) + i, more
        if -worth > gain:
            best, gain = g * (classes + 1) + classes, -worth
        if careful and best >= 0:
            return best
    for i in range(classes):
        if -row[i]["price"] > gain:
            best, gain = groups * (classes + 1) + 1 + i, -row[i]["price"]
    return best


def key_of(t: Tableau, member: int, entering: int) -> tuple[int, float, float]:
    """Return the key of a variable's group, its value, and how fast it falls."""
    classes, groups = t.size
    if member >= groups * (classes + 1):
        return -1, 0.0, 0.0
    g = member // (classes + 1)
    value, fall = 1.0, 1.0 if entering // (classes + 1) == g else 0.0
    for k in range(1, classes):
        if t.row[k]["work"] // (classes + 1) == g:
            value -= t.row[k]["value"]
            fall -= t.row[k]["fall"]
    return g * (classes + 1) + t.key[g], value, fall


def rekey(t: Tableau) -> bool:
    """Make the largest variable of every group its key; tell whether a key has changed.

    The key is what the others leave: a small one would be lost in their rounding errors.
    """
    classes, groups = t.size
    changed = False
    for g in range(groups):
        rest, largest, place = 1.0, 0.0, -1
        for k in range(1, classes):
            if t.row[k]["work"] // (classes + 1) == g:
                rest -= t.row[k]["value"]
                if t.row[k]["value"] > largest:
                    largest, place = t.row[k]["value"], k
        if largest > rest:
            variable = t.row[place]["work"]
            t.row[place]["work"] = g * (classes + 1) + t.key[g]
            t.key[g] = variable % (classes + 1)
            changed = True
    return changed
