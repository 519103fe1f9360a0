"""The loop with an event list: machines that fail, come back and change; push and pull alike.

What push and pull do differently is bound when the loop is linked: ``placed`` (a task waits),
``freed`` (a machine has nothing to do), ``returned`` (a machine failed) and ``recalled`` (there is
a new plan).
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from ..allocation.workspace import ANY, NONE
from ..compiler.link import allocates_nothing, hook, rare, slow_to_compile
from ..statistics.histogram import bin_of
from .availability import foresee, foreseeable, move_on, start_chains
from .central_state import State, draw_first_arrivals
from .event_log import ARRIVE, ASSIGN, FAIL, FINISH, LOSE, REPAIR, REPLAN, SHIFT, START, note
from .interrupts import ASK, ASKED, DRAWS, MAKE_PLAN, NOTHING, PLAN, POOL, SLICE, TRACE
from .planning import situation
from .sampling import arrives, low, shape_draw


@allocates_nothing
@slow_to_compile
def loop(
    s: State,
    arguments: Any,
    until: float,
    warmup: float,
    make_plan: Any,
    room: Any,
    tasks: Generator,
    faults: Generator,
    repeats: Generator,
    own: Generator,
) -> int:
    """Run until a time, or until something is needed; return the reason (see ``interrupts``).

    ``make_plan`` makes a plan in the arrays of ``room``, or returns False if only Python can. They
    may be those of another run: so the first plan looks at all machines.
    """
    c = s.count[0]
    c.changed = ANY
    tracing = len(s.trace) > 0
    if low(s.shapes):
        return DRAWS
    if c.started == 0:
        c.started = 1
        _start(s, tasks, faults)
        recalled(s, room, arguments, own)
    while True:
        if asked(s, arguments):
            return ASKED
        if c.pending == MAKE_PLAN:
            if not make_plan(situation(s, room), room, s.plan):
                return PLAN
            c.changed, c.pending = NONE, ASK
        if c.pending == ASK:
            c.replans += 1
            if tracing:
                note(s, c.now, REPLAN, -1, -1, -1)
            recalled(s, room, arguments, own)
            c.pending = NOTHING
            continue
        i, arrival = 0, s.stream[0].next
        for k in range(1, len(s.stream)):
            if s.stream[k].next < arrival:
                i, arrival = k, s.stream[k].next
        j = s.tree[1]
        t = min(arrival, s.due[j])
        if t >= until:
            c.area += c.inside * (until - c.now)
            c.now = until
            return SLICE
        if c.free < 0:
            return POOL
        if low(s.shapes):
            return DRAWS
        if tracing and c.traced + events_per_step(s) > len(s.trace):
            return TRACE
        c.area += c.inside * (t - c.now)
        c.now = t
        if arrival <= s.due[j]:
            _arrive(s, i, warmup, tasks)
            placed(s, i, arguments, own)
            continue
        o = s.server[j]
        if o.finish <= o.fault and o.finish <= o.shift:
            _finish(s, j, warmup)
            freed(s, j, arguments, own)
        elif o.fault <= o.shift:
            if not s.machines[j].up:
                _repair(s, j, faults, arguments, own)
            elif o.silent:
                _notice(s, j, repeats, arguments, own)
            else:
                _fail(s, j, faults, repeats, arguments, own)
        else:
            _shift(s, j)


def events_per_step(s: State) -> int:
    """Return how many events one step of the loop may log: a failure may send every task anew."""
    return 4 * len(s.machines) + 2 * s.count[0].inside + 16


def hand_over(s: State, i: int, j: int) -> int:
    """Take the first waiting task of a class for a machine; return its ticket."""
    x = pop(s, i)
    m, ticket = s.machines[j], s.ticket[x]
    ticket.sent = s.count[0].now
    ticket.expected = 1.0 / s.rate[i, j] if s.rate[i, j] > 0.0 else 0.0
    m.backlog += 1
    m.work += ticket.expected
    s.assigned[i, j] += 1
    if len(s.trace) > 0:
        note(s, s.count[0].now, ASSIGN, ticket.number, i, j)
    return x


def begin(s: State, j: int, x: int, begun: float, start: float) -> None:
    """Start a task on a machine that is taken by it from one time and runs it from another."""
    o, ticket = s.server[j], s.ticket[x]
    s.machines[j].serving = ticket.task_class
    o.ticket = x
    o.begun = begun
    o.left = ticket.work
    o.left_at = start
    rate = s.truth[ticket.task_class, j] * o.speed
    o.finish = o.left_at + o.left / rate + o.after if not o.silent else np.inf
    if o.change < o.finish and foreseeable(s, j):
        o.shift = s.count[0].now  # ``foresee`` is next
    settle(s, j)
    if len(s.trace) > 0:
        note(s, start, START, ticket.number, ticket.task_class, j)


@rare
def interrupt(s: State, j: int, repeats: Generator) -> int:
    """Take the task off a machine that fails; it has to start again."""
    c, o = s.count[0], s.server[j]
    x = o.ticket
    o.ticket = -1
    o.busy += max(c.now - o.begun, 0.0)
    o.finish = np.inf
    s.machines[j].serving = -1
    lose(s, j, x, repeats)
    return x


@rare
def lose(s: State, j: int, x: int, repeats: Generator) -> None:
    """Count the loss of a task that has begun, and draw its work anew unless it keeps it."""
    ticket = s.ticket[x]
    q = s.stream[ticket.task_class]
    if s.count[0].same_work == 0:
        ticket.work = shape_draw(s.shapes, s.table, q.work_shape, repeats)
    q.lost += 1
    if len(s.trace) > 0:
        note(s, s.count[0].now, LOSE, ticket.number, ticket.task_class, j)


@rare
def catch_up(s: State, j: int) -> None:
    """Work off what a machine has done of its queue before it is known to have finished a task.

    A task that has begun has less work left, from the time when it arrived or was last looked at.
    Tasks that keep their work are only looked at when their machine fails, and start again.
    """
    o, now, kept = s.server[j], s.count[0].now, s.count[0].same_work != 0
    end, x = o.finish - o.after, o.head
    while x >= 0 and end < now:
        ticket = s.ticket[x]
        start = max(end, ticket.leaves)
        rate = s.truth[ticket.task_class, j] * o.speed
        if start + ticket.work / rate >= now:
            if start < now:
                if not kept:
                    ticket.work -= (now - start) * rate
                ticket.leaves = now
            return
        end = start + ticket.work / rate
        if not kept:
            ticket.work = 0.0
        ticket.leaves = end
        x = ticket.next


@rare
def _start(s: State, tasks: Generator, faults: Generator) -> None:
    draw_first_arrivals(s, tasks)
    start_chains(s, faults)
    for j in range(len(s.server)):
        o = s.server[j]
        o.fault = np.inf
        if o.mean_uptime < np.inf:
            o.fault = shape_draw(s.shapes, s.table, o.uptime, faults) * o.mean_uptime
        o.report = o.period if o.period > 0.0 and o.chain >= 0 else np.inf
        o.shift = min(o.change, o.report) if not foreseeable(s, j) else np.inf
        settle(s, j)


def _arrive(s: State, i: int, warmup: float, tasks: Generator) -> None:
    c, q = s.count[0], s.stream[i]
    x = take(s)
    ticket = s.ticket[x]
    gap = shape_draw(s.shapes, s.table, q.gap_shape, tasks) * q.gap
    q.next = arrives(s.stream, i, s.shapes, s.table, c.now, gap, tasks)
    ticket.born = c.now
    ticket.work = shape_draw(s.shapes, s.table, q.work_shape, tasks)
    ticket.task_class = i
    ticket.number = c.tasks
    c.tasks += 1
    c.inside += 1
    q.inside += 1
    q.area -= c.now
    if c.now >= warmup:
        q.arrived += 1
    s.classes[i].arrived += 1
    if len(s.trace) > 0:
        note(s, c.now, ARRIVE, ticket.number, i, -1)
    append(s, x)


def _finish(s: State, j: int, warmup: float) -> None:
    c, o, m = s.count[0], s.server[j], s.machines[j]
    ticket = s.ticket[o.ticket]
    q = s.stream[ticket.task_class]
    q.finished += 1
    if ticket.born >= warmup:
        q.responded += 1
        q.response += c.now - ticket.born
        if len(s.responses) > 0:
            s.responses[ticket.task_class, bin_of(c.now - ticket.born)] += 1
        q.waited += ticket.sent - ticket.born
        q.queued += o.begun - ticket.sent
    o.busy += c.now - o.lag - o.begun
    o.finish = np.inf
    m.serving = -1
    m.backlog -= 1
    m.work = m.work - ticket.expected if m.backlog > 0 else 0.0
    c.inside -= 1
    q.inside -= 1
    q.area += c.now
    if len(s.trace) > 0:
        note(s, c.now, FINISH, ticket.number, ticket.task_class, j)
    release(s, o.ticket)
    o.ticket = -1  # what follows settles the machine's next event


@rare
def _fail(
    s: State, j: int, faults: Generator, repeats: Generator, arguments: Any, own: Generator
) -> None:
    c, o = s.count[0], s.server[j]
    if len(s.trace) > 0:
        note(s, c.now, FAIL, -1, -1, j)
    o.back = c.now + shape_draw(s.shapes, s.table, o.repair, faults) * o.mean_repair
    if o.lag > 0.0 and o.ticket >= 0:
        catch_up(s, j)
    if o.detection > 0.0 or o.timeout > 0.0:
        o.silent = True
        o.finish = np.inf
        o.fault = min(_noticed(s, j), o.back)
        settle(s, j)
    else:
        _notice(s, j, repeats, arguments, own)


@rare
def _noticed(s: State, j: int) -> float:
    """Return when the scheduler would notice a failure if the machine did not come back."""
    o, now = s.server[j], s.count[0].now
    if o.timeout == 0.0:
        return now + o.detection
    if o.ticket < 0:
        return np.inf  # only a task that is sent to it can time out
    return max(now, o.begun + o.timeout * s.ticket[o.ticket].expected)


@rare
def _notice(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """Let the scheduler know that a machine has failed."""
    c, o, m = s.count[0], s.server[j], s.machines[j]
    m.up = False
    o.silent = False
    _expect(s, j)
    _announce(s, j, 0.0)
    o.fault = o.back
    if c.planned:
        c.pending = MAKE_PLAN
    m.backlog = 0
    m.work = 0.0
    returned(s, j, repeats, arguments, own)
    settle(s, j)


@rare
def _repair(s: State, j: int, faults: Generator, arguments: Any, own: Generator) -> None:
    c, o, m = s.count[0], s.server[j], s.machines[j]
    if len(s.trace) > 0:
        note(s, c.now, REPAIR, -1, -1, j)
    m.up = True
    _expect(s, j)
    o.fault = c.now + shape_draw(s.shapes, s.table, o.uptime, faults) * o.mean_uptime
    believed = m.availability
    if o.doubt > 0.0:
        error = (2.0 * faults.random() - 1.0) * o.doubt
        believed = min(max(o.believed * (1.0 + error), 0.0), 1.0)
    _believe(s, j, believed)
    if c.planned:
        c.pending = MAKE_PLAN
    freed(s, j, arguments, own)


@rare
def _believe(s: State, j: int, availability: float) -> None:
    """Set the availability that the scheduler believes a machine to have."""
    m = s.machines[j]
    if m.availability != availability:
        m.availability = availability
        for i in range(len(s.classes)):
            s.rate[i, j] = s.nominal[i, j] * availability
        _expect(s, j)
    if m.up:
        _announce(s, j, availability if s.server[j].told else 1.0)


@rare
def _announce(s: State, j: int, availability: float) -> None:
    """Tell planners the availability of a machine."""
    c = s.count[0]
    c.changed = j if c.changed == NONE or c.changed == j else ANY
    s.present[j] = availability


@rare
def _expect(s: State, j: int) -> None:
    """Compute how long tasks are expected to take on a machine."""
    for i in range(len(s.classes)):
        possible = s.machines[j].up and s.rate[i, j] > 0.0
        s.expected[i, j] = 1.0 / s.rate[i, j] if possible else np.inf


@rare
def _shift(s: State, j: int) -> None:
    """Change a machine's availability, or report it."""
    c, o = s.count[0], s.server[j]
    if foreseeable(s, j):
        foresee(s, j, events_per_step(s))
        settle(s, j)
        return
    if o.change <= c.now:
        _change(s, j)
    if o.report <= c.now:
        o.report = c.now + o.period
        if s.machines[j].availability != o.speed:
            _believe(s, j, o.speed)
            if c.planned and o.told and s.machines[j].up:
                c.pending = MAKE_PLAN
    o.shift = min(o.change, o.report)
    settle(s, j)


