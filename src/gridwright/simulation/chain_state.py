"""The state of a grid of chains: plain arrays, so that its loop can stop and continue anywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compiler.checks import readonly
from ..compiler.link import shared
from ..policies.view import ChainView, record_type

SERVER = record_type(
    job="i8",  # whose application runs there, −1 for none
    begun="f8",  # when it was started
    finish="f8",  # when it ends, infinite for none
    hands_on="f8",  # when its successor may start, infinite if that is when it ends
    foreseen="f8",  # the same as long as nobody else says when the application ends
    fault="f8",  # when the node fails next, or is repaired
    busy="f8",  # time spent busy
    mean_uptime="f8",
    mean_repair="f8",
    uptime="i8",  # shapes
    repair="i8",
)
SOURCE = record_type(
    next="f8",  # the tick of its next job
    gap="f8",  # mean time between jobs, before they are put into ticks
    template="i8",  # −1: drawn in proportion to the rates
)
STREAM = record_type(
    share="f8",  # cumulative share of the arrivals
    arrived="i8",  # jobs after the warm-up, and what became of them
    ok="i8",
    late="i8",
    response="f8",
    waited="f8",  # from ready until sent to the node, over all applications of a job
    queued="f8",  # from sent until begun there
    finished="i8",
)
TICKET = record_type(
    active="?",
    key="i8",  # who comes first where it queues
    left="i8",  # heap of those who queue there; left: the next free ticket
    right="i8",
    sent="f8",  # when its application was sent to the node where it is
    queued="f8",  # time that its applications queued at the nodes where they ran
    ran="f8",  # time that its applications ran, without interrupted ones and overlaps
    origin="i8",  # the node that has its input, −1 for none
    since="f8",  # when its input was or will be complete
    travels="f8",  # when its input arrives at the node where it was sent
    order="i8",  # while it travels: its key where it will queue
)
COUNT = record_type(
    now="f8",
    area="f8",  # integral of the number of jobs in the system
    started="i8",
    stirred="i8",  # whether something happened at this tick, so that nodes may start
    inside="i8",
    tasks="i8",  # jobs that have arrived
    ready="i8",  # applications that have become ready
    free="i8",  # first free ticket, −1 for none
    spare="i8",  # how many are free
    asked="i8",
    held="i8",
    refusals="i8",
    lost="i8",
    traced="i8",
    by_age="?",  # the oldest job's application comes first
    overlaps="?",  # some applications may start before their predecessor ends
    partial="?",  # some nodes cannot run some applications
    reading="i8",  # of the perturbation, 0 for none
    variation="f8",
)


@shared
class ChainState(NamedTuple):
    """Everything that the loop reads and writes."""

    machines: Any  # the view's part
    jobs: Any
    templates: Any
    links: NDArray[np.float64]  # [column, column]
    overlap: NDArray[np.float64]  # [template]
    times: NDArray[np.float64]
    memory: NDArray[np.float64]
    tally: NDArray[np.float64]
    server: Any  # SERVER [machine]
    source: Any  # SOURCE
    stream: Any  # STREAM [template]
    ticket: Any  # TICKET, a pool, beside jobs
    draws: NDArray[np.float64]  # [job, application, 2]: g and U of its perturbation
    root: NDArray[np.int64]  # [machine]: the first of its queue, −1 for none; then the central
    # queue, room to move a queue, and the jobs whose input travels
    window: NDArray[np.float64]  # [customer]: length
    arrived: NDArray[np.int64]  # [customer, window]: jobs that arrived in it
    failed: NDArray[np.int64]  # [customer, window]: those of them that were late
    count: Any  # COUNT [1]
    shapes: Any
    table: NDArray[np.float64]
    responses: NDArray[np.int64]  # [template, bin]: a histogram; no rows if nobody wants it
    trace: Any  # EVENT


def shown(s: ChainState, own: Generator) -> ChainView:
    """Return what a policy is shown now."""
    return ChainView(
        s.count[0].now,
        readonly(s.machines),
        readonly(s.jobs),
        readonly(s.templates),
        readonly(s.times),
        readonly(s.links),
        s.memory,
        s.tally,
        own,
    )
