"""A situation to plan for, and the arrays in which planners work.

The functions are plain Python that also compiles. They work in arrays that the caller makes, so
that the same code plans at a prompt and inside a compiled loop.
"""

from typing import NamedTuple

import numpy as np

from ..compiler.link import allocates_nothing, shared
from .simplex import BASES, ROW, Floats, Integers, Tableau

NEGLIGIBLE = 1e-9
"""An allocation that is less than this share both of the group's time and of the class's work is
rounding, and becomes 0."""
ANY, NONE = -1, -2
"""Every machine may have changed since the last plan; none has."""
CHANGED, MOVED = 0, 1
"""Places of ``Workspace.news``."""
BLOCK = 32
"""Machines of a group that are summed up together, so that a change concerns few of them."""


class Situation(NamedTuple):
    """The rates and arrivals that a planner plans for, and the machines available now."""

    rates: Floats  # nominal, [class, machine]
    arrivals: Floats  # [class]
    availability: Floats  # [machine], 0 where it is down
    group: Integers  # [machine], equal where the rates are equal, numbered from 0


@shared
class Workspace(NamedTuple):
    """Arrays to solve a situation in, and its solution on groups."""

    rates: Floats  # nominal, [class, group]
    capacity: Floats  # [group], availability of the group's machines together
    classes: Integers  # the classes of the problem at hand
    groups: Integers  # the groups of the problem at hand
    slack_class: Integers  # of those: 1 if it does not limit the capacity
    slack_group: Integers
    tableau: Tableau  # the LP of the problem at hand
    time: Floats  # [class, group], machine time given to the class
    level: Integers  # [class], −1 for one that does not arrive or that nothing up can run
    group_level: Integers  # [group], −1 for one that is down or has nothing to run
    load: Floats  # [level], 1/λ*
    price: Floats  # [class], worth of one task per time unit: Σ price × arrivals = 1 in every part
    worth: Floats  # [group], of one machine's time
    part: Integers  # [class], the classes and groups whose prices can be compared
    group_part: Integers  # [group]
    weight: Floats  # [class, group], of a pair: its efficiency, counted as the load demands
    most: Floats  # [class, class], scratch: by how much prices may differ
    running: Floats  # [group], how many of its machines are up
    each: Floats  # [class, group], mean execution time on one of mean availability
    flow: Floats  # [group], tasks that come to a machine in a time unit, under the static split
    busy: Floats  # [group], their work
    squares: Floats  # [group], the mean squares of their work
    toll: Floats  # [class, group], what others lose in a time unit of a pair
    full: Floats  # [group], how likely all its machines are busy
    others: Floats  # [group], how likely all but one are
    order: Integers  # [class, group], scratch: the groups that can run a class, the fastest first
    member: Integers  # the machines, group by group
    begin: Integers  # [group + 1], where its machines begin in ``member``
    support: Integers  # [machine], the classes that ``fill`` gave it, as bits
    moved: Integers  # [machine], those whose support ``fill`` has changed
    news: Integers  # [2], the machine that has changed since the last plan, and how many moved
    place: Integers  # [machine], where it stands in ``member``
    block: Integers  # [group + 1], the first of the blocks of its machines
    sums: Floats  # [block], availability of its machines together
    whole: Integers  # [block], the class that ``fill`` gave all of it, −1 for several


