"""A job as the book knows it: where it is, and how often it was tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Cancel", "Instruction", "Job", "Send", "Stage"]


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


@dataclass
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
    sent: float = float("nan")
    started: float = float("nan")
    ended: float = float("nan")
    expected: float = 0.0
    """The time that its execution is expected to take where it is."""
    lost: int = 0
    """How often the machine that had it went down."""
    timed_out: int = 0


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
