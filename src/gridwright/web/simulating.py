"""Simulations that go on in the background, and what they have come to so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np

from ..experiments import Comparison, Result, compare, simulate
from ..experiments.results import result_of
from ..model import InputError, System
from ..policies import Policy
from ..simulation import Replication
from ..statistics import estimate

__all__ = ["Simulation", "Wanted"]


class _StoppedError(Exception):
    """Raised in a simulation that is to end early."""


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
class Simulation:
    """A simulation of one or several policies on the same arrivals."""

    number: int
    system: System
    policies: tuple[Policy, ...]
    horizon: float
    wanted: Wanted
    state: str = "waiting"
    """``waiting`` for others to end, ``running``, ``done``, ``stopped`` or ``failed``."""
    error: str = ""
    shares: dict[str, float] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    comparison: Comparison | None = None
    stopping: Event = field(default_factory=Event)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ("done", "stopped", "failed")

    @property
    def share(self) -> float:
        """How much of it is done."""
        return sum(self.shares.values()) / len(self.policies)

    def stop(self) -> None:
        """End it early; what has been found stays."""
        self.stopping.set()

    def run(self) -> None:
        """Simulate: in a thread of its own."""
        self.state = "running"
        try:
            self._simulate()
            self._end("done")
        except _StoppedError:
            self._compare_whole()
            self._end("stopped")
        except InputError as error:
            self._end("failed", str(error))
        except Exception as error:  # a page that waits for ever would be worse
            self._end("failed", f"{type(error).__name__}: {error}")

    def abandon(self) -> None:
        """Wait for it no longer: it has never begun, or does not come back."""
        self._end("stopped", "" if self.state == "waiting" else "its code does not come back")

    def _end(self, state: str, error: str = "") -> None:
        if not self.is_over:
            self.state, self.error = state, error

    def _compare_whole(self) -> None:
        """Compare the policies that were simulated to their end."""
        found = [self.results.get(str(policy)) for policy in self.policies]
        whole = [r for r in found if r and len(r.replications) == self.wanted.replications]
        if len(whole) > 1:
            self.comparison = Comparison(tuple(whole))

    def _simulate(self) -> None:
        self._note(self.policies[0], 0.0, [])
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
            self.results[str(only)] = found
            return
        self.comparison = compare(
            system, self.policies, *rest, warmup=wanted.warmup, progress=self._note
        )
        self.results = {str(each.policy): each for each in self.comparison.results}

    def _note(self, policy: Policy, done: float, runs: list[Replication]) -> None:
        """Keep what there is so far, or end."""
        if self.stopping.is_set():
            raise _StoppedError
        name, known = str(policy), self.results.get(str(policy))
        self.shares[name] = done
        if runs and (known is None or len(known.replications) < len(runs)):
            wanted = (self.horizon, self.wanted.warmup, self.wanted.seed)
            self.results[name] = result_of(self.system, policy, *wanted, tuple(runs))

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
            line["stable"] = found.stable
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
        return {"results": [found.as_json() for found in self.results.values()]}
