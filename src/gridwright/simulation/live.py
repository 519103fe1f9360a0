"""Run the loop of a batch or chain system event by event, with ends of tasks from outside.

The loop decides, draws arrivals, and says how long a task should take. Whoever drives it runs the
task, on a real machine or in virtual time, and says when it has ended. So a live system decides
with the very code of the simulator.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..model import InputError, System
from ..policies import BATCH, CHAIN, Policy
from ..policies.view import records
from .chain_loop import TINY
from .driver import PAGE, Conditions, Mechanism, provide
from .event_log import EVENT, FAIL, KINDS, START
from .interrupts import SLICE
from .replicate import MECHANISMS, check_system


class Happened(NamedTuple):
    """An event of the loop; also how long a task that starts should take."""

    time: float
    kind: str
    """One of ``KINDS``."""
    task: int
    task_class: int
    machine: int
    length: float = 0.0


class LiveLoop:
    """The loop of a batch or chain system, which waits for the ends of its tasks.

    >>> from gridwright.policies import find
    >>> system = System(arrivals=[1.0], rates=[[2.0]], pmf={"width": 0.1})
    >>> loop = LiveLoop(system, find("mm"), horizon=50, seed=1, interpreted=True)
    >>> first = loop.upcoming()
    >>> [event.kind for event in loop.advance(first)]
    ['arrival', 'assignment', 'start']
    >>> loop.end(0, first + 0.2)
    >>> [event.kind for event in loop.advance(first + 0.2)][0]
    'finish'
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        *,
        horizon: float,
        seed: int,
        interpreted: bool = False,
    ) -> None:
        if policy.kind not in (BATCH, CHAIN):
            raise InputError(f"{policy.name} is a {policy.kind} policy; expected batch or chain")
        check_system(system, policy)
        self.horizon = horizon
        sequence = np.random.SeedSequence(seed)
        conditions = Conditions(horizon, sequence, trace=True, interpreted=interpreted)
        self.mechanism: Mechanism = MECHANISMS[policy.kind](system, policy, conditions)
        self.in_ticks = policy.kind is CHAIN
        """Whether everything happens at whole time units."""
        self.mechanism.replace(
            trace=records(PAGE + 2 * self.mechanism.events_per_step(self.mechanism.core), EVENT)
        )
        self.ends: dict[int, float] = {}
        """When tasks have ended that the loop does not know of yet, by machine."""
        self.ending: dict[int, int] = {}
        """Which tasks these are, by machine."""
        self.task: dict[int, int] = {}
        """What each machine runs."""
        self.runs: dict[int, list[int]] = {}
        """The machines that run applications of a job, which may overlap, in their order."""
        self.early: dict[int, float] = {}
        """Ends of applications that came before the end of their predecessor, by machine."""
        self.complete: dict[int, float] = {}
        """When the input of an application that has begun before is complete, by machine."""

    @property
    def now(self) -> float:
        """How far the loop has come."""
        return float(self.mechanism.core.count[0].now)

    def upcoming(self) -> float:
        """Return when something happens next, if no further task ends before."""
        return min(self.mechanism.upcoming(), *self.ends.values(), np.inf)

    def end(self, machine: int, at: float) -> None:
        """Note that the task of a machine has ended: in ticks, at the nearest one.

        An application that overlaps its predecessor ends when its whole input has come.
        """
        task = self.task[machine]
        line = self.runs[task]
        if line[0] != machine:
            self.early[machine] = at
            return
        self._forget(machine)
        at = max(round(at) if self.in_ticks else at, self.complete.pop(machine, 0.0), self.now)
        self.ends[machine], self.ending[machine] = at, task
        if line:
            following = line[0]
            self._complete(machine, following)
            if following in self.early:
                self.end(following, self.early.pop(following))

    def _complete(self, machine: int, following: int) -> None:
        """Note when all of what a task on a machine has made is where the next one runs."""
        at = self.ends[machine] + self._latency(machine, following)
        self.complete[following] = ceil(at - TINY)

    def _forget(self, machine: int) -> None:
        """Forget what a machine runs."""
        task = self.task.pop(machine)
        self.runs[task].remove(machine)
        if not self.runs[task]:
            del self.runs[task]

    def _latency(self, one: int, other: int) -> float:
        """Return how long data takes between two nodes of a chain."""
        state = self.mechanism.state
        if one == other:
            return 0.0
        return float(state.links[state.machines[one].column, state.machines[other].column])

    def advance(self, until: float) -> list[Happened]:
        """Let everything happen until a time, and return it.

        Tasks that start do not end before somebody says so.
        """
        found: list[Happened] = []
        while (time := self.upcoming()) <= until and time < self.horizon:
            for machine, at in list(self.ends.items()):
                if at <= time:
                    self.mechanism.core.server[machine].finish = self.ends.pop(machine)
                    del self.ending[machine]
            found += self._run(time)
        return found

    def close(self, until: float | None = None) -> dict[str, Any]:
        """Run to the horizon, or to a time before it; return what only this kind measures."""
        until = self.horizon if until is None else max(until, self.now)
        for machine, at in self.ends.items():
            if at <= until:
                self.mechanism.core.server[machine].finish = at
        self._run(until)
        return dict(self.mechanism.measured()["more"])

    def _run(self, until: float) -> list[Happened]:
        pages: list[Any] = []
        while (reason := self.mechanism.loop(until)) != SLICE:
            provide(self.mechanism, reason, pages)
        core = self.mechanism.core
        pages.append(core.trace[: core.count[0].traced].copy())
        core.count[0].traced = 0
        lengths = np.array(core.server["finish"]) - np.array(core.server["begun"])
        core.server["finish"] = np.inf
        found = []
        for event in (event for page in pages for event in page):
            time, kind, task, task_class, machine = event.item()
            length = float(lengths[machine]) if kind == START else 0.0
            if kind == START:
                self.task[machine] = task
                self.runs.setdefault(task, []).append(machine)
                for other in [other for other, last in self.ending.items() if last == task]:
                    self._complete(other, machine)
            elif kind == FAIL and machine in self.task:
                self._forget(machine)
            found.append(Happened(time, KINDS[kind], task, task_class, machine, length))
        return found