@rare
def _change(s: State, j: int) -> None:
    """Move a machine's chain to its next state; a running task keeps the work that it has left."""
    c, o = s.count[0], s.server[j]
    runs = o.ticket >= 0 and not o.silent
    rate = s.truth[s.machines[j].serving, j] if runs else 0.0
    if runs and o.lag > 0.0:
        catch_up(s, j)
    if runs and c.now > o.left_at:
        o.left -= (c.now - o.left_at) * rate * o.speed
        o.left_at = c.now
    move_on(s, j)
    if runs and o.left > 0.0:
        o.finish = o.left_at + o.left / (rate * o.speed) + o.after
    if len(s.trace) > 0:
        note(s, c.now, SHIFT, -1, -1, j)


@hook
def placed(s: State, i: int, arguments: Any, own: Generator) -> None:
    """React to a task that waits centrally."""


@hook
def freed(s: State, j: int, arguments: Any, own: Generator) -> None:
    """React to a machine that has nothing to do; settle its next event."""


@hook
def returned(s: State, j: int, repeats: Generator, arguments: Any, own: Generator) -> None:
    """React to a failure: the tasks of the machine come back."""


@hook
def recalled(s: State, room: Any, arguments: Any, own: Generator) -> None:
    """React to a new plan, which was made in these arrays."""


