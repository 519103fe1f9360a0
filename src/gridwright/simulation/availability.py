"""Machines whose availability changes, from one state of a Markov chain to another.

A row of ``State.chain`` is a state: the availability, the logarithm of the probability to stay for
one more step, the length of a step, and the cumulative odds of the state that follows.

What happens to a task is worked out when it begins: how its machine changes until it ends, or until
the machine fails. The chain of an idle machine stands still, and catches up when the next task
begins. So these changes, of which there may be dozens in the life of a task, need no events. If the
availability is reported, or if a task may be interrupted, each change is an event.
"""

from math import floor, log

import numpy as np
from numpy.random import Generator

from ..compiler.link import hook, rare
from ..compiler.philox import MASK, SCALE, block
from .central_state import State
from .event_log import SHIFT, note


@hook
def foreseeable(s: State, j: int) -> bool:
    """Tell whether nobody looks at a machine between the start and the end of its task."""
    return bool(s.server[j].report == np.inf and s.server[j].lag == 0.0)


@rare
def foresee(s: State, j: int, spare: int) -> None:
    """Follow a machine's chain until its task ends or the machine fails.

    If fewer than ``spare`` places are left in the event log, go on when there are more.
    """
    c, o = s.count[0], s.server[j]
    o.shift = np.inf
    if o.ticket < 0 or o.silent:
        return
    rate = s.truth[s.machines[j].serving, j]
    end = o.left_at + o.left / (rate * o.speed)
    while o.change < o.fault and (o.change <= o.left_at or o.change < end):
        if len(s.trace) > 0:
            if c.traced + spare > len(s.trace):
                o.shift = c.now
                break
            note(s, o.change, SHIFT, -1, -1, j)
        if o.change > o.left_at:
            o.left = max(o.left - (o.change - o.left_at) * rate * o.speed, 0.0)
            o.left_at = o.change
        move_on(s, j)
        end = o.left_at + o.left / (rate * o.speed)
    o.finish = end + o.after


def start_chains(s: State, faults: Generator) -> None:
    """Draw the key of all chains, and when each of them changes first."""
    c = s.count[0]
    if len(s.chain) > 1:
        c.key, c.key_2 = int(faults.random() * 2.0**32), int(faults.random() * 2.0**32)
    for j in range(len(s.server)):
        o = s.server[j]
        o.change = _stay(s, j, _draw(s, j)[1]) if o.chain >= 0 else np.inf


def move_on(s: State, j: int) -> None:
    """Move a machine's chain to its next state, and draw when it changes again."""
    o = s.server[j]
    row = o.chain + o.stage
    which, stay = _draw(s, j)
    o.stage = 0
    while which >= s.chain[row, 3 + o.stage]:
        o.stage += 1
    o.speed = s.chain[o.chain + o.stage, 0]
    o.change += _stay(s, j, stay)


def _draw(s: State, j: int) -> tuple[float, float]:
    """Draw two numbers from 0 to 1 that depend on the machine and the number of the change alone.

    So all policies meet the same changes, whenever they are worked out.
    """
    c, o = s.count[0], s.server[j]
    number = int(o.changes)
    o.changes = number + 1
    one, two, three, four = block(number & MASK, number >> 32, int(j), 0, int(c.key), int(c.key_2))
    return ((one >> 5 << 26) | (two >> 6)) * SCALE, ((three >> 5 << 26) | (four >> 6)) * SCALE


def _stay(s: State, j: int, u: float) -> float:
    """Return how long a machine's availability stays as it is: a geometric number of steps."""
    o = s.server[j]
    log_stay, step = s.chain[o.chain + o.stage, 1], s.chain[o.chain + o.stage, 2]
    if log_stay == 0.0:
        return np.inf
    if log_stay == -np.inf:
        return step
    return step * (1.0 + floor(log(1.0 - u) / log_stay))
