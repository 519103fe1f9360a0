"""The state of a decentralised system: the truth, and what every machine knows of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ...compiler.link import shared
from ...compiler.readonly import readonly
from ...policies.view import View
from ..state import State

__all__ = ["DIARY", "PeerState", "known"]

ALLOCATES_NOTHING = True

DIARY = np.dtype(
    [
        ("change", "f8"),  # when rates change next
        ("interval", "f8"),  # mean time between changes
        ("home", "i8"),  # where the next task arrives, −1 while that is not drawn
        ("met", "i8"),  # machines asked, other than the one that asks
        ("considered", "i8"),  # machines asked, that one included where it is permitted
        ("changes", "i8"),
        ("redraw", "?"),  # whether errors of estimates are drawn anew at a change
        ("doubt_arrivals", "f8"),  # largest relative errors
        ("doubt_rates", "f8"),
    ],
    align=True,
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
