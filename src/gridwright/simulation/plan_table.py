"""The allocation LP of every situation that failures can lead to, solved before the runs.

On a GPU, threads that run in step wait for the one that solves an LP. Of the machines of a group
with equal availability, only the number that are up matters. So there are far fewer situations than
sets of machines. If many runs will meet them, all are solved here, and the runs look them up.
"""

from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import Situation, make_workspace
from ..allocation.bottlenecks import optimum
from ..allocation.simplex import FAILED
from ..allocation.workspace import sum_up, totals
from ..compiler.link import allocates_nothing, link
from .planning import Floats, Planning

Integers = NDArray[np.int64]

MOST_NUMBERS = 1 << 26
"""The largest table, which is half a gigabyte."""
DEAR = 8
"""A core solves a situation in the time in which a GPU makes about so many plans."""
EXACT = 2.0**20
"""Sums of availabilities that are multiples of one part in so many are exact, in any order."""


def with_answers(now: Situation, planning: Planning, plans: float, cores: int) -> Planning | None:
    """Return the arrays of a planner with the solutions of all situations.

    ``now`` is the situation in which all machines are up. None if there are too many others, in all
    or for so many plans, or if sums could depend on which of several machines are up.
    """
    room, up = planning.room, now.availability
    pairs = np.column_stack([now.group, up])
    kinds, kind, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    is_exact = len(kinds) == len(room.capacity) or (up * EXACT == np.rint(up * EXACT)).all()
    situations = prod((counts + 1).tolist())
    numbers = room.time.size + 2 * len(room.capacity) + 2 * len(room.level)
    is_small = situations * numbers <= MOST_NUMBERS and situations * DEAR <= plans * cores
    if not (is_exact and is_small and (up > 0.0).all()):
        return None
    steps = np.cumprod([1, *(counts[:-1] + 1)])
    answers, place = np.zeros((situations, numbers)), steps[kind.reshape(-1)]
    solve: Any = link(solve_all)

    def solve_some(first: int) -> bool:
        mine = planning._replace(room=make_workspace(now), answers=answers, place=place)
        mine.room.tableau.known[:] = room.tableau.known
        scratch = now._replace(availability=up.copy())
        last = min(first + each, situations)
        return bool(solve(scratch, mine, up, kind.reshape(-1), steps, counts + 1, first, last))

    each = -(-situations // cores)
    solve_some(situations)  # it compiles here, in one thread
    with ThreadPoolExecutor(cores) as pool:
        solved = list(pool.map(solve_some, range(0, situations, each)))
    totals(now, room)  # the rates stay as they are
    return planning._replace(answers=answers, place=place) if all(solved) else None


@allocates_nothing
def solve_all(
    now: Situation,
    planning: Planning,
    availability: Floats,
    kind: Integers,
    steps: Integers,
    sizes: Integers,
    first: int,
    last: int,
) -> bool:
    """Solve the situations from one number to another; tell whether each has a solution.

    ``availability`` is that of machines that are up, [machine]; ``kind`` is [machine]; ``sizes`` is
    [kind], one more than there are machines; ``now`` is overwritten.
    """
    up = now.availability
    for number in range(first, last):
        for j in range(len(up)):
            up[j] = 0.0
        for k in range(len(sizes)):
            left = number // steps[k] % sizes[k]
            for j in range(len(up)):
                if kind[j] == k and left > 0:
                    up[j] = availability[j]
                    left -= 1
        if optimum(now, planning.room) == FAILED:
            return False
        _note(planning, number)
    return True


def _note(planning: Planning, number: int) -> None:
    """Keep the solution that is in the workspace as that of a situation."""
    room, answers = planning.room, planning.answers
    classes, groups = room.time.shape
    k = 0
    for g in range(groups):
        answers[number, k], answers[number, k + 1] = room.capacity[g], room.group_level[g]
        k += 2
    for i in range(classes):
        answers[number, k], answers[number, k + 1] = room.load[i], room.level[i]
        k += 2
        for g in range(groups):
            answers[number, k] = room.time[i, g]
            k += 1


@allocates_nothing
def looked_up(now: Situation, planning: Planning) -> bool:
    """Write the solution of a situation into the workspace, as solving it would."""
    room, answers = planning.room, planning.answers
    number = 0
    for j in range(len(planning.place)):
        if now.availability[j] > 0.0:
            number += planning.place[j]
    classes, groups = room.time.shape
    k = 0
    for g in range(groups):
        room.capacity[g], room.group_level[g] = answers[number, k], int(answers[number, k + 1])
        k += 2
    for i in range(classes):
        room.load[i], room.level[i] = answers[number, k], int(answers[number, k + 1])
        k += 2
        for g in range(groups):
            room.time[i, g] = answers[number, k]
            k += 1
    sum_up(now, room)
    return True
