"""First come, first served, by application."""

from .policy import chain
from .view import ChainView


@chain
def chain_fcfs(job: int, stage: int, view: ChainView) -> int:
    """Let every application join the tail of one queue, from which idle nodes take the head.

    Source: Wisnesky.
    """
    return -1
