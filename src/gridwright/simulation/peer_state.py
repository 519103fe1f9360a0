"""The state of a decentralised system: the truth, and what every machine knows of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..allocation import Situation
from ..compiler.checks import readonly
from ..compiler.link import shared
from ..policies.view import View, record_type
from .central_state import State

DIARY = record_type(
    change="f8",  # when rates change next
    event="f8",  # when a machine fails, is repaired or changes its availability next
    resumed="i8",  # the machine that is repaired and decides about what waits there, −1 for none
    resumed_at="f8",
    interval="f8",  # mean time between changes
    home="i8",  # where the next task arrives, −1 while that is not drawn
    met="i8",  # machines asked, other than the one that asks
    considered="i8",  # machines asked, that one included where it is permitted
    changes="i8",
    redraw="?",  # whether errors of estimates are drawn anew at a change
    doubt_arrivals="f8",  # largest relative errors
    doubt_rates="f8",
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@shared
class PeerState(NamedTuple):
    """Everything that the loop reads and writes.

    What a machine knows stands in arrays whose first index is that machine; their last index is
    the machine that is known about. A machine always knows its own column.
    """

    central: State  # the machines, their queues, the tasks: the truth
    diary: Any  # DIARY [1]
    # the truth, and what each machine reckons of itself
    first_arrival: Floats  # [class, machine], at the start
    first_rate: Floats
    arrival: Floats  # now
    arrival_sum: Floats  # [class, machine], cumulative along the machines
    nominal_now: Floats
    speed: Floats  # [machine], true CPU availability
    error_arrival: Floats  # [class, machine], estimate = truth × error
    error_rate: Floats
    held: Integers  # [machine, 2]: the first and last task that arrived there while it was down
    there: Integers  # [class, machine], tasks in its queue or in service
    version: Integers  # [machine], how often its own column has changed
    # what is known
    known_version: Integers  # [knower, machine]
    heard: Floats  # [knower, machine], when they last met
    machines: Any  # MACHINE records [knower, machine]
    classes: Any  # CLASS records [knower, class]
    arrivals: Floats  # [knower, class, machine]
    nominal: Floats
    rate: Floats
    expected: Floats
    availability: Floats  # [knower, machine]
    assigned: Integers  # [knower, class, machine]
    plan: Floats
    memory: Floats
    outdated: NDArray[np.bool_]  # [knower], whether it has learnt anything since it planned
    # for planning
    group: Integers  # [machine]
    load: Floats  # [class], scratch
    # what rates may become
    arrival_factors: Floats
    rate_factors: Floats
    availabilities: Floats


def known(p: PeerState, q: int, now: float, own: Generator) -> View:
    """Return what a machine knows."""
    classes, machines = len(p.central.classes), len(p.central.machines)
    return View(
        now,
        readonly(p.machines[q], machines),
        readonly(p.classes[q], classes),
        readonly(p.rate[q], classes, machines),
        readonly(p.nominal[q], classes, machines),
        readonly(p.expected[q], classes, machines),
        readonly(p.assigned[q], classes, machines),
        readonly(p.plan[q], classes, machines),
        p.memory[q],
        p.central.tally,
        own,
    )


def meet(p: PeerState, home: int, i: int, now: float) -> None:
    """Let a machine ask all that its plan permits for a class: both then know of each other."""
    d = p.diary[0]
    hear(p, home, home)
    for j in range(len(p.version)):
        if p.plan[home, i, j] > 0.0:
            d.considered += 1
            if j != home:
                d.met += 1
                if not p.central.machines[j].up:
                    learn(p, home, j)  # there is no answer
                    continue
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
    """Tell a machine another's own rates, or that it is down, unless it knows them."""
    if p.known_version[q, j] == p.version[j]:
        return
    p.known_version[q, j] = p.version[j]
    up = q == j or p.central.machines[j].up
    p.machines[q, j].up = up
    p.availability[q, j] = p.speed[j] if up else 0.0
    p.machines[q, j].availability = p.speed[j]
    for i in range(len(p.load)):
        p.arrivals[q, i, j] = p.arrival[i, j] * p.error_arrival[i, j]
        nominal = p.nominal_now[i, j] * p.error_rate[i, j]
        p.nominal[q, i, j] = nominal
        p.rate[q, i, j] = nominal * p.speed[j]
        possible = up and p.rate[q, i, j] > 0.0
        p.expected[q, i, j] = 1.0 / p.rate[q, i, j] if possible else np.inf
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
