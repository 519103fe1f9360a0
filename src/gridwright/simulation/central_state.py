"""The state of a push or pull system: plain arrays, so that a loop can stop and continue anywhere.

Names in all loops: ``s`` state, ``c`` its count, ``i`` class, ``j`` machine, ``k`` the policy's
answer, ``x`` ticket (a task in the system), ``q`` stream of a class, ``o`` server (what the engine
knows of a machine), ``m`` machine (what the policy is shown of it), ``t`` time, ``own`` the random
numbers of the policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compiler.checks import readonly
from ..compiler.link import rare, shared
from ..policies.view import View, record_type
from .sampling import arrives, shape_draw

SERVER = record_type(
    finish="f8",  # when the task in service ends
    fault="f8",  # when it fails next, or is repaired
    shift="f8",  # when its availability changes or is reported next
    ticket="i8",  # the task in service, −1 for none
    begun="f8",  # when the task in service was started on it
    busy="f8",  # time spent busy
    left="f8",  # standardised work left of the task in service, at this time:
    left_at="f8",
    speed="f8",  # true CPU availability now
    before="f8",  # delay between sending and starting
    after="f8",  # delay between finishing and being known to have finished
    lag="f8",  # push: as after, since its next task begins before it is known to have finished
    silent="?",  # it has failed, and nobody knows
    idle="?",
    since="i8",  # order in which it became idle
    older="i8",  # the machine that became idle before it, of any pattern
    newer="i8",
    prev="i8",
    next="i8",  # the machine that became idle after it, of the same pattern
    change="f8",  # when its availability changes
    changes="i8",  # how often it has changed
    report="f8",  # when it is reported
    back="f8",  # of a machine that is silent: when it is repaired
    head="i8",  # its own queue (push, peers): first ticket, −1 for none
    tail="i8",
    free_at="f8",  # push without an event list: when the last task there leaves
    uptime="i8",  # shapes
    repair="i8",
    mean_uptime="f8",
    mean_repair="f8",
    detection="f8",  # delay between failing and being known to have failed
    timeout="f8",  # expected times after which a task is known to be lost, 0 for detection
    period="f8",  # time between reports of its availability, 0 for none
    chain="i8",  # row of its chain's first state, −1 for none
    stage="i8",  # the chain's state now
    believed="f8",  # availability as it is believed when nothing disturbs it
    doubt="f8",  # largest relative error of that belief
    told="?",  # whether planners are told the availability
    promised="i8",  # with preemption: the ticket that it shall run, −1 for none
    best="f8",  # with preemption: the most that it can do, as cost × rate, −1 once it was asked
    best_class="i8",  # and for which waiting class
    turn="i8",  # with preemption: the machine whose turn it is at this place to lay its task down
)
"""What is used most stands first, close together."""

STREAM = record_type(
    next="f8",  # when its next task arrives
    gap="f8",  # mean time between arrivals
    gap_shape="i8",
    work_shape="i8",
    head="i8",  # tasks that wait centrally: first ticket, −1 for none
    tail="i8",
    responded="i8",  # tasks whose response counts
    response="f8",
    waited="f8",
    queued="f8",
    finished="i8",  # tasks that ended
    arrived="i8",
    lost="i8",  # interrupted by a failure
    inside="i8",  # tasks in the system, with an event list
    area="f8",  # integral of their number; with an event list: of the number that have left
    cycle="i8",  # the shape of its arrival rate, if that changes
    period="i8",  # of that cycle
    period_end="f8",
)
TICKET = record_type(
    born="f8",
    work="f8",  # standardised
    expected="f8",  # what it adds to the machine's expected work; with preemption: its whole work
    next="i8",
    task_class="i8",
    number="i8",
    leaves="f8",  # without an event list: when it leaves; peers: inf until begun; push with
    # an event list: when it arrives at its machine, or what is left of its work was reckoned;
    # with preemption: how long an interrupted one has run
    sent="f8",  # with an event list: when it was sent to its machine
)
"""These are 64 bytes. A ninth field makes simulations 2 to 3 % slower."""
COUNT = record_type(
    now="f8",
    area="f8",  # integral of the number in system
    started="i8",
    inside="i8",  # tasks in the system
    tasks="i8",
    free="i8",  # first free ticket, −1 for none
    refusals="i8",
    held="i8",
    asked="i8",  # questions put to a pull policy
    replans="i8",
    pending="i8",
    oldest="i8",  # longest idle machine, −1 for none
    newest="i8",
    order="i8",
    patterns="i8",
    traced="i8",
    waiting="i8",  # classes with tasks that wait, as bits
    planned="i8",  # whether the policy has a planner
    changed="i8",  # the machine that planners must look at again; ANY, or NONE since the last plan
    sending="f8",  # time that the scheduler takes to send a task
    sent="f8",  # when it has sent all tasks that it was to send
    interrupted="i8",  # tasks that gave way to others
    same_work="i8",  # whether a task that is lost has the same work when it starts again
    key="i8",  # of the numbers that changes of availability are drawn with, two words of 32 bits
    key_2="i8",
)


@shared
class State(NamedTuple):
    """Everything that a loop reads and writes."""

    machines: Any  # the view's part
    classes: Any
    rate: NDArray[np.float64]
    nominal: NDArray[np.float64]
    expected: NDArray[np.float64]
    assigned: NDArray[np.int64]
    plan: NDArray[np.float64]
    memory: NDArray[np.float64]
    tally: NDArray[np.float64]
    server: Any  # SERVER [machine]
    stream: Any  # STREAM [class]
    ticket: Any  # TICKET, a pool
    count: Any  # COUNT [1]
    truth: NDArray[np.float64]  # true rates: effective if static or peers', else nominal
    due: NDArray[np.float64]  # [machine], padded to a power of two: its next event
    tree: NDArray[np.int64]  # a tournament over due; the winner is at 1
    ends: NDArray[np.int64]  # [pattern, 3]: the classes it may serve as bits, its idle machines
    pattern: NDArray[np.int64]  # [machine]
    group: NDArray[np.int64]  # [machine]
    present: NDArray[np.float64]  # availability that a planner is told, 0 where it is down
    shapes: Any
    table: NDArray[np.float64]
    chain: NDArray[np.float64]  # [state]: see ``availability``
    responses: NDArray[np.int64]  # [class, bin]: a histogram; no rows if nobody wants it
    trace: Any  # EVENT


def shown(s: State, now: float, own: Generator) -> View:
    """Return what a policy is shown at a time."""
    classes, machines = len(s.classes), len(s.machines)
    return View(
        now,
        readonly(s.machines, machines),
        readonly(s.classes, classes),
        readonly(s.rate, classes, machines),
        readonly(s.nominal, classes, machines),
        readonly(s.expected, classes, machines),
        readonly(s.assigned, classes, machines),
        readonly(s.plan, classes, machines),
        s.memory,
        s.tally,
        own,
    )


@rare
def draw_first_arrivals(s: State, tasks: Generator) -> None:
    """Draw when the first task of every class arrives."""
    for i in range(len(s.stream)):
        q = s.stream[i]
        gap = shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
        q.next = arrives(s.stream, i, s.shapes, s.table, 0.0, gap, tasks)
