"""The loop of a grid of chains: from one tick at which something happens to the next.

At a tick each application that ends frees its node, in the order of the nodes, and one that may
overlap its successor passes data on; data arrives at nodes; nodes fail or are repaired; jobs
arrive; then idle nodes start what waits for them. The policy is asked about every application that
becomes ready.

Names: ``s`` state, ``c`` its count, ``j`` node, ``i`` template, ``k`` source of jobs, ``o`` server
(what the engine knows of a node), ``own`` the random numbers of the policy.
"""

from math import ceil, floor
from typing import Any

import numpy as np
from numpy.random import Generator

from ..compiler.link import allocates_nothing, hook, slow_to_compile
from ..policies.view import ChainView
from ..statistics.histogram import bin_of
from .chain_state import ChainState, shown
from .event_log import ARRIVE, ASSIGN, FAIL, FINISH, LOSE, REPAIR, START, note
from .interrupts import DRAWS, POOL, SLICE, TRACE
from .sampling import low, shape_draw

TINY = 1e-9
"""A time this close to a whole number of ticks counts as that number."""


@allocates_nothing
@slow_to_compile
def loop(
    s: ChainState,
    arguments: Any,
    until: float,
    warmup: float,
    horizon: float,
    tasks: Generator,
    faults: Generator,
    repeats: Generator,
    own: Generator,
) -> int:
    """Run until a time, or until something is needed; return the reason (see ``interrupts``)."""
    c = s.count[0]
    if low(s.shapes):
        return DRAWS
    if c.started == 0:
        c.started = 1
        _start(s, tasks, faults)
    machines = len(s.machines)
    while True:
        t = c.now if c.stirred else next_tick(s)
        if t > until:
            c.area += c.inside * (until - c.now)
            c.now = until
            return SLICE
        if c.spare < len(s.source) + (machines if c.overlaps else 0):
            return POOL
        if low(s.shapes):
            return DRAWS
        if len(s.trace) > 0 and c.traced + events_per_step(s) > len(s.trace):
            return TRACE
        c.area += c.inside * (t - c.now)
        c.now = t
        for j in range(machines):
            if s.server[j].finish <= t:
                _finish(s, j, warmup, arguments, own)
        if c.overlaps:
            for j in range(machines):
                if s.server[j].hands_on <= t:
                    _hand_on(s, j, arguments, own)
        _deliver(s, arguments, own)
        if _change(s, faults, arguments, own):
            c.stirred = 1  # and perhaps another node, before anything starts
            continue
        if t >= horizon:  # what ends with the run counts, nothing begins then
            c.area += c.inside * (until - t)
            c.now = until
            return SLICE
        for k in range(len(s.source)):
            if s.source[k].next <= t:
                _arrive(s, k, warmup, tasks, repeats, arguments, own)
        for j in range(machines):
            if s.server[j].job < 0 and s.machines[j].up:
                _serve(s, j)
        c.stirred = 0


def events_per_step(s: ChainState) -> int:
    """Return how many events one step of the loop may log."""
    return 4 * (len(s.machines) + len(s.source)) + s.count[0].inside


def _start(s: ChainState, tasks: Generator, faults: Generator) -> None:
    """Draw when the first jobs arrive, and when nodes first fail."""
    for k in range(len(s.source)):
        s.source[k].next = floor(tasks.standard_exponential() * s.source[k].gap)
    for j in range(len(s.server)):
        o = s.server[j]
        if o.mean_uptime < np.inf:
            o.fault = shape_draw(s.shapes, s.table, o.uptime, faults) * o.mean_uptime


def next_tick(s: ChainState) -> float:
    """Return the next tick at which something happens."""
    t = np.inf
    for k in range(len(s.source)):
        t = min(t, s.source[k].next)
    for j in range(len(s.server)):
        t = min(t, s.server[j].finish, s.server[j].fault, s.server[j].hands_on)
    if s.root[len(s.machines) + 2] >= 0:
        t = min(t, s.ticket[s.root[len(s.machines) + 2]].travels)
    return ceil(t) if t < np.inf else t


