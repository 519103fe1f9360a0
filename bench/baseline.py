"""What the simulator is measured against: the same push system under MCT, written three ways."""

import heapq
import random
import subprocess
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import simpy

from gridwright import System
from gridwright.compiler.link import link

__all__ = ["Run", "bare_draws", "best_of", "heapq_loop", "simpy_callbacks"]


Run = Callable[[], float]
"""A measurement: run something once and return its tasks per CPU second."""


def timed(run: Callable[[], int]) -> Run:
    """Measure a function that returns how many tasks it has done."""

    def measure() -> float:
        begin = process_time()
        tasks = run()
        return tasks / (process_time() - begin)

    return measure


def best_of(rounds: int, **runs: Run) -> dict[str, float]:
    """Run all in turn, several times over, and keep the best of each.

    In turn, because a shared machine is now fast and now slow, for all of them alike.
    """
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = max(best[name], run())
    return best


def heapq_loop(system: System, tasks: int = 40_000) -> Run:
    """Simulate with a heap of events, in plain Python."""
    arrivals, means = system.arrival_rates.tolist(), (1 / system.nominal).tolist()
    machines = range(len(means[0]))

    def run() -> int:
        draw = random.Random(1).expovariate
        events = [(draw(each), i, -1) for i, each in enumerate(arrivals)]
        heapq.heapify(events)
        work = [0.0] * len(machines)
        queues: list[list[int]] = [[] for _ in machines]
        busy = [False] * len(machines)
        left = 0
        while left < tasks:
            now, i, j = heapq.heappop(events)
            if j < 0:
                heapq.heappush(events, (now + draw(arrivals[i]), i, -1))
                row = means[i]
                best = min(machines, key=lambda k: work[k] + row[k])
                work[best] += row[best]
                if busy[best]:
                    queues[best].append(i)
                else:
                    busy[best] = True
                    heapq.heappush(events, (now + draw(1 / row[best]), i, best))
            else:
                left += 1
                work[j] -= means[i][j]
                if queues[j]:
                    following = queues[j].pop(0)
                    heapq.heappush(events, (now + draw(1 / means[following][j]), following, j))
                else:
                    busy[j] = False
        return tasks

    return timed(run)


def simpy_callbacks(system: System, tasks: int = 20_000) -> Run:
    """Simulate with SimPy in its fastest style: timeouts with callbacks, no processes."""
    arrivals, means = system.arrival_rates.tolist(), (1 / system.nominal).tolist()
    machines = range(len(means[0]))

    def run() -> int:
        environment = simpy.Environment()
        draw = random.Random(1).expovariate
        work = [0.0] * len(machines)
        queues: list[list[int]] = [[] for _ in machines]
        busy = [False] * len(machines)
        done = environment.event()
        left = 0

        def later(delay: float, call: Callable[..., None], *arguments: Any) -> None:
            environment.timeout(delay).callbacks.append(lambda _: call(*arguments))

        def arrive(i: int) -> None:
            later(draw(arrivals[i]), arrive, i)
            row = means[i]
            best = min(machines, key=lambda k: work[k] + row[k])
            work[best] += row[best]
            if busy[best]:
                queues[best].append(i)
            else:
                busy[best] = True
                later(draw(1 / row[best]), leave, i, best)

        def leave(i: int, j: int) -> None:
            nonlocal left
            left += 1
            work[j] -= means[i][j]
            if queues[j]:
                following = queues[j].pop(0)
                later(draw(1 / means[following][j]), leave, following, j)
            else:
                busy[j] = False
            if left == tasks:
                done.succeed()

        for i in range(len(arrivals)):
            later(draw(arrivals[i]), arrive, i)
        environment.run(until=done)
        return tasks

    return timed(run)


def draw_pairs(rng: np.random.Generator, count: int) -> float:
    """Draw pairs of exponentials."""
    total = 0.0
    for _ in range(count):
        total += rng.standard_exponential() + rng.standard_exponential()
    return total


PROCESSES = 8


def bare_draws() -> tuple[float, float]:
    """Return the least and the greatest speed of drawing a run's random numbers, and no more.

    Each process has the same machine code at another place, and on some computers that alone
    makes it faster or slower by half: so several are asked.
    """
    command = [sys.executable, "-c", "from bench.baseline import draws; print(draws())"]
    said = [subprocess.check_output(command, text=True) for _ in range(PROCESSES)]
    found = sorted(map(float, said))
    return found[0], found[-1]


def draws(tasks: int = 3_000_000) -> float:
    """Draw two exponentials a task; return tasks per CPU second, the best of five."""
    draw, rng = link(draw_pairs), np.random.default_rng(1)
    draw(rng, 1)

    def run() -> int:
        draw(rng, tasks)
        return tasks

    measure = timed(run)
    return max(measure() for _ in range(5))
