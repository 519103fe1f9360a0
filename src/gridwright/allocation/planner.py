"""Planners: from a situation to an allocation [class, machine], where 0 means never."""

from collections.abc import Callable
from math import inf, log
from typing import Any, TypeVar, cast

import numpy as np

from ..compiler.link import allocates_nothing
from .bottlenecks import close
from .highs import check_time, solve_general, solve_interior
from .price import efficiency, set_prices
from .simplex import FAILED, Floats, Tableau, is_clear, keep
from .simplex import solve as simplex
from .split import marginal, set_tolls, split
from .workspace import (
    ANY,
    CHANGED,
    MOVED,
    NEGLIGIBLE,
    Situation,
    Workspace,
    block_of,
    make_workspace,
    may_differ,
    totals,
)

Function = TypeVar("Function", bound=Callable[..., Any])

LARGE = 500_000
"""About a microsecond each: a problem that takes more steps is worth loading the compiler for."""
HUGE = 300_000_000
"""Steps from which on HiGHS is quicker than our simplex: about 100 classes on 100 groups."""
MOST_BITS = 62
"""Simulations have at most so many classes; what is told by bits counts for no others."""
MOST_CLASSES = 5_000
"""A workspace grows with the square of the number of classes: 5,000 take about a gigabyte."""


def vertex(situation: Situation) -> Floats:
    """Plan with a basic solution at machine level: at most classes + machines − 1 non-zeros.

    Source: Al-Azzoni 2009, chapter 3; the machines of a group are filled class by class in order
    (north-west corner).
    """
    return _plan(situation, fill)


def grouped(situation: Situation) -> Floats:
    """Plan with the solution on groups: machines with equal rates share their allocation alike.

    Source: Al-Azzoni 2009, chapter 2, Systems 2.C1 and 2.C2.
    """
    return _plan(situation, spread)


def interior(situation: Situation) -> Floats:
    """Plan with the solution of an interior-point method: every pair that an optimum may use.

    Source: Al-Azzoni 2009, section 3.4.4 and Table 3.14, "modified" LPAS_DG.
    """
    space, plan = make_workspace(situation), np.empty(situation.rates.shape)
    solve_interior(situation, space, solve(situation, space))
    spread(situation, space, plan)
    return plan


def prices(situation: Situation, power: float = 2.0) -> Floats:
    """Plan with the weights of the pairs whose efficiency is at least load ** power.

    With power 0 these are the pairs that an optimum may use; with 1, machines that work on none
    but these can still carry the load, whichever of them they work on; 2 is a little more generous.
    """
    return _plan(situation, permit, power)


def weights(situation: Situation) -> Floats:
    """Plan with weights: from 0 for a pair that wastes the machine to 1 for one in an optimum.

    The weight of a pair is efficiency ** log(1 / (1 − load)): when there is little to do it hardly
    matters what a pair wastes, and the closer the load is to 1 the more it does.
    """
    return prices(situation, power=np.inf)


def steady(situation: Situation) -> Floats:
    """Plan with weights that do not jump where a little more of one class changes all prices.

    The efficiency of a pair is a geometric mean of two: by the prices of the allocation, and by
    what one more task adds to the mean number under a static split of the arrivals. If n machines
    are up, the second has the weight 1/n: the more there are, the less a static split says.
    """
    return _plan(situation, moderate)


def tolls(situation: Situation, toll: float = 1.0) -> Floats:
    """Plan with the weights, divided by what a time unit on a machine costs all tasks.

    That is 1 for the task itself and, times ``toll``, what tasks lose that come until the machine
    is free again, under a static split of the arrivals: those that find another machine free lose
    the longer execution there, and the others wait.
    """
    return _plan(situation, charge, toll)


def _plan(situation: Situation, write: Callable[..., None], *parameters: float) -> Floats:
    """Solve a situation, and write the plan that follows from the solution."""
    space, plan = make_workspace(situation), np.empty(situation.rates.shape)
    solve(situation, space)
    suited(write, space, _smallest)(situation, space, plan, *parameters)
    return plan