def _arrive(
    s: ChainState,
    k: int,
    warmup: float,
    tasks: Generator,
    repeats: Generator,
    arguments: Any,
    own: Generator,
) -> None:
    """Let a job arrive, and ask the policy about its first application."""
    c, source = s.count[0], s.source[k]
    i = source.template
    if i < 0:
        u = tasks.random()
        i = 0
        while i < len(s.stream) - 1 and u >= s.stream[i].share:
            i += 1
    source.next += 1.0 + floor(tasks.standard_exponential() * source.gap)
    job = take(s)
    j = s.jobs[job]
    j.number, j.template, j.arrived, j.stage, j.machine = c.tasks, i, c.now, 0, -1
    s.ticket[job].ran = s.ticket[job].queued = 0.0
    s.ticket[job].origin, s.ticket[job].since = -1, c.now
    if c.reading > 0:
        for stage in range(s.templates[i].applications):
            s.draws[job, stage, 0] = _bounded_normal(repeats)
            s.draws[job, stage, 1] = 2.0 * repeats.random() - 1.0
    c.tasks += 1
    c.inside += 1
    s.templates[i].arrived += 1
    if c.now >= warmup:
        s.stream[i].arrived += 1
        customer = s.templates[i].customer
        s.arrived[customer, int(c.now / s.window[customer])] += 1
    if len(s.trace) > 0:
        note(s, c.now, ARRIVE, j.number, i, -1)
    _ready(s, job, arguments, own)


def _bounded_normal(rng: Generator) -> float:
    """Draw from the standard normal distribution within (−1, 1)."""
    while True:
        g = rng.standard_normal()
        if -1.0 < g < 1.0:
            return g


def _ready(s: ChainState, job: int, arguments: Any, own: Generator) -> None:
    """Ask the policy about an application that has become ready."""
    c = s.count[0]
    s.ticket[job].key = s.jobs[job].number if c.by_age else c.ready
    c.ready += 1
    c.stirred = 1
    _ask(s, job, arguments, own)


def _ask(s: ChainState, job: int, arguments: Any, own: Generator) -> None:
    """Ask the policy for a node, check its answer, and let the application queue there."""
    c, machines = s.count[0], len(s.machines)
    c.asked += 1
    answer = decide(job, s.jobs[job].stage, shown(s, own), *arguments)
    possible = 0 <= answer < machines
    if possible:
        possible = s.machines[answer].up and _estimate(s, job, answer) < np.inf
    if not possible:
        c.refusals += answer != -1
        c.held += 1
        enqueue(s, machines, job)
        return
    s.jobs[job].machine = answer
    s.ticket[job].sent = c.now
    s.machines[answer].backlog += 1
    s.machines[answer].work += _estimate(s, job, answer)
    late = _distance(s, job, answer)
    if late > 0.0:
        _send(s, job, late)
    else:
        enqueue(s, answer, job)
    if len(s.trace) > 0:
        note(s, c.now, ASSIGN, s.jobs[job].number, s.jobs[job].template, answer)


def _estimate(s: ChainState, job: int, j: int) -> float:
    """Return how long a job's application should take on a node, infinite if it cannot run."""
    return s.times[s.templates[s.jobs[job].template].first + s.jobs[job].stage, j]


def _distance(s: ChainState, job: int, j: int) -> float:
    """Return how long the input of a job's application takes to a node."""
    origin = s.ticket[job].origin
    if origin < 0 or origin == j:
        return 0.0
    return s.links[s.machines[origin].column, s.machines[j].column]


def _send(s: ChainState, job: int, late: float) -> None:
    """Let the input of an application travel; those that arrive first come first."""
    ticket = s.ticket[job]
    ticket.travels = ceil(s.count[0].now + late - TINY)
    ticket.order = ticket.key
    ticket.key = (int(ticket.travels) << 31) + s.jobs[job].number % (1 << 31)
    enqueue(s, len(s.machines) + 2, job)


def _deliver(s: ChainState, arguments: Any, own: Generator) -> None:
    """Let applications whose input has arrived queue; ask again if the node is down."""
    travelling = len(s.machines) + 2
    while s.root[travelling] >= 0 and s.ticket[s.root[travelling]].travels <= s.count[0].now:
        job = pop(s, travelling)
        s.ticket[job].key = s.ticket[job].order
        j = s.jobs[job].machine
        if s.machines[j].up:
            enqueue(s, j, job)
        else:
            _forget_at(s, job, j)
            _ask(s, job, arguments, own)


def _serve(s: ChainState, j: int) -> None:
    """Let an idle node start the first application of its queue, or of the central queue."""
    c, o = s.count[0], s.server[j]
    own, queue, late = s.root[j], len(s.machines), 0.0
    central = _first_for(s, j) if c.partial else s.root[queue]
    if own < 0 and central < 0:
        return
    if own >= 0 and (central < 0 or s.ticket[own].key < s.ticket[central].key):
        job = pop(s, j)
    else:
        job = _remove(s, queue, central) if c.partial else pop(s, queue)
        s.jobs[job].machine = j
        s.ticket[job].sent = s.count[0].now
        s.machines[j].backlog += 1
        s.machines[j].work += _estimate(s, job, j)
        late = _distance(s, job, j)  # the node waits for its input
    time = _estimate(s, job, j)
    if c.reading > 0:
        g, u = s.draws[job, s.jobs[job].stage, 0], s.draws[job, s.jobs[job].stage, 1]
        time = max(1.0, time * perturbed(c.reading, c.variation, g, u))
    o.job = job
    o.begun = c.now
    o.finish = c.now + max(1.0, ceil(time + late - TINY))
    if c.overlaps:
        _overlap(s, j)
    o.foreseen = o.finish
    s.machines[j].serving = job
    if len(s.trace) > 0:
        note(s, c.now, START, s.jobs[job].number, s.jobs[job].template, j)