@hook
def asked(s: State, arguments: Any) -> bool:
    """Tell whether the loop must stop for a decision that somebody else makes."""
    return False


def settle(s: State, j: int) -> None:
    """Replay the tournament after one of a machine's times has changed."""
    o = s.server[j]
    t = o.finish
    if o.fault < t:
        t = o.fault
    if o.shift < t:
        t = o.shift
    s.due[j] = t
    k = (len(s.due) + j) >> 1
    while k > 0:
        left, right = s.tree[2 * k], s.tree[2 * k + 1]
        winner = left if s.due[left] <= s.due[right] else right
        if winner == s.tree[k] and winner != j:
            return  # nothing changes further up
        s.tree[k] = winner
        k >>= 1


def take(s: State) -> int:
    """Take a free ticket; the loop has checked that there is one."""
    x = s.count[0].free
    s.count[0].free = s.ticket[x].next
    s.ticket[x].next = -1
    return x


def release(s: State, x: int) -> None:
    """Free a ticket."""
    s.ticket[x].next = s.count[0].free
    s.count[0].free = x


def append(s: State, x: int) -> None:
    """Put a task at the end of its class's queue."""
    i = s.ticket[x].task_class
    q = s.stream[i]
    if q.head < 0:
        q.head = x
    else:
        s.ticket[q.tail].next = x
    q.tail = x
    _count_in(s, i)


@rare
def insert(s: State, x: int) -> None:
    """Put a task that comes back into the queue of its class, in the order of arrival times."""
    ticket = s.ticket[x]
    q = s.stream[ticket.task_class]
    previous, following = -1, q.head
    while following >= 0 and s.ticket[following].born <= ticket.born:
        previous, following = following, s.ticket[following].next
    ticket.next = following
    if previous < 0:
        q.head = x
    else:
        s.ticket[previous].next = x
    if following < 0:
        q.tail = x
    _count_in(s, ticket.task_class)


def pop(s: State, i: int) -> int:
    """Take the first task of a class out of its queue."""
    q = s.stream[i]
    x = q.head
    q.head = s.ticket[x].next
    s.ticket[x].next = -1
    view = s.classes[i]
    view.waiting -= 1
    if q.head < 0:
        view.oldest = np.inf
        s.count[0].waiting &= ~(1 << i)
    else:
        view.oldest = s.ticket[q.head].born
    return x


def _count_in(s: State, i: int) -> None:
    view = s.classes[i]
    view.waiting += 1
    view.oldest = s.ticket[s.stream[i].head].born
    s.count[0].waiting |= 1 << i
