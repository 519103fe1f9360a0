"""What a policy is shown: the same few arrays, filled alike by the simulator and the grid."""

from hashlib import blake2b
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = [
    "CLASS",
    "EXCLUDED",
    "INFORMED",
    "MACHINE",
    "TALLIES",
    "Pairs",
    "Table",
    "View",
    "records",
]

MACHINE = np.dtype(
    [
        ("up", "?"),
        ("serving", "i8"),  # the class in service, −1 for none
        ("backlog", "i8"),  # tasks there, the one in service included
        ("work", "f8"),  # expected time to finish what is there, each task at its full mean
        ("availability", "f8"),  # share of the CPU that is believed to be there
    ],
    align=True,
)
CLASS = np.dtype(
    [
        ("arrival", "f8"),  # believed arrival rate
        ("waiting", "i8"),  # tasks that wait centrally
        ("oldest", "f8"),  # arrival time of the first of them
        ("arrived", "i8"),  # tasks so far, this one included
    ],
    align=True,
)

Pairs = Annotated[Any, "[class, machine]"]
"""A parameter that may differ by class and machine: a policy is given it as [class, machine], and
its user may write one number for all."""


class Table:
    """Whole numbers that a policy looks its answers up in: a parameter that is computed.

    >>> Table([0, 1, -1]) == Table([0, 1, -1])
    True
    """

    def __init__(self, numbers: Any) -> None:
        self.array = np.ascontiguousarray(numbers, dtype=np.int8)
        self.digest = blake2b(self.array.tobytes(), digest_size=8).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"table of {self.array.size}, {self.digest}"


INFORMED, EXCLUDED = 0, 1
"""What a policy may count in ``view.tally``: machines asked about their state; decisions in which
a rule excluded the machine that would have been chosen without it."""
TALLIES = 8


class View(NamedTuple):
    """The state of the system as the scheduler believes it to be."""

    now: float
    machines: Any  # MACHINE records [machine]
    classes: Any  # CLASS records [class]
    rate: NDArray[np.float64]  # effective [class, machine]: nominal × availability
    nominal: NDArray[np.float64]  # [class, machine]
    expected: NDArray[np.float64]  # execution time at that rate; infinite for a machine down
    assigned: NDArray[np.int64]  # tasks sent so far [class, machine]
    plan: NDArray[np.float64]  # the planner's answer [class, machine]; 0 means never
    memory: NDArray[np.float64]  # the policy's own scratch pad [class, machine], 0 at the start
    tally: NDArray[np.float64]  # what the policy counts for the result
    rng: Generator


def records(size: int | tuple[int, ...], dtype: np.dtype[np.void]) -> Any:
    """Make records whose fields are attributes, in compiled and in plain code alike."""
    return np.zeros(size, dtype).view(np.recarray)
