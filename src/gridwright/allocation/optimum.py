"""The allocation LP of a situation, solved on groups of machines with equal rates."""

from .level import close
from .room import Room, Situation, totals
from .simplex import FAILED, solve

__all__ = ["optimum"]

ALLOCATES_NOTHING = True


def optimum(situation: Situation, room: Room) -> float:
    """Solve the allocation LP: return the capacity, leave times and levels in the room.

    Classes that cannot run or do not arrive have no part in it.

    >>> import numpy as np
    >>> from gridwright.allocation.room import make_room
    >>> two = Situation(np.array([[8.0, 3.0], [4.0, 10.0]]), np.array([5.0, 8.0]),
    ...                 np.ones(2), np.arange(2))
    >>> round(float(optimum(two, make_room(two))), 4)
    1.3333
    """
    totals(situation, room)
    least, level = 0.0, 0
    while room.tableau.size[0] > 0:
        capacity = solve(room.tableau)
        if capacity == FAILED:
            return FAILED
        if level == 0:
            least = capacity
        close(situation, room, capacity, level)
        level += 1
    return least
