"""The workers of a Dask cluster, their machines, and the jobs that these were sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ..prediction import Prediction

Call = tuple[int, int, bytes]
"""A job, an attempt and the pickled call."""


@dataclass(eq=False)
class Task:
    """A Dask task that runs some attempts, one after the other."""

    future: Any
    left: int
    """How many of them have not ended."""
    failed: bool = False
    """Whether the task itself has failed, which is reported once."""


@dataclass(eq=False)
class Attempt:
    """An attempt that was sent."""

    sent: float
    task: Task | None = None
    """Its task, once it is submitted."""
    started: float | None = None
    fetching: bool = False

    def leave(self) -> bool:
        """Leave the task; return False if this does not stop the attempt."""
        if self.task is not None:
            self.task.left -= 1
            if self.task.left:
                return False
            self.task.future.release()
        return True


@dataclass(eq=False)
class Machine:
    """A slot of a worker."""

    number: int
    slot: int
    prediction: Prediction
    share: float = 1.0
    """The share of the time in which its jobs run."""
    worker: Worker | None = None
    """Its worker while that is there."""
    away: bool = False
    """Whether it was taken away, until it is repaired."""
    absences: int = 0
    """How often it was taken away."""
    attempts: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    outbox: list[Call] = field(default_factory=list)
    """What it is sent in this moment."""

    def release(self) -> None:
        """Release the tasks of this machine."""
        attempts, self.attempts = self.attempts, {}
        self.outbox = []
        for attempt in attempts.values():
            attempt.leave()


@dataclass(eq=False)
class Worker:
    """A worker, and its clock."""

    address: str
    machines: list[Machine]
    slots: int = 1
    identity: str = ""
    offset: float = 0.0
    """The difference of our clock from its clock."""
    delay: float = float("inf")
    """Seconds of the round trip that measured it: the error is at most half of this."""
    leaving: bool = False
    """Whether it has announced its end; a worker that dies does not."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def set_clock(self, began: float, theirs: float, now: float, *, same: bool) -> None:
        """Set the offset from a round trip, if it is the quickest; on the same clock it is 0."""
        if same:
            self.offset = 0.0
        elif now - began <= self.delay:
            self.offset, self.delay = (began + now) / 2 - theirs, now - began
