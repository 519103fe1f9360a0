"""The arrivals of a replication: the same whatever the policy, written down some at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from ...model import System
from ...policies.view import records
from .state import ARRIVAL

__all__ = ["Arrivals"]

BLOCK = 256
"""Tasks of a class that are drawn at a time."""


class Arrivals:
    """Tasks of all classes in the order of time; each class has random numbers of its own."""

    def __init__(self, system: System, rng: Generator) -> None:
        self.rngs = rng.spawn(len(system.classes))
        shape = system.interarrival
        self.shapes = shape if isinstance(shape, tuple) else (shape,) * len(self.rngs)
        self.rates = system.arrival_rates
        self.most = None if system.batch is None else system.batch.tasks
        self.at_once = system.batch is not None and system.batch.at_once
        self.given = 0
        self.rest = records(0, ARRIVAL)
        self.last = np.zeros(len(self.rngs))

    def more(self) -> tuple[Any, bool]:
        """Return further arrivals, and whether they are the last of all."""
        while True:
            self._draw()
            sure = int(np.searchsorted(self.rest["time"], self.last.min(), side="right"))
            if self.at_once and len(self.rest[:sure]) < self.most:  # type: ignore[operator]
                continue
            if sure:
                break
        found, self.rest = self.rest[:sure], self.rest[sure:]
        if self.most is not None:
            found = found[: self.most - self.given]
        self.given += len(found)
        if self.at_once:
            found["time"] = 0.0
        return found.copy(), self.given == self.most

    def _draw(self) -> None:
        """Draw some more of the class of which the fewest are known."""
        parts = [self.rest]
        behind = self.last <= self.last.min()
        for i in np.flatnonzero(behind):
            rng, shape = self.rngs[i], self.shapes[i]
            block = records(BLOCK, ARRIVAL)
            gaps = np.asarray(shape.sample(rng, BLOCK), dtype=float) / shape.mean / self.rates[i]
            block["time"] = self.last[i] + np.cumsum(gaps)
            block["quantile"] = rng.random(BLOCK)
            block["task_class"] = i
            self.last[i] = block["time"][-1]
            parts.append(block)
        together = np.concatenate(parts)
        order = np.argsort(together["time"], kind="stable")
        self.rest = together[order].view(np.recarray)
