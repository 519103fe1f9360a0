"""Round robin, for chains."""

from enum import IntEnum

from .registry import chain
from .view import ChainView


class By(IntEnum):
    """What goes to the nodes in turn."""

    job = 0
    application = 1


@chain(order="oldest_job")
def chain_rr(job: int, stage: int, view: ChainView, by: By = By.job) -> int:
    """Send jobs to the nodes in turn, or (by=application) every application in turn.

    A job whose node is down continues on the next node. Source: Wisnesky.
    """
    before = view.jobs[job].machine
    if by == 0 and before >= 0 and view.machines[before].up:
        return before
    nodes = len(view.machines)
    turn = int(view.memory[0, 0])
    for _ in range(nodes):
        here = turn % nodes
        turn = here + 1
        if view.machines[here].up:
            view.memory[0, 0] = turn
            return here
    return -1