def make_workspace(situation: Situation) -> Workspace:
    """Make a workspace for situations with these classes and machines."""
    classes, groups = len(situation.arrivals), int(situation.group.max()) + 1
    member = np.argsort(situation.group, kind="stable")
    begin = np.searchsorted(situation.group[member], np.arange(groups + 1))
    blocks = np.cumsum([0, *(-(-np.diff(begin) // BLOCK))])
    return Workspace(
        rates=np.zeros((classes, groups)),
        capacity=np.zeros(groups),
        classes=np.zeros(classes, np.int64),
        groups=np.zeros(groups, np.int64),
        slack_class=np.zeros(classes, np.int64),
        slack_group=np.zeros(groups, np.int64),
        tableau=tableau(np.zeros((classes, groups))),
        time=np.zeros((classes, groups)),
        level=np.zeros(classes, np.int64),
        group_level=np.zeros(groups, np.int64),
        load=np.zeros(classes),
        price=np.zeros(classes),
        worth=np.zeros(groups),
        part=np.zeros(classes, np.int64),
        group_part=np.zeros(groups, np.int64),
        weight=np.zeros((classes, groups)),
        most=np.zeros((classes, classes)),
        running=np.zeros(groups),
        each=np.zeros((classes, groups)),
        flow=np.zeros(groups),
        busy=np.zeros(groups),
        squares=np.zeros(groups),
        toll=np.zeros((classes, groups)),
        full=np.zeros(groups),
        others=np.zeros(groups),
        order=np.zeros((classes, groups), np.int64),
        member=member,
        begin=begin,
        support=np.zeros(len(member), np.int64),
        moved=np.zeros(len(member), np.int64),
        news=np.full(2, ANY),
        place=np.argsort(member),
        block=blocks,
        sums=np.zeros(blocks[-1]),
        whole=np.full(blocks[-1], -1),
    )


def tableau(weights: Floats) -> Tableau:
    """Make a tableau for a problem with these weights."""
    classes, groups = weights.shape
    return Tableau(
        given=weights,
        size=np.array(weights.shape),
        weight=np.empty((groups, classes)),
        key=np.empty(groups, np.int64),
        matrix=np.empty((classes, 2 * classes)),
        row=np.empty(classes, ROW),
        known=np.full((BASES, classes + groups), -1),
        share=np.zeros((classes, groups)),
        first=np.full(groups, -1),
    )


@allocates_nothing
def totals(situation: Situation, space: Workspace) -> None:
    """Sum a situation up by groups; what can run now is the problem at hand.

    If one machine has changed since the last plan in this workspace, only its block is summed.
    """
    classes, groups = space.rates.shape
    size = space.tableau.size
    sum_up(situation, space)
    for g in range(groups):
        space.group_level[g] = -1
        for i in range(classes):
            space.time[i, g] = 0.0
    for i in range(classes):
        space.level[i] = -1
    size[0], size[1] = 0, 0
    for g in range(groups):
        if space.capacity[g] > 0.0:
            space.groups[size[1]] = g
            size[1] += 1
    for i in range(classes):
        runs = False
        for h in range(size[1]):
            runs = runs or space.rates[i, space.groups[h]] > 0.0
        if runs and situation.arrivals[i] > 0.0:
            space.classes[size[0]] = i
            size[0] += 1
    weigh(situation, space)


def sum_up(situation: Situation, space: Workspace) -> None:
    """Add the availabilities of each group's machines, which all have the same rates."""
    classes, groups = space.rates.shape
    for g in range(groups):
        if space.news[CHANGED] == ANY:
            for i in range(classes):
                space.rates[i, g] = situation.rates[i, space.member[space.begin[g]]]
        space.capacity[g] = 0.0
        for b in range(space.block[g], space.block[g + 1]):
            first, last = block_of(space, g, b)
            if may_differ(space, first, last):
                total = 0.0
                for k in range(first, last):
                    total += situation.availability[space.member[k]]
                space.sums[b] = total
            space.capacity[g] += space.sums[b]


def block_of(space: Workspace, g: int, b: int) -> tuple[int, int]:
    """Return where the machines of a block begin and end in ``member``."""
    first = space.begin[g] + (b - space.block[g]) * BLOCK
    return first, min(first + BLOCK, space.begin[g + 1])


def may_differ(space: Workspace, first: int, last: int) -> bool:
    """Tell whether one of these machines may have changed since the last plan."""
    changed = space.news[CHANGED]
    return bool(changed == ANY or (changed >= 0 and first <= space.place[changed] < last))


def weigh(situation: Situation, space: Workspace) -> None:
    """Write the problem at hand into the tableau, and the keys of the reference if they fit."""
    t = space.tableau
    classes, groups = t.size
    for h in range(groups):
        t.first[h] = -1
        if classes == len(space.rates):
            t.first[h] = t.known[len(t.known) - 1, classes + space.groups[h]]
    for k in range(classes):
        i = space.classes[k]
        for h in range(groups):
            g = space.groups[h]
            work = space.capacity[g] * space.rates[i, g]
            t.given[k, h] = work / situation.arrivals[i]
