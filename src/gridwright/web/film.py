"""A film of a simulation: where every task is at every time, as the page Learn shows it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..model import System
from ..policies import find
from ..simulation import replicate
from ..simulation.event_log import KINDS
from .documents import read_text, system_of

WAITS, GONE = -1, -2
"""Places that are no machine. The queue of machine j is the place 2j, its service 2j + 1."""
POINTS = 240
"""Points of the line that shows the number in the system."""
DIGITS = 5
KEPT = 64


def film(system: System, policy: str, end: float, seed: int) -> dict[str, Any]:
    """Simulate a system under a policy, and return what the browser needs to show it.

    A task is a list: its class, then the times at which its place changes, each with the new place.
    Films of one seed have the same arrivals. The loop runs in plain Python, so that nothing has to
    be compiled first.

    >>> system = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    >>> made = film(system, "met", 10.0, 1)
    >>> made["policy"], made["kind"], made["central"]
    ('met', 'push', False)
    >>> made["tasks"][0]
    [1, 0.00463, 3, 0.10988, -2]
    """
    return _film(system.to_toml(), policy, end, seed)


@lru_cache(maxsize=KEPT)
def _film(toml: str, policy: str, end: float, seed: int) -> dict[str, Any]:
    system, chosen = system_of(read_text(toml)), find(policy)
    run = replicate(
        system,
        chosen,
        horizon=end,
        seed=np.random.SeedSequence(seed),
        interpreted=True,
        trace=True,
    )
    tasks, down = _read(run.trace, end)
    return {
        "policy": policy,
        "kind": str(chosen.kind),
        "words": chosen.doc.split("\n")[0],
        "tasks": tasks,
        "down": down,
        "number": _numbers(tasks, end),
        "central": any(_waits(task) for task in tasks),
    }


def _read(trace: Any, end: float) -> tuple[list[list[float]], list[list[float]]]:
    """Return the tasks, and when machines are down (machine, start, end)."""
    tasks: dict[int, list[float]] = {}
    down: list[list[float]] = []
    for row in trace[np.argsort(trace["time"], kind="stable")]:
        time, kind, machine = (
            round(float(row["time"]), DIGITS),
            KINDS[row["kind"]],
            int(row["machine"]),
        )
        if kind == "arrival":
            tasks[int(row["task"])] = [int(row["task_class"]), time, WAITS]
        elif kind in ("assignment", "start", "finish", "loss", "interruption"):
            place = {
                "assignment": 2 * machine,
                "start": 2 * machine + 1,
                "finish": GONE,
                "loss": WAITS,
                "interruption": WAITS,
            }
            _move(tasks[int(row["task"])], time, place[kind])
        elif kind == "failure":
            down.append([machine, time, end])
        elif kind == "repair":
            next(each for each in reversed(down) if each[0] == machine)[2] = time
    return [tasks[number] for number in sorted(tasks)], down


def _move(task: list[float], time: float, place: int) -> None:
    """Note a change of place; of several at one time, the last counts."""
    if task[-2] == time and place != GONE:
        task[-1] = place
    else:
        task += [time, place]


def _waits(task: list[float]) -> bool:
    return WAITS in task[2::2]


def _numbers(tasks: list[list[float]], end: float) -> list[list[float]]:
    """Return the number in the system at regular times."""
    times = np.linspace(0, end, POINTS)
    arrived = np.sort([task[1] for task in tasks])
    left = np.sort([task[-2] for task in tasks if task[-1] == GONE])
    number = np.searchsorted(arrived, times, "right") - np.searchsorted(left, times, "right")
    return [[round(float(t), 3), int(n)] for t, n in zip(times, number, strict=True)]
