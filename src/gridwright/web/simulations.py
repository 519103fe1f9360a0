"""The simulations of a server: one at a time, the others wait."""

from __future__ import annotations

from itertools import count
from threading import Lock, Thread, Timer

from ..catalogue import find
from ..experiments.results_by_kind import check_alike
from ..model import InputError, System
from ..policies import Policy
from ..policies import find as find_policy
from ..simulation import check_run, check_system
from .draft import check_policy, system_of
from .pasted import paste
from .simulating import Simulation, Wanted

__all__ = ["Simulations"]

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
