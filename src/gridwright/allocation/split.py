"""The static split of the arrivals with about the fewest tasks in the system.

If a fixed share of each class went to each machine, every machine would be a queue of its own,
M/G/1, whose mean number is known. Flows are moved from one group of machines to another, class by
class, to where one more task adds least. Unlike the prices of the allocation LP this has no jumps,
and it counts a long task that makes many short ones wait.
"""

from math import inf

from ..compiler.link import allocates_nothing
from .workspace import Situation, Workspace

ROUNDS = 12
"""How often every class moves a part of its flow; more hardly change the split."""
HALVINGS = 8
"""How often a flow is halved before it is too small to be moved."""
LEAST_SLACK = 0.01
"""A machine that has more to do than it can counts as busy all but this share of its time."""


@allocates_nothing
def split(situation: Situation, space: Workspace) -> None:
    """Turn the times of a solution into flows [class, group], and move them where they cost least.

    The flows replace the times in the workspace.
    """
    classes, groups = space.time.shape
    for i in range(classes):
        total = 0.0
        for g in range(groups):
            space.time[i, g] *= space.rates[i, g]
            total += space.time[i, g]
        for g in range(groups):
            if total > 0.0:
                space.time[i, g] *= situation.arrivals[i] / total
    for _ in range(ROUNDS):
        for i in range(classes):
            worst, most, best, least = -1, 0.0, -1, inf
            for g in range(groups):
                if space.capacity[g] > 0.0 and space.rates[i, g] > 0.0:
                    cost = marginal(space, i, g, 0.0)
                    if space.time[i, g] > 0.0 and cost > most:
                        worst, most = g, cost
                    if cost < least:
                        best, least = g, cost
            if worst >= 0 and worst != best:
                _move(space, i, worst, best)


def _move(space: Workspace, i: int, source: int, target: int) -> None:
    """Move as much of a flow as costs no more there than what stays."""
    moved, part = 0.0, space.time[i, source]
    for _ in range(HALVINGS):
        there = marginal(space, i, target, moved + part)
        if there <= marginal(space, i, source, -moved - part):
            moved += part
            if moved == space.time[i, source]:
                break
        part *= 0.5
    space.time[i, source] -= moved
    space.time[i, target] += moved


def marginal(space: Workspace, i: int, g: int, more: float) -> float:
    """Return what one more task of a class adds to the mean number, given a change of its flow."""
    each = 1.0 / space.rates[i, g]
    flow, busy, squares = tasks(space, g)
    flow += more / space.capacity[g]
    busy += more * each / space.capacity[g]
    squares += 2.0 * more * each * each / space.capacity[g]
    slack = max(1.0 - busy, LEAST_SLACK)
    alone = each + (squares + 2.0 * flow * each * each) / (2.0 * slack)
    return alone + flow * squares * each / (2.0 * slack * slack)


def tasks(space: Workspace, g: int) -> tuple[float, float, float]:
    """Return the tasks, their work and its squares that come to a machine of a group a time unit.

    Execution times are taken to be exponential.
    """
    flow, busy, squares = 0.0, 0.0, 0.0
    for i in range(len(space.time)):
        if space.time[i, g] > 0.0:
            each = 1.0 / space.rates[i, g]
            flow += space.time[i, g]
            busy += space.time[i, g] * each
            squares += 2.0 * space.time[i, g] * each * each
    return flow / space.capacity[g], busy / space.capacity[g], squares / space.capacity[g]


def bound(space: Workspace, g: int) -> float:
    """Return how many tasks wait for each time unit that a machine of a group works longer.

    Of those of a class only a share waits, which the workspace has in place of its price; the
    others go elsewhere.
    """
    _, busy, _ = tasks(space, g)
    flow = 0.0
    for i in range(len(space.time)):
        flow += space.time[i, g] * space.price[i]
    return flow / (space.capacity[g] * max(1.0 - busy, LEAST_SLACK))
