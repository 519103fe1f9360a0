"""Bound from below what any push policy can reach on a random system: its mean number in system.

    python tools/push_floor.py 1 192 32,10,6 30,3,6    # seed, number, most tasks by class, machine

A push policy sends each task when it arrives, and the machines serve their queues in order. So the
expected response of a task is known when it is sent: the work on the machine and its execution. The
mean number is the sum of these per time unit. Here a task costs this when it is sent, whatever the
machine does then: it may serve its tasks in any order, and interrupt them. A task that is sent
where as many of its class are as ``most`` says costs as much, and vanishes: those behind it can
only gain. Every push policy can be imitated under these rules at no greater cost, so the least cost
is a bound. Execution times are exponential.

The least cost is found by value iteration over the numbers of tasks [class, machine]. After every
step it lies between the least and the largest change of a value, so it is a bound at any time.
"""

import argparse
from typing import Any

import numba
import numpy as np

from gridwright.experiments.families import INCONSISTENT, random_systems
from gridwright.experiments.gaps import SMALL

PRECISION = 0.002
STEPS = 100_000


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def step(arrivals: Any, each: Any, most: Any, old: Any, new: Any) -> tuple[float, float]:
    """Do one step of value iteration; return the least and largest change per time unit."""
    classes, machines = each.shape
    strides, size = np.empty((classes, machines), np.int64), 1
    for i in range(classes):
        for j in range(machines):
            strides[i, j] = size
            size *= most[i, j] + 1
    pace = arrivals.sum()
    for j in range(machines):
        pace += 1.0 / each[:, j].min()
    there, work = np.zeros((classes, machines), np.int64), np.zeros(machines)
    low, high = np.inf, -np.inf
    for k in range(size):
        change = 0.0
        for j in range(machines):
            work[j] = 0.0
            for i in range(classes):
                work[j] += there[i, j] * each[i, j]
        for i in range(classes):
            least = np.inf
            for j in range(machines):
                cost = work[j] + each[i, j]
                if there[i, j] < most[i, j]:
                    cost += old[k + strides[i, j]] - old[k]
                least = min(least, cost)
            change += arrivals[i] * least
        for j in range(machines):
            least = np.inf
            for i in range(classes):
                if there[i, j] > 0:
                    least = min(least, (old[k - strides[i, j]] - old[k]) / each[i, j])
            if least < np.inf:
                change += least
        low, high = min(low, change), max(high, change)
        new[k] = old[k] + change / pace
        for i in range(classes):
            for j in range(machines):
                if there[i, j] < most[i, j]:
                    there[i, j] += 1
                    break
                there[i, j] = 0
            else:
                continue
            break
    return low, high


def floor(arrivals: Any, each: Any, most: Any, steps: int = STEPS) -> tuple[float, float]:
    """Return a bound on the mean number from below, and the bound that more steps could give."""
    arrivals, each = np.asarray(arrivals, float), np.asarray(each, float)
    most = np.asarray(most, np.int64)
    old = np.zeros(int(np.prod(most + 1)))
    new, best, limit = old.copy(), 0.0, np.inf
    for _ in range(steps):
        low, high = step(arrivals, each, most, old, new)
        best, limit = max(best, low), min(limit, high)
        if limit - best < PRECISION * best:
            break
        old, new = new - new[0], old
    return best, limit


def main() -> None:
    """Bound the mean number of one system of ``gridwright research gaps``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int)
    parser.add_argument("most", nargs="+", help="most tasks of a class on each machine: 32,10,6")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    *_, system = random_systems(given.number, given.seed, INCONSISTENT, **SMALL)
    most = [[int(each) for each in row.split(",")] for row in given.most]
    if np.shape(most) != system.shape:
        parser.error(f"{system.name} has {system.shape[0]} classes on {system.shape[1]} machines")
    low, high = floor(system.arrival_rates, 1.0 / system.effective, most, given.steps)
    print(f"{system.name}: no push policy has a mean number below {low:.3f}", end="; ")
    print(f"more steps would not raise this above {high:.3f}")


if __name__ == "__main__":
    main()
