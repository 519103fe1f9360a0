"""Solve the allocation LP with a simplex method made for its shape.

    maximise λ  subject to  Σ_g w[i, g] x[i, g] ≥ λ for every class i,
                            Σ_i x[i, g] ≤ 1 for every group g,  x ≥ 0.

Every x[i, g] appears in exactly one group constraint. Each group therefore keeps one of its basic
variables apart as its *key* (generalised upper bounding), and the working basis is no larger than
the number of classes, however many groups there are. It is inverted again at every step, so that
errors do not build up.

Problems that differ only in the capacity of their groups share a few optimal bases. The tableau
keeps those that it has found and tries them first. It keeps a basis only if that basis is the one
optimum wherever it is feasible, so the answer does not depend on what was solved before. If there
are many optima with all machines up, it also keeps the basis of one of them, the *reference*. While
few machines are down, the reference is often optimal, too; if not, its keys are a good start.

The functions are plain Python that also compiles. Loops are written out because they compile faster
than array expressions. In the loops, i is a class, g a group, k a place in the working basis, b a
known basis and t the tableau.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiler.link import allocates_nothing, shared

ZERO = 1e-13
"""A step or a pivot below this counts as none."""
DUALITY = 1e-6
"""A relative gap between λ and the value of the prices from here on means a wrong answer."""
FAILED = -1.0
"""Returned in place of λ when rounding errors won: rates spread over very many decades."""
GAIN = 1e-12
"""A gain in price below this is no gain; prices and weights are scaled to about 1."""
BASES = 16
"""Known bases that a tableau keeps."""
CLEAR = 1e-6
"""A loss in price from here on is a clear one; prices and weights are scaled to about 1."""

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
    known: Integers  # [basis, class + group], optimal bases found before; the last: the reference
    first: Integers  # [group], its key in the reference; −1 if there is none


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


@allocates_nothing
def solve(t: Tableau) -> float:
    """Return λ; the shares and the prices, which sum to 1, are left in the tableau.

    >>> from gridwright.allocation.workspace import tableau
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
    """Give every group to its key in the reference, or to the class that it serves best."""
    classes, groups = t.size
    for g in range(groups):
        t.key[g] = t.first[g]
        if t.first[g] >= 0:
            continue
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
            i = t.row[k]["work"] - g * (classes + 1)
            if 0 <= i <= classes:
                rest -= t.row[k]["value"]
                if i < classes and t.row[k]["value"] > 0.0:
                    t.share[i, g] = t.row[k]["value"]
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
    value, fall = 1.0, 1.0 if 0 <= entering - g * (classes + 1) <= classes else 0.0
    for k in range(1, classes):
        if 0 <= t.row[k]["work"] - g * (classes + 1) <= classes:
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
            if 0 <= t.row[k]["work"] - g * (classes + 1) <= classes:
                rest -= t.row[k]["value"]
                if t.row[k]["value"] > largest:
                    largest, place = t.row[k]["value"], k
        if largest > rest:
            variable = t.row[place]["work"]
            t.row[place]["work"] = g * (classes + 1) + t.key[g]
            t.key[g] = variable - g * (classes + 1)
            changed = True
    return changed


def recall(t: Tableau) -> bool:
    """Try the bases found before, the most useful first; tell whether one of them fits."""
    classes, groups = t.size
    if classes + groups != t.known.shape[1]:
        return False  # variables have other numbers when a class or a group is left out
    reference = len(t.known) - 1
    for b in range(reference + 1):
        if t.known[b, 0] < 0:
            continue
        for k in range(classes):
            t.row[k]["work"] = t.known[b, k]
        for g in range(groups):
            t.key[g] = t.known[b, classes + g]
        invert(t)
        if _is_feasible(t) and best_entering(t, False) < 0:
            if 0 < b < reference:
                for k in range(classes + groups):
                    t.known[b, k], t.known[b - 1, k] = t.known[b - 1, k], t.known[b, k]
            if rekey(t):
                invert(t)
            return True
    return False


def remember(t: Tableau) -> None:
    """Note a basis if every other variable would clearly lose; the least useful one gives way."""
    classes, groups = t.size
    if classes + groups != t.known.shape[1] or not is_clear(t):
        return
    b = 0
    while b < len(t.known) - 2 and t.known[b, 0] >= 0:
        b += 1
    keep(t, b)


def keep(t: Tableau, b: int) -> None:
    """Note the present basis as one of those that are known."""
    classes, groups = t.size
    for k in range(classes):
        t.known[b, k] = t.row[k]["work"]
    for g in range(groups):
        t.known[b, classes + g] = t.key[g]


def _is_feasible(t: Tableau) -> bool:
    """Tell whether no basic variable is negative, keys included."""
    classes = t.size[0]
    for k in range(classes):
        if not t.row[k]["value"] >= 0.0:
            return False
    lowest = 0.0
    for k in range(1, classes):
        lowest = min(lowest, key_of(t, t.row[k]["work"], -1)[1])
    return lowest >= 0.0


def is_clear(t: Tableau) -> bool:
    """Tell whether just the variables of the basis, one for every constraint, are without loss."""
    classes, groups = t.size
    without = 1  # λ
    for g in range(groups):
        key = t.key[g]
        worth = t.row[key]["price"] * t.weight[g, key] if key < classes else 0.0
        for i in range(classes):
            if worth - t.row[i]["price"] * t.weight[g, i] < CLEAR:
                without += 1
        if worth < CLEAR:
            without += 1
    for i in range(classes):
        if t.row[i]["price"] < CLEAR:
            without += 1
    return without == classes + groups
