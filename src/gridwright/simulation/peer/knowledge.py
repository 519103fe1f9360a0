"""How machines come to know of each other, and plan with what they know."""

from typing import Any

import numpy as np

from ...allocation import Situation
from .state import PeerState

__all__ = ["learn", "meet", "replan", "situation"]

ALLOCATES_NOTHING = True


def meet(p: PeerState, home: int, i: int, now: float) -> None:
    """Let a machine ask all that its plan permits for a class: both then know of each other."""
    d = p.diary[0]
    hear(p, home, home)
    for j in range(len(p.version)):
        if p.plan[home, i, j] > 0.0:
            d.considered += 1
            if j != home:
                d.met += 1
                hear(p, home, j)
                learn(p, home, j)
                learn(p, j, home)
                p.heard[home, j] = now
                p.heard[j, home] = now


def hear(p: PeerState, q: int, j: int) -> None:
    """Tell a machine what another is doing now."""
    seen, true = p.machines[q, j], p.central.machines[j]
    seen.serving = true.serving
    seen.backlog = true.backlog
    seen.work = true.work


def learn(p: PeerState, q: int, j: int) -> None:
    """Tell a machine another's own rates, unless it knows them."""
    if p.known_version[q, j] == p.version[j]:
        return
    p.known_version[q, j] = p.version[j]
    p.availability[q, j] = p.speed[j]
    p.machines[q, j].availability = p.speed[j]
    for i in range(len(p.load)):
        p.arrivals[q, i, j] = p.arrival[i, j] * p.error_arrival[i, j]
        nominal = p.nominal_now[i, j] * p.error_rate[i, j]
        p.nominal[q, i, j] = nominal
        p.rate[q, i, j] = nominal * p.speed[j]
        p.expected[q, i, j] = 1.0 / p.rate[q, i, j] if p.rate[q, i, j] > 0.0 else np.inf
    p.outdated[q] = True


def replan(p: PeerState, q: int, make_plan: Any, planning: Any) -> bool:
    """Let a machine plan with what it knows; False where only Python can."""
    if not make_plan(situation(p, q), planning, p.plan[q]):
        return False
    p.outdated[q] = False
    p.central.count[0].replans += 1
    return True


def situation(p: PeerState, q: int) -> Situation:
    """Describe to a planner what a machine knows."""
    for i in range(len(p.load)):
        total = 0.0
        for j in range(len(p.version)):
            total += p.arrivals[q, i, j]
        p.load[i] = total
        p.classes[q, i].arrival = total
    return Situation(p.nominal[q], p.load, p.availability[q], p.group)
