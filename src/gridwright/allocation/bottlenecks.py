"""Solve the allocation LP of a situation, bottleneck after bottleneck.

The optimum of the LP leaves open how to serve classes and groups that do not limit the capacity. So
the bottleneck is planned first, then the rest as a problem of its own, and so on. Each of these
*levels* has its own load. The LP is solved on groups of machines with equal rates.
"""

from ..compiler.link import allocates_nothing
from .simplex import FAILED, GAIN, solve
from .workspace import NEGLIGIBLE, Situation, Workspace, totals, weigh

PERHAPS = 3
"""A mark that may become one of slack, which is 1: two marks add up to it only if one is 0."""


@allocates_nothing
def optimum(situation: Situation, space: Workspace) -> float:
    """Solve the allocation LP: return the capacity, write times and levels into the workspace.

    Classes that cannot run or do not arrive are left out.

    >>> import numpy as np
    >>> from gridwright.allocation.workspace import make_workspace
    >>> two = Situation(np.array([[8.0, 3.0], [4.0, 10.0]]), np.array([5.0, 8.0]),
    ...                 np.ones(2), np.arange(2))
    >>> round(float(optimum(two, make_workspace(two))), 4)
    1.3333
    """
    totals(situation, space)
    least, level = 0.0, 0
    while space.tableau.size[0] > 0:
        capacity = solve(space.tableau)
        if capacity == FAILED:
            return FAILED
        if level == 0:
            least = capacity
        close(situation, space, capacity, level)
        level += 1
    return least


@allocates_nothing
def close(situation: Situation, space: Workspace, capacity: float, level: int) -> None:
    """Write the solution of a level; make the rest the problem at hand."""
    space.load[level] = 1.0 / capacity
    _mark(space, capacity)
    _mark_unpriced(space, capacity)
    _spread_slack(space)
    classes, groups = space.tableau.size
    limiting = 0
    for k in range(classes):
        limiting += 1 - space.slack_class[k]
    if limiting == 0:  # by rounding alone: then nothing is left for another level
        for k in range(classes):
            space.slack_class[k] = 0
        for h in range(groups):
            space.slack_group[h] = 0
    _write(space, level)
    _keep_slack(space)
    weigh(situation, space)


def _mark(space: Workspace, capacity: float) -> None:
    """Mark the classes that are served more than they need, and the groups with time to spare."""
    t = space.tableau
    classes, groups = t.size
    for k in range(classes):
        served = 0.0
        for h in range(groups):
            served += t.given[k, h] * t.share[k, h]
        space.slack_class[k] = served > capacity * (1.0 + NEGLIGIBLE)
    for h in range(groups):
        used = 0.0
        for k in range(classes):
            used += t.share[k, h]
            if not is_used(space, capacity, k, h):
                t.share[k, h] = 0.0
        space.slack_group[h] = used < 1.0 - NEGLIGIBLE


def _mark_unpriced(space: Workspace, capacity: float) -> None:
    """Mark classes without a price, and groups without a worth, that share nothing with others.

    They do not limit the capacity, but a solution may waste their time so that none is left.
    """
    t = space.tableau
    classes, groups = t.size
    for k in range(classes):
        used = 0.0
        for h in range(groups):
            used += t.share[k, h]
        if used > 0.0 and t.row[k]["price"] <= GAIN and space.slack_class[k] == 0:
            space.slack_class[k] = PERHAPS
    for h in range(groups):
        worth = 0.0
        for k in range(classes):
            worth = max(worth, t.row[k]["price"] * t.given[k, h])
        if worth <= GAIN * capacity and space.slack_group[h] == 0:
            space.slack_group[h] = PERHAPS
    changed = True
    while changed:
        changed = False
        for k in range(classes):
            for h in range(groups):
                if t.share[k, h] > 0.0 and space.slack_class[k] + space.slack_group[h] == PERHAPS:
                    space.slack_class[k], space.slack_group[h] = 0, 0
                    changed = True
    for k in range(classes):
        space.slack_class[k] = space.slack_class[k] > 0
    for h in range(groups):
        space.slack_group[h] = space.slack_group[h] > 0


def is_used(space: Workspace, capacity: float, k: int, h: int) -> bool:
    """Tell whether a share is more than rounding."""
    share = space.tableau.share[k, h]
    return bool(share > NEGLIGIBLE or share * space.tableau.given[k, h] > NEGLIGIBLE * capacity)


def _spread_slack(space: Workspace) -> None:
    """Mark what could draw on slack: a class that can run on such a group, a group it uses."""
    t = space.tableau
    classes, groups = t.size
    changed = True
    while changed:
        changed = False
        for k in range(classes):
            for h in range(groups):
                if space.slack_group[h] == 1 and t.given[k, h] > 0.0 and space.slack_class[k] == 0:
                    space.slack_class[k] = 1
                    changed = True
                if space.slack_class[k] == 1 and t.share[k, h] > 0.0 and space.slack_group[h] == 0:
                    space.slack_group[h] = 1
                    changed = True


def _write(space: Workspace, level: int) -> None:
    t = space.tableau
    classes, groups = t.size
    for h in range(groups):
        if space.slack_group[h] == 0:
            g = space.groups[h]
            space.group_level[g] = level
            for k in range(classes):
                space.time[space.classes[k], g] = t.share[k, h] * space.capacity[g]
    for k in range(classes):
        if space.slack_class[k] == 0:
            space.level[space.classes[k]] = level


def _keep_slack(space: Workspace) -> None:
    size = space.tableau.size
    classes, groups = size[0], size[1]
    size[0], size[1] = 0, 0
    for k in range(classes):
        if space.slack_class[k] == 1:
            space.classes[size[0]] = space.classes[k]
            size[0] += 1
    for h in range(groups):
        if space.slack_group[h] == 1:
            space.groups[size[1]] = space.groups[h]
            size[1] += 1
