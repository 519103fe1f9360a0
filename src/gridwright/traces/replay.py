"""Replay the jobs and failures of a trace under a policy, in simulated time.

A heap of events drives the book of the grid, which also runs real jobs; a test checks that it
decides like the simulator at every event. Arrivals, work, failures and repairs come from the trace.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grid import Book, Send
from ..model import Floats, InputError, System
from ..model.error import positive_numbers
from ..policies import Policy, check_central
from ..policies import find as find_policy
from ..statistics import tails_of
from ..testbed import Fault, JobList

END, REPAIR, FAILURE, ARRIVAL = range(4)
"""Kinds of events, in the order in which simultaneous ones happen: ends come before arrivals."""
GLANCES = 200
"""Number of equally spaced times at which the number of jobs is recorded."""
SHORT = 10.0
"""Shorter jobs count as this long, in seconds, in the bounded slowdown that is usual for logs."""


@dataclass(frozen=True)
class Replay:
    """The result of a trace under a policy. Times are in seconds."""

    policy: Policy
    system: System
    jobs: JobList
    started: Floats
    """Last start of each job; nan if it never started."""
    ended: Floats
    """End of each job; nan if it did not finish."""
    machines: NDArray[np.int64]
    """The machine on which each job ran last; −1 for none."""
    lost: int
    """Number of failures of machines with a job, which then starts again."""
    busy: Floats
    """Seconds that each machine worked, on lost jobs too."""
    refusals: int
    times: Floats
    numbers: NDArray[np.int64]
    """Jobs in the system at these times."""
    within: tuple[float, ...] = ()
    """Seconds: the share of jobs that respond within each is a figure."""

    @property
    def done(self) -> NDArray[np.bool_]:
        """Which jobs finished."""
        return ~np.isnan(self.ended)

    @property
    def responses(self) -> Floats:
        """Response times of the jobs that finished."""
        return (self.ended - self.jobs.times)[self.done]

    @property
    def slowdowns(self) -> Floats:
        """Response ÷ length of the last attempt, at least 10 s; at least 1."""
        ran = np.maximum((self.ended - self.started)[self.done], SHORT)
        return np.maximum(self.responses / ran, 1.0)

    @property
    def figures(self) -> dict[str, float]:
        """Measures over all jobs."""
        finished = int(self.done.sum())
        left = len(self.jobs) - finished
        counts: dict[str, float]
        counts = {"finished": finished, "unfinished": left, "lost": self.lost}
        if not finished:
            return counts
        waits = (self.started - self.jobs.times)[self.done]
        return {
            **counts,
            "mean_response": float(self.responses.mean()),
            **tails_of(self.responses.tolist(), self.within),
            "mean_waiting": float(waits.mean()),
            "mean_slowdown": float(self.slowdowns.mean()),
            "makespan": float(np.nanmax(self.ended)),
            "utilisation": float(self.utilisation.mean()),
        }

    @property
    def utilisation(self) -> Floats:
        """The share of the makespan that each machine worked; nan if no job finished."""
        until = self.ended[self.done].max(initial=0.0)
        return self.busy / until if until > 0 else np.full_like(self.busy, np.nan)

    @property
    def by_class(self) -> Floats:
        """The mean response of each class; nan if no job of it finished."""
        kind = self.jobs.task_classes[self.done]
        size = len(self.system.classes)
        count = np.bincount(kind, minlength=size)
        total = np.bincount(kind, self.responses, minlength=size)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def figures_of(self, task_class: int) -> dict[str, float]:
        """Return the jobs of a class that finished, their mean response and its tails."""
        own = self.responses[self.jobs.task_classes[self.done] == task_class]
        mean = float(self.by_class[task_class])
        return {"finished": len(own), "mean_response": mean, **tails_of(own.tolist(), self.within)}

    def as_json(self) -> dict[str, Any]:
        """Return the replay as ``--json`` prints it."""
        names = self.system.classes
        return {
            "policy": str(self.policy),
            **self.figures,
            "refusals": self.refusals,
            "classes": {name: self.figures_of(i) for i, name in enumerate(names)},
            "machines": dict(zip(self.system.machines, self.utilisation.tolist(), strict=True)),
            "times": self.times.tolist(),
            "numbers": self.numbers.tolist(),
        }


def replay(
    system: System,
    jobs: JobList,
    policy: str | Policy,
    faults: Sequence[Fault] = (),
    *,
    within: Sequence[float] = (),
    progress: Callable[[float], None] = lambda done: None,
) -> Replay:
    """Replay jobs and failures under a push or a pull policy until no job is left that can finish.

    The policy sees the rates and arrival rates of the system. A job whose machine fails starts
    again; a machine is down until the end of all failures that overlap. Availabilities have their
    mean values. Costs, delays, failures and the profile of the system play no role. ``within`` are
    seconds: the share of jobs that respond within each of them is a figure.

    >>> system = System(arrivals=[0.1], rates=[[1, 0.5]])
    >>> run = replay(system, JobList([0, 1, 2], [0, 0, 0], [4, 4, 4]), "fcfs", [Fault(0, 3, 5)])
    >>> run.ended.tolist(), run.machines.tolist(), run.lost
    ([9.0, 9.0, 13.0], [0, 1, 0], 1)
    """
    limits = positive_numbers("within", within, "seconds")
    _check(system, jobs, faults)
    return _Stage(system, jobs, find_policy(policy), limits).play(faults, progress)


def _check(system: System, jobs: JobList, faults: Sequence[Fault]) -> None:
    """Refuse what cannot be played."""
    classes, machines = system.shape
    if len(jobs) and not (jobs.times.min() >= 0 and jobs.times.max() < np.inf):
        raise InputError("the times of jobs have to be 0 or more")
    if len(jobs) and not (jobs.task_classes.min() >= 0 and jobs.task_classes.max() < classes):
        raise InputError(f"the classes of jobs have to be from 0 to {classes - 1}")
    for fault in faults:
        if not 0 <= fault.machine < machines:
            raise InputError(f"{fault}: the machines are 0 to {machines - 1}")
        if not fault.start < fault.end:
            raise InputError(f"{fault} does not end after it has started")


def _apart(faults: Sequence[Fault]) -> list[Fault]:
    """Put failures of a machine together that overlap.

    >>> _apart([Fault(0, 3, 10), Fault(1, 4, 5), Fault(0, 4, 5), Fault(0, 10, 12)])
    [Fault(machine=0, start=3, end=12), Fault(machine=1, start=4, end=5)]
    """
    found: list[Fault] = []
    for fault in sorted(faults, key=lambda each: (each.machine, each.start)):
        if found and found[-1].machine == fault.machine and fault.start <= found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, fault.end))
        else:
            found.append(fault)
    return found


class _Stage:
    """The state of a replay."""

    def __init__(
        self, system: System, jobs: JobList, policy: Policy, within: tuple[float, ...]
    ) -> None:
        check_central(policy, "traces are replayed under")
        if system.believes_anew:
            raise InputError(
                "[assumed] arrivals that are 'present' or measured are for simulations, not for "
                "replays"
            )
        believed = system.believed
        self.system, self.jobs, self.policy, self.within = system, jobs, policy, within
        self.book = Book(
            policy, believed.nominal, believed.arrival_rates, believed.mean_availability
        )
        self.rates = system.effective.tolist()
        self.works = jobs.works.tolist()
        self.classes = jobs.task_classes.tolist()
        self.events: list[tuple[float, int, int, int]] = []
        self.started = np.full(len(jobs), np.nan)
        self.ended = np.full(len(jobs), np.nan)
        self.where = np.full(len(jobs), -1)
        self.busy = np.zeros(system.shape[1])
        self.lost = 0

    def play(self, faults: Sequence[Fault], progress: Callable[[float], None]) -> Replay:
        self.events = [(at, ARRIVAL, k, 0) for k, at in enumerate(self.jobs.times.tolist())]
        for fault in _apart(faults):
            self.events.append((fault.start, FAILURE, fault.machine, 0))
            if fault.end < np.inf:
                self.events.append((fault.end, REPAIR, fault.machine, 0))
        heapq.heapify(self.events)
        every, told = max(len(self.jobs) // 100, 1), 0
        finished = 0
        while self.events and finished < len(self.jobs):
            now, kind, number, attempt = heapq.heappop(self.events)
            if kind == END:
                finished += self._end(now, number, attempt)
                if finished >= told + every:
                    told = finished
                    progress(finished / len(self.jobs))
            else:
                self._happen(now, kind, number)
            self.book.decisions.clear()
            self.book.changed.clear()
            self.book.moved.clear()
        return self._result()

    def _happen(self, now: float, kind: int, number: int) -> None:
        if kind == ARRIVAL:
            said = self.book.submit(now, number, self.classes[number])
        elif kind == REPAIR:
            said = self.book.machines_up(now, self._together(now, kind, number))
        else:
            said = self.book.machines_down(now, self._together(now, kind, number))
            for job, _, machine in self.book.losses:
                self.lost += 1
                self.busy[machine] += now - self.started[job]
                self.started[job] = np.nan
            self.book.losses.clear()
        self._carry_out(now, said)

    def _together(self, now: float, kind: int, first: int) -> list[int]:
        """Return all machines that fail, or are repaired, at the same time."""
        found = [first]
        while self.events and self.events[0][:2] == (now, kind):
            found.append(heapq.heappop(self.events)[2])
        return found

    def _end(self, now: float, job: int, attempt: int) -> int:
        said = self.book.finished(now, job, attempt)
        if said is None:  # its machine has failed
            return 0
        self.ended[job] = now
        self.busy[self.where[job]] += now - self.started[job]
        del self.book.jobs[job]
        self._carry_out(now, said)
        return 1

    def _carry_out(self, now: float, said: Sequence[Any]) -> None:
        for word in said:
            if isinstance(word, Send):
                job, machine, attempt = word
                time = self.works[job] / self.rates[self.classes[job]][machine]
                self.started[job], self.where[job] = now, machine
                heapq.heappush(self.events, (now + time, END, job, attempt))

    def _result(self) -> Replay:
        ended = self.ended[~np.isnan(self.ended)]
        until = max(ended.max(initial=0.0), self.jobs.times.max(initial=0.0))
        times = np.linspace(0.0, until, GLANCES + 1)
        numbers = np.searchsorted(np.sort(self.jobs.times), times, side="right")
        numbers = numbers - np.searchsorted(np.sort(ended), times, side="right")
        parts = self.policy, self.system, self.jobs, self.started, self.ended, self.where
        counts = self.lost, self.busy, self.book.refusals
        return Replay(*parts, *counts, times, numbers, self.within)