def _overlap(s: ChainState, j: int) -> None:
    """Let an application end after its predecessor, and say when its successor may start."""
    c, o = s.count[0], s.server[j]
    it = s.jobs[o.job]
    since = s.ticket[o.job].since
    if since > c.now:
        o.finish = max(o.finish, ceil(since + _distance(s, o.job, j) - TINY))
    share = s.overlap[it.template]
    if share > 0.0 and it.stage + 1 < s.templates[it.template].applications:
        at = c.now + max(1.0, ceil((o.finish - c.now) * (1.0 - share) - TINY))
        if at < o.finish:
            o.hands_on = at


def _hand_on(s: ChainState, j: int, arguments: Any, own: Generator) -> None:
    """Let the successor of a running application be ready; it has a ticket of its own from now."""
    o, job = s.server[j], s.server[j].job
    o.hands_on = np.inf
    successor = take(s)
    old, new, it, following = s.ticket[job], s.ticket[successor], s.jobs[job], s.jobs[successor]
    following.number, following.template, following.arrived = it.number, it.template, it.arrived
    following.stage, following.machine = it.stage + 1, j
    for stage in range(s.draws.shape[1]):
        s.draws[successor, stage, 0] = s.draws[job, stage, 0]
        s.draws[successor, stage, 1] = s.draws[job, stage, 1]
    start = max(o.begun, old.since)
    new.ran = old.ran + (o.foreseen - start)
    new.queued = old.queued + (start - max(old.sent, old.since))
    new.origin, new.since = j, o.foreseen
    old.active = False
    _ready(s, successor, arguments, own)


def _first_for(s: ChainState, j: int) -> int:
    """Return the first application of the central queue that a node can run, −1 for none."""
    queue, scratch, found = len(s.machines), len(s.machines) + 1, -1
    s.root[scratch] = -1
    while s.root[queue] >= 0 and found < 0:
        job = pop(s, queue)
        if _estimate(s, job, j) < np.inf:
            found = job
        enqueue(s, scratch, job)
    s.root[queue] = merged(s, s.root[queue], s.root[scratch])
    s.root[scratch] = -1
    return found


def _remove(s: ChainState, queue: int, job: int) -> int:
    """Take a job out of a queue that has it."""
    scratch = len(s.machines) + 1
    s.root[scratch] = -1
    while s.root[queue] != job:
        enqueue(s, scratch, pop(s, queue))
    pop(s, queue)
    s.root[queue] = merged(s, s.root[queue], s.root[scratch])
    s.root[scratch] = -1
    return job


def perturbed(reading: int, v: float, g: float, u: float) -> float:
    """Return a true time as a multiple of its estimate: as printed, halved, or a mixture.

    >>> [round(perturbed(reading, 0.5, 0.4, -0.2), 3) for reading in (1, 2, 3)]
    [1.0, 1.05, 1.1]
    """
    if reading == 1:
        return ((1.0 - v) * v * g + 1.0 + v * u + 1.0) / 2.0
    if reading == 2:
        return ((1.0 - v) * g + 1.0 + v * u + 1.0) / 2.0
    return (1.0 - v) * (1.0 + g) + v * (1.0 + u)


def _leave(s: ChainState, j: int) -> int:
    """Take the application off a node, finished or lost."""
    o = s.server[j]
    job = o.job
    o.job, o.finish, o.hands_on = -1, np.inf, np.inf
    o.busy += s.count[0].now - o.begun
    s.machines[j].serving = -1
    _forget_at(s, job, j)
    return job


def _forget_at(s: ChainState, job: int, j: int) -> None:
    s.machines[j].backlog -= 1
    s.machines[j].work -= _estimate(s, job, j)
    if s.machines[j].backlog == 0:
        s.machines[j].work = 0.0  # no rounding stays behind


