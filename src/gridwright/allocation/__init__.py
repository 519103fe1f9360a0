"""The allocation LP: a system's maximum capacity, and which machine should serve which class."""

from .allocation import Allocation, Change, Verdict, allocate, change, groups_of, situation, verdict
from .highs import time_limit
from .long_run import LongRun, long_run_of
from .planner import grouped, interior, prices, vertex, weights
from .workspace import Situation, Workspace, make_workspace

__all__ = [
    "Allocation",
    "Change",
    "LongRun",
    "Situation",
    "Verdict",
    "Workspace",
    "allocate",
    "change",
    "grouped",
    "groups_of",
    "interior",
    "long_run_of",
    "make_workspace",
    "prices",
    "situation",
    "time_limit",
    "verdict",
    "vertex",
    "weights",
]
