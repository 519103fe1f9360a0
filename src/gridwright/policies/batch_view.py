"""What a batch policy is shown: the tasks that wait, and the machines with what they hold."""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["CHOSEN", "HELD", "KIND", "LEFT", "MOST_TOP", "SLOT", "WAITING", "BatchView", "assign"]

MOST_TOP = 5
"""Tasks whose orders a policy may weigh for one machine: there are 120 orders of so many."""
LEFT = -2
"""The machine of a task that a policy has set aside at this mapping event."""

WAITING = np.dtype(
    [
        ("task_class", "i8"),
        ("arrival", "f8"),
        ("deadline", "f8"),  # infinite for none
        ("machine", "i8"),  # where it is assigned now, −1 for nowhere
        ("following", "i8"),  # the next of its class, −1 for none
    ],
    align=True,
)
KIND = np.dtype(
    [
        ("first", "i8"),  # the task of this class that has waited longest, −1 for none
        ("left", "i8"),  # a policy's own: the first it has not dealt with
        ("live", "i8"),  # a policy's own: the first of those that can still be on time
    ],
    align=True,
)
SLOT = np.dtype(
    [
        ("queued", "i8"),  # tasks there, the one that runs included
        ("free", "i8"),  # how many more it takes
        ("ready", "f8"),  # when it is expected to have done all of them
        ("serving", "i8"),  # the class that runs, −1 for none
        ("begun", "f8"),  # when that one began
        ("anchor", "f8"),  # when the pmfs of ``done`` and ``given`` begin
        ("bins", "i8"),  # how long the one of ``done`` is
        ("given", "i8"),  # and that of ``given``
        ("odds", "f8"),  # how likely all there are on time, those that cannot be left out
        ("missed", "i8"),  # how many of them cannot be
        ("picked", "i8"),  # a policy's own: candidates
    ],
    align=True,
)
HELD = np.dtype([("task_class", "i8"), ("deadline", "f8")], align=True)
CHOSEN = np.dtype([("place", "i8"), ("machine", "i8")], align=True)


class BatchView(NamedTuple):
    """The machines and the pmfs of the execution times as the scheduler believes them to be."""

    now: float
    machines: Any  # SLOT records [machine]
    classes: Any  # KIND records [class]
    queue: Any  # HELD records [machine, place]: what each machine holds, in order
    mean: NDArray[np.float64]  # mean execution time [class, machine]; infinite: cannot run it
    mass: NDArray[np.float64]  # pmf of it [class, machine, bin]
    cdf: NDArray[np.float64]  # [class, machine, bin]
    bins: NDArray[np.int64]  # [class, machine], how many bins of it there are
    after: NDArray[np.float64]  # [class, machine, bin]: mean of it, given that it is longer
    width: float  # of a bin
    chosen: Any  # CHOSEN records: the answer
    chance: NDArray[np.float64]  # [place, machine], room for probabilities
    done: NDArray[np.float64]  # [machine, bin], room: pmf of when all there is done
    given: NDArray[np.float64]  # [machine, bin], room: the same, given that all are on time
    room: NDArray[np.float64]  # [2, bin]
    best: NDArray[np.int64]  # [machine, MOST_TOP], room for candidates
    order: NDArray[np.int64]  # [MOST_TOP]
    memory: NDArray[np.float64]  # the policy's own scratch pad [class, machine], 0 at the start
    tally: NDArray[np.float64]  # what the policy counts for the result
    rng: Generator


def assign(waiting: Any, view: BatchView, count: int, place: int, machine: int) -> int:
    """Assign a waiting task to a machine, after so many others; return how many there are now."""
    task, m = waiting[place], view.machines[machine]
    task.machine = machine
    if m.queued < view.queue.shape[1]:
        held = view.queue[machine, m.queued]
        held.task_class = task.task_class
        held.deadline = task.deadline
    m.queued += 1
    m.free -= 1
    m.ready += view.mean[task.task_class, machine]
    answer = view.chosen[count]
    answer.place = place
    answer.machine = machine
    return count + 1
