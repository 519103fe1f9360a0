"""Planners: from a situation to an allocation [class, machine], where 0 means never."""

from collections.abc import Callable
from math import log
from typing import Any, TypeVar, cast

import numpy as np

from .highs import check_time, solve_general, solve_interior
from .level import close
from .price import efficiency, set_prices
from .room import NEGLIGIBLE, Floats, Room, Situation, make_room, totals
from .simplex import FAILED
from .simplex import solve as simplex
from .tableau import Tableau

__all__ = [
    "fill",
    "grouped",
    "interior",
    "permit",
    "prices",
    "solve",
    "spread",
    "steps",
    "suited",
    "vertex",
    "weights",
]

Function = TypeVar("Function", bound=Callable[..., Any])

ALLOCATES_NOTHING = True  # fill, spread and permit; the planners are for Python

LARGE = 500_000
"""About a microsecond each: a problem that takes more steps is worth loading the compiler for."""
HUGE = 300_000_000
"""Steps from which on HiGHS is quicker than our simplex: about 100 classes on 100 groups."""
MOST_CLASSES = 5_000
"""The room for a problem grows with the square of its classes: 5,000 take about a gigabyte."""


def vertex(situation: Situation) -> Floats:
    """Plan with a basic solution at machine level: at most classes + machines − 1 non-zeros.

    Source: Al-Azzoni 2009, chapter 3; the machines of a group are filled class by class in order
    (north-west corner).
    """
    room, plan = make_room(situation), np.empty(situation.rates.shape)
    solve(situation, room)
    fill(situation, room, plan)
    return plan


def grouped(situation: Situation) -> Floats:
    """Plan with the solution on groups: machines with equal rates share their allocation alike.

    Source: Al-Azzoni 2009, chapter 2, Systems 2.C1 and 2.C2.
    """
    room, plan = make_room(situation), np.empty(situation.rates.shape)
    solve(situation, room)
    spread(situation, room, plan)
    return plan


def interior(situation: Situation) -> Floats:
    """Plan with the solution of an interior-point method: every pair that an optimum may use.

    Source: Al-Azzoni 2009, section 3.4.4 and Table 3.14, "modified" LPAS_DG.
    """
    room, plan = make_room(situation), np.empty(situation.rates.shape)
    solve_interior(situation, room, solve(situation, room))
    spread(situation, room, plan)
    return plan


def prices(situation: Situation, power: float = 2.0) -> Floats:
    """Plan with the weights of the pairs whose efficiency is at least load ** power.

    With power 0 these are the pairs that an optimum may use; with 1, machines that work on none
    but these can still carry the load, whichever of them they work on; 2 is a little more generous.
    """
    room, plan = make_room(situation), np.empty(situation.rates.shape)
    solve(situation, room)
    permit(situation, room, plan, power)
    return plan


def weights(situation: Situation) -> Floats:
    """Plan with weights: from 0 for a pair that wastes the machine to 1 for one in an optimum.

    The weight of a pair is efficiency ** log(1 / (1 − load)): when there is little to do it hardly
    matters what a pair wastes, and the closer the load is to 1 the more it does.
    """
    return prices(situation, power=np.inf)


def solve(situation: Situation, room: Room) -> float:
    """Solve a situation whatever its size and scale; the room then holds its solution."""
    best: Callable[[Tableau], float] = solve_general
    if steps(room) <= HUGE:
        best = suited(simplex, room, LARGE)
    finish = suited(close, room)
    suited(totals, room)(situation, room)
    capacities: list[float] = []
    while room.tableau.size[0] > 0:
        check_time()
        capacity = best(room.tableau)
        if capacity == FAILED:
            capacity = solve_general(room.tableau)
        capacities.append(float(capacity))
        finish(situation, room, capacity, len(capacities) - 1)
    return capacities[0] if capacities else 0.0


def steps(room: Room) -> int:
    """Return about how many steps our simplex takes in a room."""
    classes, groups = room.rates.shape
    return (classes**3 + classes * groups) * (classes + groups)


def suited(function: Function, room: Room, large: int = HUGE) -> Function:
    """Return a function, compiled if the room is large enough for that to pay."""
    if steps(room) <= large:
        return function
    from ..compiler.link import link

    return cast(Function, link(function))


def spread(situation: Situation, room: Room, plan: Floats) -> None:
    """Give every machine its group's allocation in proportion to its availability."""
    classes, machines = situation.rates.shape
    for j in range(machines):
        g, share = situation.group[j], situation.availability[j]
        for i in range(classes):
            plan[i, j] = room.time[i, g] * share / room.capacity[g] if share > 0.0 else 0.0


def fill(situation: Situation, room: Room, plan: Floats) -> None:
    """Fill the machines of every group one after the other, class by class.

    The times in the room are used up on the way.
    """
    classes, machines = situation.rates.shape
    for i in range(classes):
        for j in range(machines):
            plan[i, j] = 0.0
    for g in range(len(room.serving)):
        room.serving[g] = 0  # the class that the group is at
    last, i, wanted = -1, 0, 0.0  # neighbours are often of one group
    for j in range(machines):
        g, left = situation.group[j], situation.availability[j]
        if g != last:
            if last >= 0 and i < classes:
                room.time[i, last] = wanted
            if last >= 0:
                room.serving[last] = i
            last, i = g, room.serving[g]
            wanted = room.time[i, g] if i < classes else 0.0
        while i < classes and left > NEGLIGIBLE * situation.availability[j]:
            if wanted > left * (1.0 + NEGLIGIBLE):
                plan[i, j] = left
                wanted -= left
                left = 0.0
            else:
                if wanted > 0.0:
                    plan[i, j] = wanted if wanted < left else left
                    left -= wanted
                i += 1
                wanted = room.time[i, g] if i < classes else 0.0


def permit(situation: Situation, room: Room, plan: Floats, power: float) -> None:
    """Set prices, and weigh the pairs that are efficient enough for the load."""
    set_prices(situation, room)
    classes, groups = room.rates.shape
    for i in range(classes):
        load = min(room.load[room.level[i]], 1.0) if room.level[i] >= 0 else 1.0
        least, exponent = load**power - NEGLIGIBLE, -log(max(1.0 - load, NEGLIGIBLE))
        for g in range(groups):
            earned = efficiency(room, i, g)
            room.weight[i, g] = earned**exponent if earned > 0.0 and earned >= least else 0.0
    for i in range(classes):
        for j in range(situation.rates.shape[1]):
            up = situation.availability[j] > 0.0
            plan[i, j] = room.weight[i, situation.group[j]] if up else 0.0
