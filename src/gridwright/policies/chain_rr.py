"""Round robin, for chains."""

from enum import IntEnum

import numpy as np

from .registry import chain
from .view import ChainView


class By(IntEnum):
    """What goes to the nodes in turn."""

    job = 0
    application = 1


@chain(order="oldest_job")
def chain_rr(job: int, stage: int, view: ChainView, by: By = By.job) -> int:
    """Send jobs to the nodes in turn, or (by=application) every application in turn.

    A job whose node is down or cannot run its next application continues on the next node that
    can. Source: Wisnesky.
    """
    before = view.jobs[job].machine
    row = view.templates[view.jobs[job].template].first + stage
    if by == 0 and before >= 0 and view.machines[before].up and view.times[row, before] < np.inf:
        return before
    nodes = len(view.machines)
    turn = int(view.memory[0, 0])
    for _ in range(nodes):
        here = turn % nodes
        turn = here + 1
        if view.machines[here].up and view.times[row, here] < np.inf:
            view.memory[0, 0] = turn
            return here
    return -1
