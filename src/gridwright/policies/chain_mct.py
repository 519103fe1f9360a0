"""Minimum computing time, for chains."""

import numpy as np

from .registry import chain
from .view import ChainView


@chain(order="oldest_job")
def chain_mct(job: int, stage: int, view: ChainView) -> int:
    """Send every application to the node that computes it fastest, however busy it is.

    Source: Wisnesky.
    """
    row = view.templates[view.jobs[job].template].first + stage
    best, least = -1, np.inf
    for j in range(len(view.machines)):
        if view.machines[j].up and view.times[row, j] < least:
            best, least = j, view.times[row, j]
    return best
