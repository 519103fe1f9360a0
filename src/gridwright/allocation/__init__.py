"""The allocation LP: a system's maximum capacity, and which machine should serve which class."""

from .allocation import (
    SIMULATE,
    Allocation,
    Change,
    Verdict,
    allocate,
    change,
    groups_of,
    situation,
    verdict,
)
from .fleet import Addition, Fleet, PricesGiven, cheapest_fleets, one_more
from .highs import time_limit
from .long_run import LongRun, long_run_of
from .planner import grouped, interior, prices, steady, tolls, vertex, weights
from .textbook import (
    Dense,
    dantzig,
    dual,
    make_dense,
    make_dense_dual,
    plan_dantzig,
    plan_dual,
)
from .workspace import Situation, Workspace, make_workspace

__all__ = [
    "SIMULATE",
    "Addition",
    "Allocation",
    "Change",
    "Dense",
    "Fleet",
    "LongRun",
    "PricesGiven",
    "Situation",
    "Verdict",
    "Workspace",
    "allocate",
    "change",
    "cheapest_fleets",
    "dantzig",
    "dual",
    "grouped",
    "groups_of",
    "interior",
    "long_run_of",
    "make_dense",
    "make_dense_dual",
    "make_workspace",
    "one_more",
    "plan_dantzig",
    "plan_dual",
    "prices",
    "situation",
    "steady",
    "time_limit",
    "tolls",
    "verdict",
    "vertex",
    "weights",
]
