"""The allocation LP: a system's maximum capacity, and which machine should serve which class."""

from .allocation import Allocation, allocate, groups_of, situation
from .change import Change, change
from .description import as_json, kinds_of
from .highs import time_limit
from .long_run import LongRun, long_run_load, long_run_of, variance_rate
from .planner import grouped, interior, prices, vertex, weights
from .room import Room, Situation, make_room
from .verdict import Verdict, verdict

__all__ = [
    "Allocation",
    "Change",
    "LongRun",
    "Room",
    "Situation",
    "Verdict",
    "allocate",
    "as_json",
    "change",
    "grouped",
    "groups_of",
    "interior",
    "kinds_of",
    "long_run_load",
    "long_run_of",
    "make_room",
    "prices",
    "situation",
    "time_limit",
    "variance_rate",
    "verdict",
    "vertex",
    "weights",
]