def solve(situation: Situation, space: Workspace) -> float:
    """Solve a situation of any size and scale; the solution is in the workspace."""
    best: Callable[[Tableau], float] = solve_general
    if steps(space) <= HUGE:
        best = suited(simplex, space, _smallest)
    if not (situation.availability > 0.0).all():
        set_reference(situation, space)
    finish = suited(close, space)
    suited(totals, space)(situation, space)
    capacities: list[float] = []
    while space.tableau.size[0] > 0:
        check_time()
        capacity = best(space.tableau)
        if capacity == FAILED:
            capacity = solve_general(space.tableau)
        capacities.append(float(capacity))
        finish(situation, space, capacity, len(capacities) - 1)
    return capacities[0] if capacities else 0.0


def set_reference(situation: Situation, space: Workspace) -> None:
    """Make plans in a workspace begin with an optimal basis of all machines up, if there are many.

    A machine that is down counts as much as those of its group that are up, or as a whole one.
    """
    if steps(space) > HUGE:
        return
    up, group = situation.availability, situation.group
    running = np.bincount(group, up > 0.0)
    mean = np.where(running > 0, np.bincount(group, up) / np.maximum(running, 1), 1.0)
    all_up = situation._replace(availability=np.where(up > 0.0, up, mean[group]))
    suited(totals, space)(all_up, space)
    t = space.tableau
    whole = tuple(t.size) == space.rates.shape
    if whole and suited(simplex, space, _smallest)(t) != FAILED and not is_clear(t):
        keep(t, len(t.known) - 1)


_smallest = LARGE
"""The fewest steps for which this process compiles the simplex, and planners."""


MANY_PLANS = 500
"""Plans that it pays to compile the simplex for."""


def compile_simplex() -> None:
    """Compile the simplex now, and planners when they are used, for plans of any size.

    This pays if the process makes many plans. If compiling fails, plans are made as before.
    """
    global _smallest
    before, _smallest = _smallest, 0
    one = Situation(np.ones((1, 1)), np.ones(1), np.ones(1), np.arange(1))
    try:
        solve(one, make_workspace(one))
    except Exception:
        _smallest = before
        raise


def steps(space: Workspace) -> int:
    """Return about how many steps our simplex takes."""
    classes, groups = space.rates.shape
    return (classes**3 + classes * groups) * (classes + groups)


def suited(function: Function, space: Workspace, large: int = HUGE) -> Function:
    """Return a function, compiled if the problem is large enough for that to pay."""
    if steps(space) <= large:
        return function
    from ..compiler.link import link

    return cast(Function, link(function))


@allocates_nothing
def spread(situation: Situation, space: Workspace, plan: Floats) -> None:
    """Give every machine its group's allocation in proportion to its availability."""
    classes, machines = situation.rates.shape
    for j in range(machines):
        g, share = situation.group[j], situation.availability[j]
        for i in range(classes):
            plan[i, j] = space.time[i, g] * share / space.capacity[g] if share > 0.0 else 0.0


@allocates_nothing
def fill(situation: Situation, space: Workspace, plan: Floats) -> None:
    """Fill the machines of every group one after the other, class by class.

    Only blocks of machines are looked at that have changed since the last plan in this workspace,
    or that do not belong to one class as before. The machines that get other classes than before
    are written down, unless any may have changed.
    """
    classes, groups = space.time.shape
    space.news[MOVED] = ANY if space.news[CHANGED] == ANY else 0
    for g in range(groups):
        i, wanted = 0, space.time[0, g]
        for b in range(space.block[g], space.block[g + 1]):
            while i < classes and not wanted > 0.0:
                i += 1
                wanted = space.time[i, g] if i < classes else 0.0
            first, last = block_of(space, g, b)
            if i < classes and wanted < space.sums[b] * (1.0 - NEGLIGIBLE):
                space.whole[b] = -1
                i, wanted = _fill_some(situation, space, plan, g, first, last, i, wanted)
                continue
            if space.whole[b] != i or may_differ(space, first, last):
                space.whole[b] = i
                _fill_some(situation, space, plan, g, first, last, i, inf)
            wanted = wanted - space.sums[b] if wanted > space.sums[b] * (1.0 + NEGLIGIBLE) else 0.0


