"""The state of a batch system: plain arrays, so that the loop can stop and continue anywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiler.link import shared
from ..model import System
from ..model.batch_tables import Tables
from ..policies.view import WAITING, BatchView, batch_view, record_type, records
from ..statistics import BINS
from .driver import free_pool
from .event_log import EVENT

POOL = 512

ARRIVAL = record_type(time="f8", quantile="f8", task_class="i8")
"""The quantile says how long the task takes: the inverse of the cdf of any machine's pmf."""
TICKET = record_type(
    born="f8",
    deadline="f8",
    quantile="f8",
    sent="f8",  # when it was assigned to its machine
    task_class="i8",
    number="i8",
    next="i8",
)
SERVER = record_type(
    finish="f8",
    begun="f8",
    busy="f8",
    work="f8",  # believed mean time of what waits there, without the task that runs
    head="i8",  # the task that runs, then those that wait there
    tail="i8",
    queued="i8",
)
STREAM = record_type(
    allowance="f8",  # from arrival to deadline
    arrived="i8",  # of the tasks that arrive after the warm-up
    responded="i8",
    response="f8",
    waited="f8",
    queued="f8",
    finished="i8",
    on_time="i8",
    late="i8",
    discarded="i8",
)
COUNT = record_type(
    now="f8",
    area="f8",  # integral of the number in system
    inside="i8",
    tasks="i8",
    free="i8",  # first free ticket, −1 for none
    waiting="i8",
    known="i8",  # arrivals that are written down
    coming="i8",  # the next of them
    complete="i8",  # whether there are no more than those
    refusals="i8",
    mapped="i8",  # mapping events
    traced="i8",
    wasted="f8",  # time of machines spent on tasks that were late
    width="f8",  # of a bin
    last="f8",  # when the last task so far left
)


@shared
class State(NamedTuple):
    """What the mechanism reads and writes besides what a policy is shown."""

    waiting: Any  # WAITING, written anew for the policy at every mapping event
    place: NDArray[np.int64]  # tickets of the tasks that wait, in their order
    server: Any  # SERVER [machine]
    stream: Any  # STREAM [class]
    ticket: Any  # TICKET, a pool
    arrival: Any  # ARRIVAL
    count: Any  # COUNT [1]
    mean: NDArray[np.float64]  # believed mean execution time [class, machine]
    truth: NDArray[np.float64]  # cdf of the execution times [class, machine, bin]
    length: NDArray[np.int64]  # [class, machine], its bins; 0: cannot run it
    responses: NDArray[np.int64]  # [class, bin]: a histogram; no rows if nobody wants it
    trace: Any  # EVENT


def make_state(
    system: System, truth: Tables, believed: Tables, allowance: NDArray[np.float64]
) -> State:
    """Build the state at time 0."""
    classes, machines = system.shape
    stream, server, count = records(classes, STREAM), records(machines, SERVER), records(1, COUNT)
    stream["allowance"] = allowance
    server["finish"] = np.inf
    server["head"] = server["tail"] = -1
    count["width"] = truth.width
    return State(
        waiting=records(POOL, WAITING),
        place=np.zeros(POOL, np.int64),
        server=server,
        stream=stream,
        ticket=free_pool(POOL, TICKET),
        arrival=records(0, ARRIVAL),
        count=count,
        mean=believed.mean,
        truth=truth.cdf,
        length=truth.bins,
        responses=np.zeros((0, BINS), np.int64),
        trace=records(0, EVENT),
    )


def make_view(believed: Tables, allowance: NDArray[np.float64], limit: int) -> BatchView:
    """Build what a policy is shown at time 0.

    Its random numbers come later: Numba takes long to look at a tuple that holds a generator.
    Pmfs of machines need room for a task that runs and for the longest time to a deadline.
    """
    finite = allowance[np.isfinite(allowance)]
    most = int(believed.bins.max()) + int(finite.max(initial=0.0) / believed.width) + 2
    return batch_view(believed, limit=limit, bins=most, places=POOL)
