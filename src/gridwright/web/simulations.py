"""Simulations that go on in the background, and what they have come to so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock, Thread, Timer
from typing import Any

import numpy as np

from ..allocation import long_run_of, time_limit
from ..catalogue import find
from ..experiments import Comparison, Result, compare, simulate
from ..experiments.results_by_kind import check_alike, result_of
from ..model import InputError, System
from ..policies import Policy
from ..policies import find as find_policy
from ..simulation import Replication, check_run, check_system
from ..statistics import estimate
from .documents import check_policy, system_of
from .pasted_policy import paste
from .queue import SECONDS, Background, StoppedError

__all__ = [
    "Simulation",
    "Simulations",
    "Wanted",
]


@dataclass(frozen=True)
class Wanted:
    """What is to be simulated."""

    system: str | dict[str, Any]
    policies: Sequence[str]
    horizon: float | None = None
    replications: int = 10
    seed: int = 1
    warmup: float = 0.0
    code: str = ""
    """Policies of one's own, pasted; all that it defines are simulated too."""


@dataclass
class Simulation(Background):
    """A simulation of one or several policies on the same arrivals."""

    number: int
    system: System
    policies: tuple[Policy, ...]
    horizon: float
    wanted: Wanted
    shares: dict[str, float] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    comparison: Comparison | None = None

    @property
    def share(self) -> float:
        """How much of it is done."""
        return sum(self.shares.values()) / len(self.policies)

    def work(self) -> None:
        """Simulate; of what is ended early, compare what there is."""
        try:
            self._simulate()
        except StoppedError:
            self._compare_whole()
            raise

    def abandon(self) -> None:
        """Wait for it no longer: it has never begun, or does not come back."""
        self.end("stopped", "" if self.state == "waiting" else "its code does not come back")

    def _compare_whole(self) -> None:
        """Compare the policies that were simulated to their end."""
        found = [self.results.get(str(policy)) for policy in self.policies]
        whole = [r for r in found if r and len(r.replications) == self.wanted.replications]
        if len(whole) > 1:
            self.comparison = Comparison(tuple(whole))

    def _simulate(self) -> None:
        self._note(self.policies[0], 0.0, [])
        with time_limit(SECONDS):  # the LP of the verdicts: it is kept, and solved once
            long_run_of(self.system)
        system, wanted = self.system, self.wanted
        rest = (self.horizon, wanted.replications, wanted.seed)
        if len(self.policies) == 1:
            (only,) = self.policies
            found = simulate(
                system,
                only,
                *rest,
                warmup=wanted.warmup,
                progress=lambda done, runs: self._note(only, done, runs),
            )
            self.results[str(only)] = _judged(found)
            return
        self.comparison = compare(
            system, self.policies, *rest, warmup=wanted.warmup, progress=self._note
        )
        self.results = {str(each.policy): _judged(each) for each in self.comparison.results}

    def _note(self, policy: Policy, done: float, runs: list[Replication]) -> None:
        """Keep what there is so far, or end."""
        self.go_on()
        name, known = str(policy), self.results.get(str(policy))
        self.shares[name] = done
        if runs and (known is None or len(known.replications) < len(runs)):
            wanted = (self.horizon, self.wanted.warmup, self.wanted.seed)
            self.results[name] = _judged(result_of(self.system, policy, *wanted, tuple(runs)))

    def progress(self) -> dict[str, Any]:
        """Say how far it is, with the intervals so far."""
        return {
            "id": self.number,
            "state": self.state,
            "error": self.error,
            "share": self.share,
            "system": self.system.name,
            "horizon": self.horizon,
            "replications": self.wanted.replications,
            "policies": [self._line(str(policy)) for policy in self.policies],
        }

    def _line(self, name: str) -> dict[str, Any]:
        found = self.results.get(name)
        line: dict[str, Any] = {"policy": name, "share": self.shares.get(name, 0.0)}
        line["replications"] = 0 if found is None else len(found.replications)
        if found is not None:
            line["stable"], line["verdict"] = found.stable, found.verdict
            line["long_run_load"] = found.long_run_load
            for each in dict.fromkeys((*found.criteria, "mean_number", "mean_response")):
                line[each] = found.figure(each).as_json()
        return line

    def convergence(self, points: int = 40) -> dict[str, list[list[float]]]:
        """Return by policy how the mean response and its interval went: number, mean, low, high."""
        found = {}
        for name, result in list(self.results.items()):
            values = result.values("mean_response")
            steps = np.unique(np.linspace(2, max(len(values), 2), points).astype(int))
            found[name] = [[int(n), *estimate(values[:n])] for n in steps if n <= len(values)]
        return found

    def numbers(self, points: int = 200) -> dict[str, list[list[float]]]:
        """Return by policy the number in system over time, the mean of the replications."""
        found = {}
        for name, result in list(self.results.items()):
            times = result.replications[0].times
            mean = np.mean([each.number for each in result.replications], axis=0)
            chosen = np.unique(np.linspace(0, len(times) - 1, points).astype(int))
            found[name] = [[float(times[k]), float(mean[k])] for k in chosen]
        return found

    def result(self) -> dict[str, Any]:
        """Return everything that was found."""
        if self.comparison is not None:
            return self.comparison.as_json()
        return {"results": [found.as_json() for found in list(self.results.values())]}


