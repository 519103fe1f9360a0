"""The views: arrays that a policy reads, filled alike by the simulator and the grid."""

from hashlib import blake2b
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..model.batch_tables import Tables


def record_type(**fields: str) -> np.dtype[np.void]:
    """Return the type of records with these fields, laid out as compiled code reads them."""
    return np.dtype(list(fields.items()), align=True)


MACHINE = record_type(
    up="?",
    serving="i8",  # the class in service, −1 for none
    backlog="i8",  # tasks there, the one in service included
    work="f8",  # expected time to finish what is there, each task at its full mean
    availability="f8",  # share of the CPU that is believed to be there
)
CLASS = record_type(
    arrival="f8",  # believed arrival rate
    waiting="i8",  # tasks that wait centrally
    oldest="f8",  # arrival time of the first of them
    arrived="i8",  # tasks so far, this one included
    cost="f8",  # what one of them costs per time unit in the system
)

Pairs = Annotated[Any, "[class, machine]"]
"""The type of a parameter that may differ by class and machine. The policy gets an array
[class, machine]; users may write one number for all."""

PerClass = Annotated[Any, "[class]"]
"""The type of a parameter that may differ by class. The policy gets an array [class]; users may
write one number for all."""

Count = Annotated[int, "at least 1"]
"""The type of a parameter that counts something, and so is a whole number of at least 1."""


