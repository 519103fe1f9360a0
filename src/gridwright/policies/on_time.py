"""Compute how likely tasks are to be on time, and pick the tasks of each machine by it.

A pmf of when a machine is done is cut at the last deadline: whatever is later is late.
"""

from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .view import MOST_TOP, BatchView

NEVER = 1e-12
"""Probabilities below this count as 0."""

Floats = NDArray[np.float64]


def convolve(a: Floats, la: int, b: Floats, lb: int, out: Floats, most: int) -> int:
    """Write the first bins of the pmf of the sum of two times; return how many there are."""
    n = min(la + lb - 1, most)
    for k in range(n):
        out[k] = 0.0
    for i in range(min(la, n)):
        x = a[i]
        if x != 0.0:
            for k in range(min(lb, n - i)):
                out[i + k] += x * b[k]
    return n


def residual(view: BatchView, machine: int, out: Floats) -> int:
    """Write the pmf of the running task's finish, given that it still runs; return its bins.

    It begins at the machine's anchor: when the task began, or now where nothing runs, or where it
    should be done by all that is believed.
    """
    m = view.machines[machine]
    out[0], m.anchor = 1.0, view.now
    if m.serving < 0:
        return 1
    pmf, n = view.mass[m.serving, machine], view.bins[m.serving, machine]
    past = floor((view.now - m.begun) / view.width + 1e-9)
    total = 0.0
    for k in range(past + 1, n):
        total += pmf[k]
    if total <= NEVER:
        return 1
    m.anchor = m.begun
    for k in range(n):
        out[k] = pmf[k] / total if k > past else 0.0
    return n


def foresee(view: BatchView, machine: int) -> None:
    """Write the pmf of when a machine will have done all tasks that it holds."""
    m, done = view.machines[machine], view.done[machine]
    most = len(done)
    n = residual(view, machine, done)
    for place in range(1 if m.serving >= 0 else 0, m.queued):
        i = view.queue[machine, place].task_class
        if view.queue[machine, place].deadline == np.inf:
            continue  # nobody has a deadline, and nobody asks
        n = convolve(done, n, view.mass[i, machine], view.bins[i, machine], view.room[0], most)
        for k in range(n):
            done[k] = view.room[0, k]
    m.bins = n


def condition(view: BatchView, machine: int) -> None:
    """Write the same pmf given that all these tasks are on time, and how likely that is."""
    m, given = view.machines[machine], view.given[machine]
    m.odds, m.missed = 1.0, 0
    n = residual(view, machine, given)
    for place in range(m.queued):
        held = view.queue[machine, place]
        if held.deadline == np.inf:
            continue
        if place > 0 or m.serving < 0:
            pmf, bins = view.mass[held.task_class, machine], view.bins[held.task_class, machine]
            n = convolve(given, n, pmf, bins, view.room[0], len(given))
            for k in range(n):
                given[k] = view.room[0, k]
        p, n = cut(given, n, last_bin(view, m.anchor, held.deadline))
        if p > 0.0:
            m.odds *= p
        else:
            m.missed += 1
    m.given = n


def cut(pmf: Floats, n: int, last: int) -> tuple[float, int]:
    """Condition a pmf on its first bins; return how likely they are, 0 and no change for never."""
    p = 0.0
    for k in range(min(n, last + 1)):
        p += pmf[k]
    if p <= NEVER:
        return 0.0, n
    n = min(n, last + 1)
    for k in range(n):
        pmf[k] /= p
    return p, n


def last_bin(view: BatchView, anchor: float, deadline: float) -> int:
    """Return the last bin of a pmf that is not after a deadline."""
    return floor((deadline - anchor) / view.width + 1e-9)


def probability(
    view: BatchView, task_class: int, machine: int, deadline: float, pmf: Floats, n: int
) -> float:
    """Return how likely a task is on time if its start has the given pmf."""
    if deadline == np.inf:
        return 1.0
    last = last_bin(view, view.machines[machine].anchor, deadline)
    cdf, bins = view.cdf[task_class, machine], view.bins[task_class, machine]
    p = 0.0
    for k in range(min(n, last + 1)):
        if pmf[k] != 0.0:
            p += pmf[k] * (cdf[last - k] if last - k < bins else 1.0)
    return p


def weigh(waiting: Any, view: BatchView, machine: int, joint: bool) -> None:
    """Write how likely every waiting task would be on time if a machine took it next.

    Joint: the task and all that the machine holds already.
    """
    m = view.machines[machine]
    if joint:
        condition(view, machine)
        pmf, n, factor = view.given[machine], m.given, m.odds
    else:
        foresee(view, machine)
        pmf, n, factor = view.done[machine], m.bins, 1.0
    for k in range(len(waiting)):
        task = waiting[k]
        i, p = task.task_class, 0.0
        if task.machine == -1 and task.deadline > view.now and view.bins[i, machine] > 0:
            p = factor * probability(view, i, machine, task.deadline, pmf, n)
        view.chance[k, machine] = p