def _fill_some(
    situation: Situation,
    space: Workspace,
    plan: Floats,
    g: int,
    first: int,
    last: int,
    i: int,
    wanted: float,
) -> tuple[int, float]:
    """Fill some machines of a group, from a class on; return the next class, and what it wants."""
    classes = len(space.time)
    for k in range(first, last):
        j = space.member[k]
        left, support = situation.availability[j], 0
        least = NEGLIGIBLE * left
        for other in range(classes):
            plan[other, j] = 0.0
        while i < classes and left > least:
            if wanted > 0.0:
                support |= 1 << min(i, MOST_BITS)
            if wanted > left * (1.0 + NEGLIGIBLE):
                plan[i, j] = left
                wanted -= left
                left = 0.0
            else:
                if wanted > 0.0:
                    plan[i, j] = wanted if wanted < left else left
                    left -= wanted
                i += 1
                wanted = space.time[i, g] if i < classes else 0.0
        if space.support[j] != support:
            space.support[j] = support
            if space.news[MOVED] >= 0:
                space.moved[space.news[MOVED]] = j
                space.news[MOVED] += 1
    return i, wanted


@allocates_nothing
def permit(situation: Situation, space: Workspace, plan: Floats, power: float) -> None:
    """Set prices, and weigh the pairs that are efficient enough for the load."""
    set_prices(situation, space)
    classes, groups = space.rates.shape
    for i in range(classes):
        load = _load(space, i)
        least, exponent = load**power - NEGLIGIBLE, -log(max(1.0 - load, NEGLIGIBLE))
        for g in range(groups):
            earned = efficiency(space, i, g)
            space.weight[i, g] = earned**exponent if earned > 0.0 and earned >= least else 0.0
    for i in range(classes):
        for j in range(situation.rates.shape[1]):
            up = situation.availability[j] > 0.0
            plan[i, j] = space.weight[i, situation.group[j]] if up else 0.0


def _load(space: Workspace, i: int) -> float:
    """Return the load of the machines that a class is left to, at most 1."""
    return min(space.load[space.level[i]], 1.0) if space.level[i] >= 0 else 1.0


@allocates_nothing
def moderate(situation: Situation, space: Workspace, plan: Floats) -> None:
    """Weigh the pairs by the prices, and by what one more task adds under a static split."""
    permit(situation, space, plan, inf)
    split(situation, space)
    classes, groups = space.rates.shape
    machines, up = situation.rates.shape[1], 0.0
    for g in range(groups):
        up += space.running[g]
    share = 1.0 / max(up, 1.0)
    for i in range(classes):
        least, exponent = inf, -log(max(1.0 - _load(space, i), NEGLIGIBLE))
        for g in range(groups):
            if space.weight[i, g] > 0.0 and space.capacity[g] > 0.0:
                sums = space.flow[g], space.busy[g], space.squares[g]
                space.toll[i, g] = marginal(space.each[i, g], *sums, 0.0)
                least = min(least, space.toll[i, g])
        for g in range(groups):
            if space.weight[i, g] > 0.0 and space.capacity[g] > 0.0:
                added = (least / space.toll[i, g]) ** exponent
                space.weight[i, g] = space.weight[i, g] ** (1.0 - share) * added**share
    for i in range(classes):
        for j in range(machines):
            if plan[i, j] > 0.0:
                plan[i, j] = space.weight[i, situation.group[j]]


@allocates_nothing
def charge(situation: Situation, space: Workspace, plan: Floats, toll: float) -> None:
    """Weigh the pairs, and divide by what a task on a machine costs itself and others.

    The tolls are those of a machine of mean availability. A slower one of its group pays less,
    because others lose less while it is busy; the higher the load, the less it pays.
    """
    permit(situation, space, plan, inf)
    split(situation, space)
    set_tolls(space)
    for j in range(situation.rates.shape[1]):
        g = situation.group[j]
        if situation.availability[j] > 0.0:
            speed = situation.availability[j] * space.running[g] / space.capacity[g]
            paid = toll * speed ** min(space.busy[g], 1.0)
            for i in range(len(space.time)):
                if plan[i, j] > 0.0:
                    plan[i, j] = space.weight[i, g] / (1.0 + paid * space.toll[i, g])
