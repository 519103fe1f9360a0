"""The kinds of policies: what each kind is asked, what it answers, and which options it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import mode


@dataclass(frozen=True)
class Option:
    """What a policy of a kind may choose beside its own parameters."""

    default: Any
    choices: tuple[Any, ...] = ()
    """The values that users may choose, as for a parameter; if none, only the decorator sets it. A
    policy whose decorator sets it to None does not have it."""


@dataclass(frozen=True, eq=False, repr=False)
class Kind:
    """A kind of policy. Each world has a mechanism for every kind that it can run."""

    name: str
    sentence: str
    """What policies of this kind decide, and when."""
    subjects: tuple[str, ...]
    """What a policy is asked about: the parameters of its function before the view."""
    answer: str
    """What a possible answer is."""
    mode: mode.Mode
    """The mode of the systems that it runs."""
    options: Mapping[str, Option] = field(default_factory=dict)
    pulls: bool = False
    """Whether idle machines ask for work, so that tasks wait centrally."""
    serves_refused: bool = False
    """Whether a task is served all the same if the answer about it is impossible."""

    @property
    def is_central(self) -> bool:
        """Whether one scheduler decides about single tasks, as a grid does."""
        return self.mode is mode.CENTRAL

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    def __reduce__(self) -> str:
        return self.name.upper()  # pickle looks up the constant of this module


IDLE = ("longest", "fastest", "every", "rotate", "blocking")
"""Which idle machine is asked first when a task waits: the one idle longest; the fastest for the
task's class; every one, in their order, after every event; the head of a queue of machines, which
goes to its back if it can run nothing that waits (MGST); that head alone, until it can (MGST's
first version)."""
PREEMPT = Option(False, (False, True))
"""Whether machines are asked anew at every event, and interrupt their tasks for others."""
ORDER = ("arrival", "oldest_job")
"""Which queued application is served first: the one that came first, or that of the oldest job."""
ASKS = Option(-1)
"""How many permitted machines it asks at most about their state: −1 for all, None if it counts them
itself."""

ON_TIMEOUT = ("resubmit", "wait", "fail", "duplicate")
"""What a grid does with a job that takes too long: stop it and send it again, let it run, stop it
for good, or let it run and start a copy elsewhere."""
LATE = Option(None)
"""What a grid does if its user does not say: one of these words, or a function (task_class,
machine, times, view) that answers one, where ``times`` is how often the job has timed out before;
None if the policy does not say either."""

BY_PAIR = ("classes", "machines")
MEMORY = Option(BY_PAIR)
"""The rows and the columns of ``view.memory``: each is a number, or one of these words."""

PUSH = Kind(
    "push",
    "the scheduler sends each task to a machine when it arrives",
    ("task_class",),
    "a machine that can do it, or -1",
    mode.CENTRAL,
    {"informed": ASKS, "memory": MEMORY, "on_timeout": LATE},
)
PULL = Kind(
    "pull",
    "an idle machine takes a waiting task",
    ("machine",),
    "a class that can do it, or -1",
    mode.CENTRAL,
    {"idle": Option("longest", IDLE), "preempt": PREEMPT, "memory": MEMORY, "on_timeout": LATE},
    pulls=True,
)
PEER = Kind(
    "peer",
    "each machine sends the tasks that arrive at it, by what it last heard of the others",
    ("task_class", "home"),
    "a machine that can do it, or -1",
    mode.DECENTRALISED,
    {"informed": ASKS},
)
BATCH = Kind(
    "batch",
    "the scheduler assigns many waiting tasks, often with deadlines, together",
    ("waiting",),
    "places of waiting tasks, and machines with room that can run them",
    mode.BATCH,
    {"immediate": Option(False)},
)
CHAIN = Kind(
    "chain",
    "a job is a chain of applications, and the scheduler sends each to a node",
    ("job", "stage"),
    "a machine that can do it, or -1",
    mode.CHAINS,
    {"order": Option("arrival", ORDER)},
    serves_refused=True,
)
KINDS = {kind.name: kind for kind in (PUSH, PULL, PEER, BATCH, CHAIN)}
"""Every kind by its name."""
