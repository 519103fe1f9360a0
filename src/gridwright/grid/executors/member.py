"""What a grid knows of a Dask cluster: workers, their machines, and what is on its way there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ..prediction import Prediction

__all__ = ["Attempt", "Machine", "Worker"]


@dataclass(eq=False)
class Attempt:
    """A job on its way."""

    future: Any
    sent: float
    started: float | None = None
    fetching: bool = False


@dataclass(eq=False)
class Machine:
    """A slot of a worker."""

    number: int
    slot: int
    prediction: Prediction
    worker: Worker | None = None
    """Where it is, while it is there."""
    away: bool = False
    """Whether it was taken away, until it is repaired."""
    absences: int = 0
    """How often it was."""
    attempts: dict[tuple[int, int], Attempt] = field(default_factory=dict)

    def release(self) -> None:
        """Give up what is on its way here."""
        attempts, self.attempts = self.attempts, {}
        for attempt in attempts.values():
            attempt.future.release()


@dataclass(eq=False)
class Worker:
    """A worker, and its clock."""

    address: str
    machines: list[Machine]
    identity: str = ""
    offset: float = 0.0
    """What to add to its clock to have ours."""
    delay: float = float("inf")
    """Seconds of the round trip that told so: it is wrong by half as much at most."""
    leaving: bool = False
    """Whether it has said that it ends; one that dies does not."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def set_clock(self, began: float, theirs: float, now: float, *, same: bool) -> None:
        """Learn its clock from a round trip; the quickest counts. The same clock needs none."""
        if same:
            self.offset = 0.0
        elif now - began <= self.delay:
            self.offset, self.delay = (began + now) / 2 - theirs, now - began
