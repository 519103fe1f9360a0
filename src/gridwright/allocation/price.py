"""What tasks and machines are worth: the dual of the allocation LP, level by level.

A class has a price, a group of machines a worth: no class earns more than a machine's worth there,
and where the allocation is positive it earns just that. The share that it earns, price × rate /
worth, is the *efficiency* of the pair.

Where the allocation falls into pieces that share no machine, only the prices within a piece are
given; by how much those of two pieces may differ follows from the pairs across them. Prices are
then set midway, in logarithms, so that they depend on the system alone. Pieces with no bound on
either side are parts of their own, and between parts no price can be compared.
"""

from math import exp, log

import numpy as np

from .room import Room, Situation

__all__ = ["efficiency", "set_prices"]

ALLOCATES_NOTHING = True


def set_prices(situation: Situation, room: Room) -> None:
    """Find the prices of an optimum, and the parts within which they can be compared."""
    classes, groups = room.time.shape
    for i in range(classes):
        room.part[i] = -1
        room.price[i] = 0.0
    for g in range(groups):
        room.group_part[g] = -1
        room.worth[g] = 0.0
    pieces = 0
    for i in range(classes):
        if room.level[i] >= 0 and room.part[i] < 0:
            room.part[i] = i
            room.price[i] = 1.0 / situation.arrivals[i]
            _price_piece(room, i)
            pieces += 1
    if pieces > 1:
        _bound_pieces(room)
        _centre(room)
    _normalise(situation, room)


def efficiency(room: Room, i: int, g: int) -> float:
    """Return which share of a machine's worth a class earns there, 0 between parts."""
    if room.part[i] < 0 or room.part[i] != room.group_part[g]:
        return 0.0
    earned = room.price[i] * room.rates[i, g] / room.worth[g]
    return earned if room.time[i, g] <= 0.0 and earned < 1.0 else 1.0


def _price_piece(room: Room, piece: int) -> None:
    """Price whatever is tied to the classes priced so far by a positive allocation."""
    classes, groups = room.time.shape
    changed = True
    while changed:
        changed = False
        for i in range(classes):
            for g in range(groups):
                if room.time[i, g] <= 0.0:
                    continue
                if room.part[i] == piece and room.group_part[g] < 0:
                    room.group_part[g] = piece
                    room.worth[g] = room.price[i] * room.rates[i, g]
                    changed = True
                elif room.group_part[g] == piece and room.part[i] < 0:
                    room.part[i] = piece
                    room.price[i] = room.worth[g] / room.rates[i, g]
                    changed = True


def _bound_pieces(room: Room) -> None:
    """Find by how much, in logarithms, the prices of a piece can rise against another's."""
    classes, groups = room.time.shape
    most = room.most
    for c in range(classes):
        for d in range(classes):
            most[c, d] = 0.0 if c == d else np.inf
    for i in range(classes):
        for g in range(groups):
            c, d = room.part[i], room.group_part[g]
            together = c >= 0 and d >= 0 and room.level[i] == room.group_level[g]
            if together and c != d and room.rates[i, g] > 0.0:
                bound = log(room.worth[g] / (room.price[i] * room.rates[i, g]))
                if bound < most[c, d]:
                    most[c, d] = bound
    for e in range(classes):
        for c in range(classes):
            for d in range(classes):
                if most[c, e] + most[e, d] < most[c, d]:
                    most[c, d] = most[c, e] + most[e, d]


def _centre(room: Room) -> None:
    """Move every piece to the middle of its bounds; pieces that bound each other are one part."""
    classes, groups = room.time.shape
    most = room.most
    for i in range(classes):
        room.slack_class[i] = room.part[i]  # the piece, while the parts are found
    for g in range(groups):
        room.slack_group[g] = room.group_part[g]
    for c in range(classes):
        first, shift, others = -1, 0.0, 0
        for d in range(classes):
            if room.slack_class[d] == d and most[c, d] < np.inf and most[d, c] < np.inf:
                first = d if first < 0 else first
                shift += 0.5 * (most[c, d] - most[d, c])
                others += 1
        if room.slack_class[c] != c:
            continue
        scale = exp(shift / others)
        for i in range(classes):
            if room.slack_class[i] == c:
                room.part[i] = first
                room.price[i] *= scale
        for g in range(groups):
            if room.slack_group[g] == c:
                room.group_part[g] = first
                room.worth[g] *= scale


def _normalise(situation: Situation, room: Room) -> None:
    """Let the classes of every part be worth 1 a time unit together."""
    classes, groups = room.time.shape
    for part in range(classes):
        total = 0.0
        for i in range(classes):
            if room.part[i] == part:
                total += room.price[i] * situation.arrivals[i]
        if total <= 0.0:
            continue
        for i in range(classes):
            if room.part[i] == part:
                room.price[i] /= total
        for g in range(groups):
            if room.group_part[g] == part:
                room.worth[g] /= total
