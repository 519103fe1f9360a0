"""The event log of a run: what happened when, to which task, on which machine."""

from typing import Any

__all__ = [
    "ARRIVE",
    "ASSIGN",
    "FAIL",
    "FINISH",
    "KINDS",
    "LOSE",
    "REPAIR",
    "REPLAN",
    "SHIFT",
    "START",
    "note",
]

ALLOCATES_NOTHING = True

KINDS = (
    "arrival",
    "assignment",
    "start",
    "finish",
    "failure",
    "repair",
    "re-plan",
    "loss",
    "availability",
)
ARRIVE, ASSIGN, START, FINISH, FAIL, REPAIR, REPLAN, LOSE, SHIFT = range(9)


def note(s: Any, time: float, kind: int, task: int, task_class: int, machine: int) -> None:
    """Write an event down."""
    row = s.trace[s.count[0].traced]
    row.time = time
    row.kind = kind
    row.task = task
    row.task_class = task_class
    row.machine = machine
    s.count[0].traced += 1
