"""What a policy for chains is shown: nodes, jobs, templates, and estimated times."""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["JOB", "NODE", "TEMPLATE", "ChainView"]

NODE = np.dtype(
    [
        ("up", "?"),
        ("serving", "i8"),  # the job whose application runs there, −1 for none
        ("backlog", "i8"),  # applications there, the running one included
        ("work", "f8"),  # their estimated times, each in full
        ("availability", "f8"),  # share of the CPU
    ],
    align=True,
)
JOB = np.dtype(
    [
        ("number", "i8"),  # in the order of arrival
        ("template", "i8"),
        ("arrived", "f8"),
        ("stage", "i8"),  # its application now, from 0
        ("machine", "i8"),  # where its last application was sent, −1 at first
    ],
    align=True,
)
TEMPLATE = np.dtype(
    [
        ("first", "i8"),  # the row of its first application in ``times``
        ("applications", "i8"),
        ("rate", "f8"),  # as it is believed
        ("latency", "f8"),  # acceptable
        ("customer", "i8"),
        ("arrived", "i8"),  # jobs so far, this one included
    ],
    align=True,
)


class ChainView(NamedTuple):
    """The state of a grid that runs chains of applications."""

    now: float
    machines: Any  # NODE records [machine]
    jobs: Any  # JOB records [job]
    templates: Any  # TEMPLATE records [template]
    times: NDArray[np.float64]  # estimated times to compute [row, machine]
    memory: NDArray[np.float64]  # the policy's own scratch pad [template, machine], 0 at the start
    tally: NDArray[np.float64]  # what the policy counts for the result
    rng: Generator
