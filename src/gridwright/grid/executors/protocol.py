"""The seam between a grid and what runs its jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..prediction import Prediction


class MachineUp(NamedTuple):
    """A machine is there, and takes jobs; one that was there before has forgotten its job.

    A number beyond those known so far is a machine that joins.
    """

    machine: int


class MachineDown(NamedTuple):
    """A machine is gone, and what it was running with it."""

    machine: int
    why: str
    died: bool = False
    """Whether its process ended by itself while it had a job: by an exit, a signal, or for want of
    memory.

    False if it was taken away, if it has left the cluster, or if its scheduler is gone.
    """


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


class Reading(NamedTuple):
    """The share of a machine's CPU that is there for the grid, as its agent has it."""

    machine: int
    measured: float
    predicted: float
    """What is expected until the next reading."""


Event = MachineUp | MachineDown | Started | Ended | Reading


class Executor(Protocol):
    """Runs jobs on machines, one at a time on each.

    Times are those of the event loop's clock here. Everything is called, and events are told, in
    the thread of the event loop that ``open`` is called in.
    """

    machines: list[str]
    """The names; further ones may be added at the end, none is taken away."""

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Start the machines; tell of each when it is up.

        Tell of their CPU availability every so many seconds; 0: never.
        """

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Have a pickled call run on a machine that is up and free."""

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt that nobody waits for, with every process that it has started.

        The machine does not go down. A job that is sent to it meanwhile starts when it is ready.
        """

    async def ping(self, machine: int) -> float:
        """Return the seconds that a machine takes to answer; TimeoutError if it does not."""

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Take a machine away, and what it is running with it, until it is repaired.

        Silent: nobody is told; its answer just never comes.
        """

    def repair(self, machine: int) -> None:
        """Bring a machine back that was taken away; tell that it is up."""

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Have a machine's CPU availability predicted in another way from now on."""

    async def close(self) -> None:
        """Stop everything, and leave no process behind."""
