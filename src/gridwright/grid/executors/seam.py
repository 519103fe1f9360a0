"""The seam between a grid and what runs its jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

__all__ = ["Ended", "Event", "Executor", "MachineDown", "MachineUp", "Started"]


class MachineUp(NamedTuple):
    """A machine is there, and takes jobs."""

    machine: int


class MachineDown(NamedTuple):
    """A machine is gone, and what it was running with it."""

    machine: int
    why: str


class Started(NamedTuple):
    """A machine has begun with a job."""

    machine: int
    job: int
    attempt: int
    at: float


class Ended(NamedTuple):
    """A job has ended: its result, or the traceback of what went wrong in it."""

    machine: int
    job: int
    attempt: int
    at: float
    result: bytes
    error: str


Event = MachineUp | MachineDown | Started | Ended


class Executor(Protocol):
    """Runs jobs on machines, one at a time on each.

    Times are those of ``time.monotonic`` here. Events are told in the thread of the event loop that
    ``open`` is called in.
    """

    machines: tuple[str, ...]

    async def open(self, tell: Callable[[Event], None]) -> None:
        """Start the machines; tell of each when it is up."""

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Have a pickled call run on a machine that is up and free."""

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt that nobody waits for, if it is still running there."""

    async def close(self) -> None:
        """Stop everything, and leave no process behind."""
