"""The allocation LP: a system's maximum capacity, and which machine should serve which class."""

from .allocation import Allocation, allocate, groups_of, situation
from .change import Change, change
from .planner import grouped, interior, prices, vertex, weights
from .room import Room, Situation, make_room
from .verdict import Verdict, verdict

__all__ = [
    "Allocation",
    "Change",
    "Room",
    "Situation",
    "Verdict",
    "allocate",
    "change",
    "grouped",
    "groups_of",
    "interior",
    "make_room",
    "prices",
    "situation",
    "verdict",
    "vertex",
    "weights",
]
