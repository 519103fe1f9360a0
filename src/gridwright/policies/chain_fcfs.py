"""First come, first served, by application."""

from .chain_view import ChainView
from .contract import chain


@chain
def chain_fcfs(job: int, stage: int, view: ChainView) -> int:
    """Let every application join the tail of one queue, from which idle nodes take the head.

    Source: Wisnesky.
    """
    return -1