def _judged(result: Result) -> Result:
    """Find the verdict on a result here, so that pages that show it need not solve anything."""
    _ = result.stability, result.long_run_load  # both are kept with the result
    return result


KEPT = 50
"""Simulations that are remembered; the oldest that has ended makes room."""
LONGEST = 1e7
MOST = 1000
GRACE = 3.0
"""Seconds in which a simulation that is stopped comes back, unless its code never does."""


class Simulations:
    """Simulations by number; those that have ended are remembered for a while."""

    def __init__(self) -> None:
        self._numbers, self._lock = count(1), Lock()
        self._known: dict[int, Simulation] = {}
        self._waiting: list[Simulation] = []
        self._running: Simulation | None = None

    def start(self, wanted: Wanted) -> Simulation:
        """Begin a simulation; what is wrong is told at once."""
        system = system_of(wanted.system)
        policies = tuple(find_policy(check_policy(name)) for name in wanted.policies)
        if wanted.code.strip():
            policies += paste(wanted.code)
        horizon = wanted.horizon
        if horizon is None:
            known = find(wanted.system).horizon if isinstance(wanted.system, str) else None
            horizon = known or 20_000.0
        _check(system, policies, horizon, wanted)
        with self._lock:
            self._make_room()
            made = Simulation(next(self._numbers), system, policies, horizon, wanted)
            self._known[made.number] = made
            self._waiting.append(made)
        self._next()
        return made

    def stop(self, simulation: Simulation) -> None:
        """End a simulation early; one that waits, or does not come back, is given up."""
        simulation.stop()
        patience = GRACE if simulation is self._running else 0.0
        timer = Timer(patience, self._give_up, (simulation,))
        timer.daemon = True
        timer.start()

    def find(self, number: int) -> Simulation | None:
        """Find a simulation by its number."""
        return self._known.get(number)

    def all(self) -> list[Simulation]:
        """Return those that are remembered, the latest first."""
        return list(reversed(self._known.values()))

    def close(self) -> None:
        """Stop everything."""
        for each in self.all():
            each.stop()
        with self._lock:
            self._waiting.clear()

    def _next(self) -> None:
        """Begin the next that waits, if none is running."""
        with self._lock:
            if self._running is not None or not self._waiting:
                return
            begun = self._running = self._waiting.pop(0)
        # A policy of the user's may never come back: the process must end without waiting for it.
        Thread(target=self._run, args=(begun,), name="simulation", daemon=True).start()

    def _run(self, simulation: Simulation) -> None:
        simulation.run()
        self._ended(simulation)

    def _ended(self, simulation: Simulation) -> None:
        with self._lock:
            if self._running is simulation:
                self._running = None
        self._next()

    def _give_up(self, simulation: Simulation) -> None:
        with self._lock:
            if simulation in self._waiting:
                self._waiting.remove(simulation)
        if not simulation.is_over:
            simulation.abandon()
            self._ended(simulation)

    def _make_room(self) -> None:
        over = [number for number, each in self._known.items() if each.is_over]
        if len(self._known) >= KEPT and not over:
            raise InputError(f"{KEPT} simulations are waiting; stop some of them first")
        if len(self._known) >= KEPT:
            del self._known[over[0]]


def _check(system: System, policies: tuple[Policy, ...], horizon: float, wanted: Wanted) -> None:
    if not policies:
        raise InputError("there is nothing to simulate; choose at least one policy")
    names = [str(policy) for policy in policies]
    if len(set(names)) < len(names):
        raise InputError("a policy is chosen twice")
    if not 1 <= wanted.replications <= MOST:
        raise InputError(f"replications is {wanted.replications}; expected 1 to {MOST:,}")
    if not horizon <= LONGEST:
        raise InputError(f"horizon is {horizon:g}; expected at most {LONGEST:g}")
    if wanted.seed < 0:
        raise InputError(f"seed is {wanted.seed}; expected 0 or more")
    check_run(horizon, wanted.warmup)
    check_alike(policies)
    for policy in policies:
        check_system(system, policy)
