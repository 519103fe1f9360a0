"""Candidates for machines: the tasks that are most likely to be on time there."""

from typing import Any

from .batch_view import MOST_TOP, BatchView

__all__ = ["likeliest", "pick_candidates"]

ALIKE = 1e-9
"""Probabilities that differ less are a tie, which the sooner machine wins."""


def pick_candidates(waiting: Any, view: BatchView, threshold: float, top: int) -> bool:
    """Write down the best tasks of every machine with room; tell whether there are any.

    Every task stands for the machine where it is most likely on time, if that is likelier than
    the threshold.
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