def _finish(s: ChainState, j: int, warmup: float, arguments: Any, own: Generator) -> None:
    """End an application: its successor is ready, or the job is done."""
    c = s.count[0]
    c.stirred = 1
    begun = s.server[j].begun
    job = _leave(s, j)
    it, ticket = s.jobs[job], s.ticket[job]
    if len(s.trace) > 0:
        note(s, c.now, FINISH, it.number, it.template, j)
    if not ticket.active:  # its successor has been ready before
        release(s, job)
        return
    start = max(begun, ticket.since)
    ticket.ran += c.now - start
    ticket.queued += start - max(ticket.sent, ticket.since)
    ticket.origin, ticket.since = j, c.now
    it.stage += 1
    if it.stage < s.templates[it.template].applications:
        _ready(s, job, arguments, own)
        return
    stream, template = s.stream[it.template], s.templates[it.template]
    latency = c.now - it.arrived
    c.inside -= 1
    stream.finished += 1
    if it.arrived >= warmup:
        stream.response += latency
        if len(s.responses) > 0:
            s.responses[it.template, bin_of(latency)] += 1
        stream.waited += latency - s.ticket[job].ran - s.ticket[job].queued
        stream.queued += s.ticket[job].queued
        if latency <= template.latency:
            stream.ok += 1
        else:
            stream.late += 1
            s.failed[template.customer, int(it.arrived / s.window[template.customer])] += 1
    release(s, job)


def _change(s: ChainState, faults: Generator, arguments: Any, own: Generator) -> bool:
    """Let the first node that is due fail or be repaired; tell whether one was."""
    c = s.count[0]
    for j in range(len(s.server)):
        o = s.server[j]
        if o.fault <= c.now:
            if s.machines[j].up:
                gap = shape_draw(s.shapes, s.table, o.repair, faults) * o.mean_repair
                _fail(s, j, arguments, own)
            else:
                gap = shape_draw(s.shapes, s.table, o.uptime, faults) * o.mean_uptime
                s.machines[j].up = True
                if len(s.trace) > 0:
                    note(s, c.now, REPAIR, -1, -1, j)
            o.fault += gap
            _offer_again(s, len(s.machines), arguments, own)
            return True
    return False


def _fail(s: ChainState, j: int, arguments: Any, own: Generator) -> None:
    """Let a node fail; ask the policy again about its application and its queue."""
    c, o = s.count[0], s.server[j]
    s.machines[j].up = False
    if len(s.trace) > 0:
        note(s, c.now, FAIL, -1, -1, j)
    if o.job >= 0:
        if len(s.trace) > 0:
            note(s, c.now, LOSE, s.jobs[o.job].number, s.jobs[o.job].template, j)
        c.lost += 1
        _ask(s, _leave(s, j), arguments, own)
    _offer_again(s, j, arguments, own)


def _offer_again(s: ChainState, queue: int, arguments: Any, own: Generator) -> None:
    """Ask the policy again about every job of a queue, in the order of the queue."""
    rest = s.root[queue]
    s.root[queue] = -1
    scratch = len(s.machines) + 1
    s.root[scratch] = rest
    while s.root[scratch] >= 0:
        job = pop(s, scratch)
        if queue < len(s.machines):
            _forget_at(s, job, queue)
        _ask(s, job, arguments, own)


@hook
def decide(job: int, stage: int, view: ChainView) -> int:
    """Stand in for the policy."""
    return -1


def take(s: ChainState) -> int:
    """Take a free ticket; the loop has made sure that there is one."""
    c = s.count[0]
    job = c.free
    c.free = s.ticket[job].left
    c.spare -= 1
    s.ticket[job].left = s.ticket[job].right = -1
    s.ticket[job].active = True
    return job


def release(s: ChainState, job: int) -> None:
    """Free the ticket of a finished job."""
    c = s.count[0]
    s.ticket[job].active = False
    s.ticket[job].left = c.free
    c.free = job
    c.spare += 1


def enqueue(s: ChainState, queue: int, job: int) -> None:
    """Let a job join a queue, at the place that its key gives it."""
    s.root[queue] = merged(s, s.root[queue], job)


def pop(s: ChainState, queue: int) -> int:
    """Take the first job out of a queue that has one."""
    job = s.root[queue]
    s.root[queue] = merged(s, s.ticket[job].left, s.ticket[job].right)
    s.ticket[job].left = s.ticket[job].right = -1
    return job


def merged(s: ChainState, one: int, other: int) -> int:
    """Merge two heaps and return the first of all; the children are swapped on the way down."""
    first, last = -1, -1
    while one >= 0 and other >= 0:
        if s.ticket[other].key < s.ticket[one].key:
            one, other = other, one
        if last < 0:
            first = one
        else:
            s.ticket[last].left = one
        last = one
        one = s.ticket[last].right
        s.ticket[last].right = s.ticket[last].left
    rest = one if one >= 0 else other
    if last < 0:
        return rest
    s.ticket[last].left = rest
    return first