class Table:
    """A computed parameter: whole numbers in which a policy looks up its answers.

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

    def __digest__(self) -> str:
        return self.digest

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
    return np.zeros(size, dtype).view(Records)


class Record(np.record):  # type: ignore[misc]
    """A record whose fields plain Python reads faster: this is most of what a loop does there."""

    __getattribute__ = np.void.__getattribute__

    def __getattr__(self, name: str) -> Any:
        """Return a field; NumPy looks for it after all else, too."""
        try:
            return np.void.__getitem__(self, name)
        except ValueError:
            raise AttributeError(f"'record' object has no attribute '{name}'") from None


class Records(np.recarray[Any, Any]):
    """An array of such records."""

    def __array_finalize__(self, other: Any) -> None:
        """Have the elements of a new array of records be such records."""
        dtype = self.dtype
        if dtype.names is not None and dtype.type is not Record:
            np.ndarray.dtype.__set__(self, np.dtype((Record, dtype)))  # type: ignore[attr-defined]

    def __getitem__(self, index: Any) -> Any:
        """Return a record, an array of such records, or a plain array of the values of a field."""
        found = np.ndarray.__getitem__(self, index)
        if isinstance(found, Records) and found.dtype.names is None:
            return found.view(np.ndarray)
        return found


MOST_TOP = 5
"""How many tasks a policy may order for one machine; 5 have 120 orders."""
LEFT = -2
"""The machine of a task that a policy has set aside at this mapping event."""

WAITING = record_type(
    task_class="i8",
    arrival="f8",
    deadline="f8",  # infinite for none
    machine="i8",  # where it is assigned now, −1 for nowhere
    following="i8",  # the next of its class, −1 for none
)
KIND = record_type(
    first="i8",  # the task of this class that has waited longest, −1 for none
    left="i8",  # a policy's own: the first it has not dealt with
    live="i8",  # a policy's own: the first of those that can still be on time
)
SLOT = record_type(
    queued="i8",  # tasks there, the one that runs included
    free="i8",  # how many more it takes
    ready="f8",  # when it is expected to have done all of them
    serving="i8",  # the class that runs, −1 for none
    begun="f8",  # when that one began
    anchor="f8",  # when the pmfs of ``done`` and ``given`` begin
    bins="i8",  # how long the one of ``done`` is
    given="i8",  # and that of ``given``
    odds="f8",  # how likely all there are on time, those that cannot be left out
    missed="i8",  # how many of them cannot be
    picked="i8",  # a policy's own: candidates
)
HELD = record_type(task_class="i8", deadline="f8")
CHOSEN = record_type(place="i8", machine="i8")


class BatchView(NamedTuple):
    """The machines and the pmfs of the execution times as the scheduler believes them to be."""

    now: float
    machines: Any  # SLOT records [machine]
    classes: Any  # KIND records [class]
    queue: Any  # HELD records [machine, place]: what each machine holds, in order
    mean: NDArray[np.float64]  # mean execution time [class, machine]; infinite: cannot run it
    mass: NDArray[np.float64]  # pmf of it [class, machine, bin]
    cdf: NDArray[np.float64]  # [class, machine, bin]
    bins: NDArray[np.int64]  # [class, machine], how many bins of it there are
    after: NDArray[np.float64]  # [class, machine, bin]: mean of it, given that it is longer
    width: float  # of a bin
    chosen: Any  # CHOSEN records: the answer
    chance: NDArray[np.float64]  # [place, machine], room for probabilities
    done: NDArray[np.float64]  # [machine, bin], room: pmf of when all there is done
    given: NDArray[np.float64]  # [machine, bin], room: the same, given that all are on time
    room: NDArray[np.float64]  # [2, bin]
    best: NDArray[np.int64]  # [machine, MOST_TOP], room for candidates
    order: NDArray[np.int64]  # [MOST_TOP]
    memory: NDArray[np.float64]  # the policy's own scratch pad [class, machine], 0 at the start
    tally: NDArray[np.float64]  # what the policy counts for the result
    rng: Generator


def batch_view(tables: Tables, *, limit: int, bins: int, places: int) -> BatchView:
    """Build a view without random numbers, in which nothing has happened yet.

    ``limit``: the most tasks that a machine holds; ``bins``: the longest pmf of when a machine has
    done all of them; ``places``: the most tasks that wait.
    """
    classes, machines = tables.mean.shape
    return BatchView(
        now=0.0,
        machines=records(machines, SLOT),
        classes=records(classes, KIND),
        queue=records((machines, limit), HELD),
        mean=tables.mean,
        mass=tables.mass,
        cdf=tables.cdf,
        bins=tables.bins,
        after=tables.after,
        width=tables.width,
        chosen=records(places, CHOSEN),
        chance=np.zeros((places, machines)),
        done=np.zeros((machines, bins)),
        given=np.zeros((machines, bins)),
        room=np.zeros((2, bins)),
        best=np.zeros((machines, MOST_TOP), np.int64),
        order=np.zeros(MOST_TOP, np.int64),
        memory=np.zeros((classes, machines)),
        tally=np.zeros(TALLIES),
        rng=None,  # type: ignore[arg-type]
    )


def assign(waiting: Any, view: BatchView, count: int, place: int, machine: int) -> int:
    """Assign a waiting task to a machine, as number ``count``; return ``count + 1``."""
    task, m = waiting[place], view.machines[machine]
    task.machine = machine
    if m.queued < view.queue.shape[1]:
        held = view.queue[machine, m.queued]
        held.task_class = task.task_class
        held.deadline = task.deadline
    m.queued += 1
    m.free -= 1
    m.ready += view.mean[task.task_class, machine]
    answer = view.chosen[count]
    answer.place = place
    answer.machine = machine
    return count + 1


NODE = record_type(
    up="?",
    serving="i8",  # the job whose application runs there, −1 for none
    backlog="i8",  # applications there, the running one included
    work="f8",  # their estimated times, each in full
    availability="f8",  # share of the CPU
    column="i8",  # of the links
)
JOB = record_type(
    number="i8",  # in the order of arrival
    template="i8",
    arrived="f8",
    stage="i8",  # its application now, from 0
    machine="i8",  # where its last application was sent, −1 at first
)
TEMPLATE = record_type(
    first="i8",  # the row of its first application in ``times``
    applications="i8",
    rate="f8",  # as it is believed
    latency="f8",  # acceptable
    customer="i8",
    arrived="i8",  # jobs so far, this one included
)


class ChainView(NamedTuple):
    """The state of a grid that runs chains of applications."""

    now: float
    machines: Any  # NODE records [machine]
    jobs: Any  # JOB records [job]
    templates: Any  # TEMPLATE records [template]
    times: NDArray[np.float64]  # estimated times to compute [row, machine]
    links: NDArray[np.float64]  # ticks that data takes from a node to another one [column, column]
    memory: NDArray[np.float64]  # the policy's own scratch pad [template, machine], 0 at the start
    tally: NDArray[np.float64]  # what the policy counts for the result
    rng: Generator
