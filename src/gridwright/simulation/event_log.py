"""The event log of a run: what happened when, to which task, on which machine."""

from typing import Any

from ..compiler.link import rare
from ..policies.view import record_type

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
    "discard",
    "interruption",
)
ARRIVE, ASSIGN, START, FINISH, FAIL, REPAIR, REPLAN, LOSE, SHIFT, DISCARD, INTERRUPT = range(11)


EVENT = record_type(time="f8", kind="i8", task="i8", task_class="i8", machine="i8")


@rare
def note(s: Any, time: float, kind: int, task: int, task_class: int, machine: int) -> None:
    """Log an event in a state that has a trace and a count."""
    row = s.trace[s.count[0].traced]
    row.time = time
    row.kind = kind
    row.task = task
    row.task_class = task_class
    row.machine = machine
    s.count[0].traced += 1
