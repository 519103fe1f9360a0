"""A job as the book knows it: where it is, and how often it was tried."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Cancel", "Copy", "Decision", "Instruction", "Job", "Send", "Stage"]


class Stage(StrEnum):
    """Where a job is. The last three are for good."""

    waiting = "waiting"  # centrally, for a machine
    queued = "queued"  # at a machine, behind others
    sent = "sent"  # to a machine, which may have started it
    finished = "finished"
    failed = "failed"
    cancelled = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether a job stays there."""
        return self in (Stage.finished, Stage.failed, Stage.cancelled)


class Copy(NamedTuple):
    """An attempt that took too long, and may yet be the first to answer."""

    machine: int
    sent: float
    started: float


@dataclass(slots=True, eq=False)
class Job:
    """A job in the book."""

    number: int
    task_class: int
    submitted: float
    stage: Stage = Stage.waiting
    machine: int = -1
    attempt: int = 0
    """How often it was sent."""
    assigned: float = float("nan")
    """When it was last given to a machine, perhaps behind others there."""
    free: float = float("nan")
    """Since when that machine had nothing to do."""
    heard_free: float = float("nan")
    """Since when that was known."""
    sent: float = float("nan")
    started: float = float("nan")
    ended: float = float("nan")
    heard: float = float("nan")
    """When its end became known."""
    settled: float = float("nan")
    """When its result was kept."""
    expected: float = 0.0
    """The time that its execution is expected to take where it is."""
    lost: int = 0
    """How often the machine that had it went down."""
    timed_out: int = 0
    deaths: int = 0
    """How often its process died, by itself, while it ran the job."""
    causes: tuple[str, ...] = ()
    """How each attempt ended that counts against its retries: its process died, it timed out."""
    since: float = field(init=False)
    """Its place in its class: since when it waits there."""
    copies: dict[int, Copy] = field(default_factory=dict)
    """Earlier attempts whose answer still counts, if it is the first."""

    def __post_init__(self) -> None:
        self.since = self.submitted

    def why_given_up(self) -> str:
        """Say how the attempts ended that have used up its retries."""
        causes = Counter(self.causes)
        words = [f"{why} ({n} times)" if n > 1 else why for why, n in causes.items()]
        times = f"{len(self.causes)} attempts" if len(self.causes) > 1 else "1 attempt"
        return f"job {self.number} was given up after {times}: {', '.join(words)}"


class Send(NamedTuple):
    """Word to an executor: run this job there."""

    job: int
    machine: int
    attempt: int


class Cancel(NamedTuple):
    """Word to an executor: nobody waits for this attempt any more."""

    job: int
    machine: int
    attempt: int


Instruction = Send | Cancel


class Decision(NamedTuple):
    """What a policy answered when it was asked."""

    time: float
    asked: int
    """The machine that asked for a job, or the class of a job that asked for a machine."""
    candidates: tuple[int, ...]
    """The classes that the machine could have been given, or the machines that the job could."""
    choice: int
    """The class or the machine; -1 for none."""
    plan: int
    """The number of the plan that was in force."""
