"""First come, first served, for chains."""

from .registry import chain
from .view import ChainView


@chain
def chain_fcfs(job: int, stage: int, view: ChainView) -> int:
    """Queue every application centrally; idle nodes take the one that has waited longest.

    Source: Wisnesky.
    """
    return -1
