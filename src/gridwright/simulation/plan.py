"""New plans inside the loop, for the planners that can be compiled."""

from collections.abc import Callable
from typing import Any

from ..allocation import Room, Situation, grouped, vertex
from ..allocation.optimum import optimum
from ..allocation.planner import fill, spread
from ..allocation.simplex import FAILED
from .state import State

__all__ = ["PLANS", "plan_in_python"]

ALLOCATES_NOTHING = True


def plan_in_python(s: State, room: Room) -> bool:
    """Leave the planning to Python."""
    return False


def plan_vertex(s: State, room: Room) -> bool:
    """Plan as ``vertex`` does."""
    now = Situation(s.nominal, s.classes.arrival, s.present, s.group)
    if optimum(now, room) == FAILED:
        return False
    fill(now, room, s.plan)
    return True


def plan_grouped(s: State, room: Room) -> bool:
    """Plan as ``grouped`` does."""
    now = Situation(s.nominal, s.classes.arrival, s.present, s.group)
    if optimum(now, room) == FAILED:
        return False
    spread(now, room, s.plan)
    return True


PLANS: dict[Any, Callable[[State, Room], bool]] = {vertex: plan_vertex, grouped: plan_grouped}
"""Planners that run compiled inside the loop; any other is called in Python."""
