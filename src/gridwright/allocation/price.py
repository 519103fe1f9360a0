"""Prices of classes and worths of machines: the dual of the allocation LP, level by level.

Each class has a price, and each group of machines has a worth. The *efficiency* of a class on a
machine is price × rate / worth. It is at most 1, and it is 1 where the allocation is positive.

The allocation may fall into pieces that share no machine. The LP then fixes only the prices within
each piece. Pairs of a class and a machine in two pieces bound by how much the prices of the pieces
may differ. Prices are set midway between these bounds, in logarithms, so that they depend on the
system alone. Pieces without bounds on both sides are separate parts, and the prices of two parts
cannot be compared.
"""

from math import exp, log

import numpy as np

from ..compiler.link import allocates_nothing
from .workspace import Situation, Workspace


@allocates_nothing
def set_prices(situation: Situation, space: Workspace) -> None:
    """Compute the prices of an optimum, and the parts within which they can be compared."""
    classes, groups = space.time.shape
    for i in range(classes):
        space.part[i] = -1
        space.price[i] = 0.0
    for g in range(groups):
        space.group_part[g] = -1
        space.worth[g] = 0.0
    pieces = 0
    for i in range(classes):
        if space.level[i] >= 0 and space.part[i] < 0:
            space.part[i] = i
            space.price[i] = 1.0 / situation.arrivals[i]
            _price_piece(space, i)
            pieces += 1
    if pieces > 1:
        _bound_pieces(space)
        _centre(space)
    _normalise(situation, space)


def efficiency(space: Workspace, i: int, g: int) -> float:
    """Return the efficiency of a class on a group of machines; 0 between parts, or at rate 0."""
    if space.part[i] < 0 or space.part[i] != space.group_part[g] or space.rates[i, g] <= 0.0:
        return 0.0
    earned = space.price[i] * space.rates[i, g] / space.worth[g]
    return earned if space.time[i, g] <= 0.0 and earned < 1.0 else 1.0


def _price_piece(space: Workspace, piece: int) -> None:
    """Price the classes and groups that positive allocations connect to the priced classes."""
    classes, groups = space.time.shape
    changed = True
    while changed:
        changed = False
        for i in range(classes):
            for g in range(groups):
                if space.time[i, g] <= 0.0:
                    continue
                if space.part[i] == piece and space.group_part[g] < 0:
                    space.group_part[g] = piece
                    space.worth[g] = space.price[i] * space.rates[i, g]
                    changed = True
                elif space.group_part[g] == piece and space.part[i] < 0:
                    space.part[i] = piece
                    space.price[i] = space.worth[g] / space.rates[i, g]
                    changed = True


def _bound_pieces(space: Workspace) -> None:
    """Compute by how much, in logarithms, the prices of a piece may rise against another piece."""
    classes, groups = space.time.shape
    most = space.most
    for c in range(classes):
        for d in range(classes):
            most[c, d] = 0.0 if c == d else np.inf
    for i in range(classes):
        for g in range(groups):
            c, d = space.part[i], space.group_part[g]
            together = c >= 0 and d >= 0 and space.level[i] == space.group_level[g]
            if together and c != d and space.rates[i, g] > 0.0:
                bound = log(space.worth[g] / (space.price[i] * space.rates[i, g]))
                if bound < most[c, d]:
                    most[c, d] = bound
    for e in range(classes):
        for c in range(classes):
            for d in range(classes):
                if most[c, e] + most[e, d] < most[c, d]:
                    most[c, d] = most[c, e] + most[e, d]


def _centre(space: Workspace) -> None:
    """Move every piece to the middle of its bounds; pieces that bound each other are one part."""
    classes, groups = space.time.shape
    most = space.most
    for i in range(classes):
        space.slack_class[i] = space.part[i]  # the piece, while the parts are found
    for g in range(groups):
        space.slack_group[g] = space.group_part[g]
    for c in range(classes):
        first, shift, others = -1, 0.0, 0
        for d in range(classes):
            if space.slack_class[d] == d and most[c, d] < np.inf and most[d, c] < np.inf:
                first = d if first < 0 else first
                shift += 0.5 * (most[c, d] - most[d, c])
                others += 1
        if space.slack_class[c] != c:
            continue
        scale = exp(shift / others)
        for i in range(classes):
            if space.slack_class[i] == c:
                space.part[i] = first
                space.price[i] *= scale
        for g in range(groups):
            if space.slack_group[g] == c:
                space.group_part[g] = first
                space.worth[g] *= scale


def _normalise(situation: Situation, space: Workspace) -> None:
    """Scale the prices of each part so that Σ price × arrivals = 1."""
    classes, groups = space.time.shape
    for part in range(classes):
        total = 0.0
        for i in range(classes):
            if space.part[i] == part:
                total += space.price[i] * situation.arrivals[i]
        if total <= 0.0:
            continue
        for i in range(classes):
            if space.part[i] == part:
                space.price[i] /= total
        for g in range(groups):
            if space.group_part[g] == part:
                space.worth[g] /= total
