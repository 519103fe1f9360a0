"""New plans inside the loop, for the planners that can be compiled."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import Room, Situation, grouped, prices, vertex, weights
from ..allocation.optimum import optimum
from ..allocation.planner import fill, permit, spread
from ..allocation.simplex import FAILED
from .state import State

__all__ = ["PLANS", "Planning", "plan_in_python"]

ALLOCATES_NOTHING = True


class Planning(NamedTuple):
    """What a compiled planner works with."""

    room: Room
    numbers: NDArray[np.float64]  # the planner's parameters


def plan_in_python(s: State, planning: Planning) -> bool:
    """Leave the planning to Python."""
    return False


def plan_vertex(s: State, planning: Planning) -> bool:
    """Plan as ``vertex`` does."""
    now = situation(s)
    if optimum(now, planning.room) == FAILED:
        return False
    fill(now, planning.room, s.plan)
    return True


def plan_grouped(s: State, planning: Planning) -> bool:
    """Plan as ``grouped`` does."""
    now = situation(s)
    if optimum(now, planning.room) == FAILED:
        return False
    spread(now, planning.room, s.plan)
    return True


def plan_prices(s: State, planning: Planning) -> bool:
    """Plan as ``prices`` does, and ``weights``, which has no power."""
    now = situation(s)
    if optimum(now, planning.room) == FAILED:
        return False
    power = planning.numbers[0] if len(planning.numbers) > 0 else np.inf
    permit(now, planning.room, s.plan, power)
    return True


def situation(s: State) -> Situation:
    """Describe the state to a planner."""
    return Situation(s.nominal, s.classes.arrival, s.present, s.group)


PLANS: dict[Any, Callable[[State, Planning], bool]] = {
    vertex: plan_vertex,
    grouped: plan_grouped,
    prices: plan_prices,
    weights: plan_prices,
}
"""Planners that run compiled inside the loop; any other is called in Python."""
