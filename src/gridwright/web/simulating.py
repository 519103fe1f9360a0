"""Simulations that go on in the background, and what they have come to so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..allocation import long_run_of, time_limit
from ..experiments import Comparison, Result, compare, simulate
from ..experiments.results_by_kind import result_of
from ..model import System
from ..policies import Policy
from ..simulation import Replication
from ..statistics import estimate
from .background import Background, StoppedError
from .solving import SECONDS

__all__ = ["Simulation", "Wanted"]


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
