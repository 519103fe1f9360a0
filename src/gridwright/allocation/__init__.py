"""The allocation LP: a system's maximum capacity, and which machine should serve which class."""

from .allocation import Allocation, allocate, groups_of, situation
from .change import Change, change
from .optimum import Situation
from .planner import grouped, interior, vertex
from .verdict import Verdict, verdict

__all__ = [
    "Allocation",
    "Change",
    "Situation",
    "Verdict",
    "allocate",
    "change",
    "grouped",
    "groups_of",
    "interior",
    "situation",
    "verdict",
    "vertex",
]
