"""The protocol between a grid and the executor that runs its jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..prediction import Prediction


class MachineUp(NamedTuple):
    """A machine is up and takes jobs; if it was up before, it has lost its job.

    A number beyond those known so far is a machine that joins.
    """

    machine: int


class MachineDown(NamedTuple):
    """A machine is gone, with the job that it was running."""

    machine: int
    why: str
    died: bool = False
    """Whether its process died by itself while it had a job: by exit, signal, or out of memory.

    False if it was taken away, has left the cluster, or its scheduler is gone.
    """


class Started(NamedTuple):
    """A machine has started a job."""

    machine: int
    job: int
    attempt: int
    at: float


class Ended(NamedTuple):
    """A job has ended: with its pickled result, or its pickled exception and the traceback."""

    machine: int
    job: int
    attempt: int
    at: float
    result: bytes
    error: str


class Returned(NamedTuple):
    """A machine has given back a job that it had not begun, as `Executor.call_back` asked."""

    machine: int
    job: int
    attempt: int


class Reading(NamedTuple):
    """The share of a machine's CPU that the grid can use, measured by its agent."""

    machine: int
    measured: float
    predicted: float
    """The share that is expected until the next measurement."""


Event = MachineUp | MachineDown | Started | Ended | Returned | Reading


class Executor(Protocol):
    """Runs jobs on machines, one at a time on each.

    An executor may also have an attribute ``most_ahead``: how many jobs a machine takes beyond the
    one that it runs. It then begins them in their order, and has a method ``call_back`` with the
    parameters of ``cancel``: if the machine has not begun the job, tell `Returned`.

    Times are those of the event loop's clock here. Everything is called, and events are told, in
    the thread of the event loop that ``open`` is called in.
    """

    machines: list[str]
    """Their names; names may be added at the end, and none is removed.

    An executor whose machines are slots also has ``hosts``: the name of the machine that each slot
    belongs to. What is measured on the slots of a machine counts for all of them.
    """

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Start the machines; call ``tell`` when each is up.

        Report their CPU availability every ``resolution`` seconds; 0: never.
        """

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Run a pickled call on a machine that is up, after those that it has."""

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt with every process that it has started.

        The machine stays up. A job that is sent to it meanwhile starts when it is ready.
        """

    async def ping(self, machine: int) -> float:
        """Return the seconds that a machine takes to answer; raise TimeoutError if it does not."""

    def fail(self, machine: int, *, silent: bool = False) -> None:
        """Take a machine away with its job, until it is repaired.

        With ``silent``, do not report this; the answer just never comes.
        """

    def repair(self, machine: int) -> None:
        """Bring back a machine that was taken away, and report that it is up."""

    async def impose(self, machine: int, availability: float) -> None:
        """Let a machine run its jobs for a share of the time, from now on: 1 is the whole.

        Its readings are that share of what they would be.
        """

    def predict(self, machine: int, prediction: Prediction) -> None:
        """Change how a machine's CPU availability is predicted."""

    async def close(self) -> None:
        """Stop everything, and leave no process behind."""
