"""Optimal bases found before, tried again.

Problems that differ only in how much there is of every group have few optimal bases among them.
A basis is remembered only if it is the only optimal one wherever it is feasible, so that the
answer does not depend on what was solved before.
"""

from .tableau import Tableau, best_entering, invert, key_of, rekey

__all__ = ["BASES", "recall", "remember"]

ALLOCATES_NOTHING = True

BASES = 16
"""Bases remembered."""
CLEAR = 1e-6
"""A loss in price from here on is a clear one; prices and weights are scaled to about 1."""


def recall(t: Tableau) -> bool:
    """Try the bases found before, the most useful first; tell whether one of them fits."""
    classes, groups = t.size
    if classes + groups != t.known.shape[1]:
        return False  # variables have other numbers when a class or a group is left out
    for b in range(len(t.known)):
        if t.known[b, 0] < 0:
            return False
        for k in range(classes):
            t.row[k]["work"] = t.known[b, k]
        for g in range(groups):
            t.key[g] = t.known[b, classes + g]
        invert(t)
        if _is_feasible(t) and best_entering(t, False) < 0:
            if b > 0:
                for k in range(classes + groups):
                    t.known[b, k], t.known[b - 1, k] = t.known[b - 1, k], t.known[b, k]
            if rekey(t):
                invert(t)
            return True
    return False


def remember(t: Tableau) -> None:
    """Note a basis if every other variable would clearly lose; the least useful one gives way."""
    classes, groups = t.size
    if classes + groups != t.known.shape[1] or not _is_clear(t):
        return
    b = 0
    while b < len(t.known) - 1 and t.known[b, 0] >= 0:
        b += 1
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


def _is_clear(t: Tableau) -> bool:
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