def best_first(waiting: Any, view: BatchView, machine: int) -> int:
    """Return the first task of the best order of a machine's candidates."""
    count = view.machines[machine].picked
    if count < 2:
        return view.best[machine, 0]
    condition(view, machine)
    for k in range(count):
        view.order[k] = k
    first, most = 0, -1.0
    while True:
        worth = worth_of(waiting, view, machine, count)
        if worth > most + NEVER:
            first, most = view.order[0], worth
        if not next_order(view.order, count):
            return view.best[machine, first]


def worth_of(waiting: Any, view: BatchView, machine: int, count: int) -> float:
    """Return ρ (n − m): the on-time expectation of what a machine holds and candidates in order."""
    m = view.machines[machine]
    rho, missed = m.odds, m.missed
    pmf, n = view.given[machine], m.given
    for place in range(count):
        task = waiting[view.best[machine, view.order[place]]]
        i, deadline = task.task_class, task.deadline
        if place == count - 1 or deadline == np.inf:
            p = probability(view, i, machine, deadline, pmf, n)
        else:
            p, n = extend(view, i, machine, deadline, pmf, n, view.room[place % 2])
            pmf = view.room[place % 2]
        if p > NEVER:
            rho *= p
        else:
            missed += 1
    return rho * (m.queued + count - missed)


def extend(
    view: BatchView,
    task_class: int,
    machine: int,
    deadline: float,
    pmf: Floats,
    n: int,
    out: Floats,
) -> tuple[float, int]:
    """Write the pmf of when a further task is done, given that it is on time if it can be."""
    own, bins = view.mass[task_class, machine], view.bins[task_class, machine]
    last = last_bin(view, view.machines[machine].anchor, deadline)
    p, m = cut(out, convolve(pmf, n, own, bins, out, min(last + 1, len(out))), last)
    if p > 0.0:
        return p, m
    return 0.0, convolve(pmf, n, own, bins, out, len(out))


def next_order(order: NDArray[np.int64], count: int) -> bool:
    """Turn a permutation into the next one; return whether there is one."""
    k = count - 2
    while k >= 0 and order[k] > order[k + 1]:
        k -= 1
    if k < 0:
        return False
    other = count - 1
    while order[other] < order[k]:
        other -= 1
    order[k], order[other] = order[other], order[k]
    low, high = k + 1, count - 1
    while low < high:
        order[low], order[high] = order[high], order[low]
        low, high = low + 1, high - 1
    return True


ALIKE = 1e-9
"""Probabilities that differ less are a tie, which the sooner machine wins."""


def pick_candidates(waiting: Any, view: BatchView, threshold: float, top: int) -> bool:
    """Write the best tasks of every machine with room; return whether there are any.

    A task is a candidate for the machine where it is most likely on time, if that is above the
    threshold.
    """
    for j in range(len(view.machines)):
        view.machines[j].picked = 0
    found = False
    for k in range(len(waiting)):
        if waiting[k].machine == -1 and waiting[k].deadline > view.now:
            j = likeliest(waiting, view, k)
            if view.chance[k, j] > threshold and view.machines[j].free > 0:
                enter(waiting, view, k, j, min(top, MOST_TOP))
                found = True
    return found and top > 0


def likeliest(waiting: Any, view: BatchView, place: int) -> int:
    """Return the machine where a waiting task is most likely on time, the sooner one of equals."""
    i = waiting[place].task_class
    best, most = 0, view.chance[place, 0]
    for j in range(1, len(view.machines)):
        p = view.chance[place, j]
        if p > most + ALIKE or (p > most - ALIKE and is_sooner(view, i, j, best)):
            best, most = j, p
    return best


def is_sooner(view: BatchView, task_class: int, one: int, other: int) -> bool:
    """Tell whether a task is expected to be done sooner on one machine than on another."""
    first = view.machines[one].ready + view.mean[task_class, one]
    return first < view.machines[other].ready + view.mean[task_class, other]


def enter(waiting: Any, view: BatchView, place: int, machine: int, top: int) -> None:
    """Put a task among the best of a machine, if it is one of them; the older one of equals."""
    m, best = view.machines[machine], view.best[machine]
    p = view.chance[place, machine]
    at = m.picked
    if at < top:
        m.picked += 1
    else:
        at = top - 1
        if p <= view.chance[best[at], machine] + ALIKE:
            return
    while at > 0 and view.chance[best[at - 1], machine] + ALIKE < p:
        best[at] = best[at - 1]
        at -= 1
    best[at] = place
