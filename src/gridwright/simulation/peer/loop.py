"""The loop of a decentralised system: as for push systems, but every machine decides for itself."""

from typing import Any

from numpy.random import Generator

from ...compiler.link import hook
from ...policies.view import View
from ..reason import DRAWS, PLAN, POOL, SLICE, TRACE
from ..shape import low, shape_draw
from ..trace import ARRIVE, ASSIGN, note
from .change import alter
from .knowledge import meet, replan
from .queue import join, leave, settle
from .state import PeerState, known

__all__ = ["loop"]

ALLOCATES_NOTHING = True


def loop(
    p: PeerState,
    arguments: Any,
    until: float,
    warmup: float,
    horizon: float,
    make_plan: Any,
    planning: Any,
    tasks: Generator,
    events: Generator,
    homes: Generator,
    own: Generator,
) -> int:
    """Go on until a time, or until something is needed; return the reason."""
    s = p.central
    c, d = s.count[0], p.diary[0]
    classes, machines = s.rate.shape
    if c.started == 0:
        if low(s.shapes):
            return DRAWS
        c.started = 1
        for i in range(classes):
            gap = shape_draw(s.shapes, s.table, s.stream[i].gap_shape, tasks)
            s.stream[i].next = gap * s.stream[i].gap
        d.change = events.standard_exponential() * d.interval
    tracing = len(s.trace) > 0
    reason = SLICE
    while True:
        i, t = 0, s.stream[0].next
        for k in range(1, classes):
            if s.stream[k].next < t:
                i, t = k, s.stream[k].next
        if tracing and c.traced + 2 * c.inside + 8 > len(s.trace):
            reason = TRACE
            break
        if d.change < t and d.change < until:
            alter(p, warmup, horizon, events)
            continue
        if t >= until:
            break
        if c.free < 0:
            reason = POOL
        elif low(s.shapes):
            reason = DRAWS
        else:
            if d.home < 0:
                d.home = _home(p, i, homes)
            if p.outdated[d.home] and c.planned > 0:
                reason = SLICE if replan(p, d.home, make_plan, planning) else PLAN
        if reason != SLICE:
            break
        home = d.home
        for j in range(machines):
            if s.due[j] <= t:
                leave(p, j, t, warmup, horizon)
        meet(p, home, i, t)
        p.classes[home, i].arrived += 1
        k = decide(i, home, known(p, home, t, own), *arguments)
        if k < 0 or k >= machines or p.plan[home, i, k] <= 0.0 or s.truth[i, k] <= 0.0:
            c.refusals += 1
            k = _instead(p, home, i)
        q = s.stream[i]
        q.next = t + shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
        work = shape_draw(s.shapes, s.table, q.work_shape, tasks)
        join(p, i, k, t, work)
        q.arrived += t >= warmup
        p.assigned[home, i, k] += 1
        d.home = -1
        if tracing:
            note(s, t, ARRIVE, c.tasks, i, home)
            note(s, t, ASSIGN, c.tasks, i, k)
        c.tasks += 1
    if reason == SLICE:
        for j in range(machines):
            if s.due[j] <= until:
                leave(p, j, until, warmup, horizon)
        c.now = until
        if until >= horizon:
            settle(p, warmup, horizon)
    return reason


def _home(p: PeerState, i: int, homes: Generator) -> int:
    """Draw the machine that a task of a class arrives at."""
    low, high = 0, p.arrival.shape[1] - 1
    u = homes.random() * p.arrival_sum[i, high]
    while low < high:
        middle = (low + high) // 2
        if u < p.arrival_sum[i, middle]:
            high = middle
        else:
            low = middle + 1
    return low


def _instead(p: PeerState, home: int, i: int) -> int:
    """Return where a task goes after an impossible answer: home, if it can run there."""
    if p.central.truth[i, home] > 0.0:
        return home
    best = -1
    for j in range(p.arrival.shape[1]):
        if p.central.truth[i, j] > 0.0 and best < 0:
            best = j
    return best


@hook
def decide(task_class: int, home: int, view: View) -> int:
    """Stand in for the policy."""
    return -1
