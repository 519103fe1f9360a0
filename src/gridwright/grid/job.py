"""A job, the stages it goes through, and the instructions and decisions about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Stage(StrEnum):
    """Where a job is. The last three stages are final."""

    blocked = "blocked"  # until the jobs whose results it needs have ended
    waiting = "waiting"  # centrally, for a machine
    queued = "queued"  # at or for a machine, behind others
    sent = "sent"  # to a machine, which may have started it
    finished = "finished"
    failed = "failed"
    cancelled = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether a job stays in this stage."""
        return self in FINAL


FINAL = frozenset((Stage.finished, Stage.failed, Stage.cancelled))


class Options(NamedTuple):
    """How one job is treated; None: as the grid treats its jobs."""

    priority: int = 0
    """Jobs of a higher priority go first."""
    retries: int | None = None
    timeout: float | None = None
    """Seconds that an attempt may take."""
    machine: str = ""
    """The only machine that may run it."""
    client: str = ""
    """Who submitted it: clients take turns."""
    request: str = ""
    """The request of a client that submitted it, which may come twice."""
    host: str = ""
    """The only machine that may run it, if that machine has several slots."""
    deadline: float | None = None
    """Time units after its submission; a job that has not started by then may be discarded."""
    chain: int | None = None
    """The number of the first job of its chain; −1 for the first job itself."""
    stage: int = 0
    """Which stage of its chain it is, from 1 on; 0 if it is of no chain."""

    def as_json(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        return {name: value for name, value in self._asdict().items() if value != DEFAULTS[name]}


GIVEN_UP = re.compile(r"job \d+ (\(stage \d+ of its chain\) )?was given up after ")
DISCARDED = re.compile(r"job \d+ was discarded: ")
STAGE = re.compile(r"stage \d+ of its chain failed: job \d+")
"""How `Job.why_given_up`, `Job.why_discarded` and `Job.named_stage` begin: a future tells by these
words which error it raises, also for the jobs of an old journal."""

PUNCTUALITIES = ("on time", "late", "discarded")
"""How jobs with a deadline end, if they do not fail."""
DEFAULTS = Options()._asdict()
PLAIN = Options()
"""The options of a job without any."""


class Copy(NamedTuple):
    """An attempt that timed out, and may still be the first to answer."""

    machine: int
    sent: float
    started: float


@dataclass(slots=True, eq=False)
class Job:
    """A job in the book."""

    number: int
    task_class: int
    submitted: float
    stage: Stage = Stage.waiting
    machine: int = -1
    attempt: int = 0
    """How often it was sent."""
    assigned: float = float("nan")
    """When it was last given to a machine, perhaps behind others there."""
    free: float = float("nan")
    """When that machine became idle."""
    heard_free: float = float("nan")
    """When the grid learnt that it was idle."""
    sent: float = float("nan")
    started: float = float("nan")
    ended: float = float("nan")
    heard: float = float("nan")
    """When the grid learnt of its end."""
    settled: float = float("nan")
    """When its result was written to the journal."""
    expected: float = 0.0
    """How long its execution is expected to take on its machine."""
    lost: int = 0
    """How often the machine that had it went down."""
    timed_out: int = 0
    deaths: int = 0
    """How often its process died while it ran the job."""
    causes: tuple[str, ...] = ()
    """How each attempt ended that used up a retry: its process died, or it timed out."""
    since: float = field(init=False)
    """Since when it waits, which is its place among the jobs of its class."""
    copies: dict[int, Copy] = field(default_factory=dict)
    """Earlier attempts that may still answer first."""
    options: Options = PLAIN
    key: str | None = None
    """The name under which its result is kept."""
    needs: tuple[int, ...] = ()
    """The jobs whose results are among its arguments."""
    missing: int = 0
    """How many of them have not ended."""
    pinned: int = -1
    """The number of the only machine that may run it."""
    is_ahead: bool = False
    """Whether it was sent to its machine ahead of need."""
    place: float = float("nan")
    """Its place among the stages of chains, which it keeps if it is tried again."""
    is_discarded: bool = False
    """Whether it ended because its deadline had passed."""
    stays: bool = False
    """Whether it was called back, and is not sent ahead again."""

    def __post_init__(self) -> None:
        self.since = self.submitted

    @property
    def deadline(self) -> float:
        """When it should have ended; infinite without a deadline."""
        allowed = self.options.deadline
        return math.inf if allowed is None else self.submitted + allowed

    @property
    def punctuality(self) -> str:
        """How a job with a deadline has ended, as one of `PUNCTUALITIES`; else empty."""
        if self.options.deadline is None or self.stage not in (Stage.finished, Stage.failed):
            return ""
        if self.is_discarded:
            return "discarded"
        if self.stage == Stage.failed:
            return ""
        return "late" if self.ended > self.deadline else "on time"

    def why_discarded(self) -> str:
        """Say why it was discarded."""
        allowed = self.options.deadline
        return f"job {self.number} was discarded: its deadline, {allowed:g} s after it was " + (
            "submitted, had passed before it could start"
        )

    def why_given_up(self) -> str:
        """Say how the attempts ended that used up its retries."""
        causes = Counter(self.causes)
        words = [f"{why} ({n} times)" if n > 1 else why for why, n in causes.items()]
        times = f"{len(self.causes)} attempts" if len(self.causes) > 1 else "1 attempt"
        where = f" (stage {self.options.stage} of its chain)" if self.options.stage else ""
        return f"job {self.number}{where} was given up after {times}: {', '.join(words)}"

    def named_stage(self, error: str) -> str:
        """Return the traceback of a job; that of a stage begins with a line that names it."""
        stage = self.options.stage
        return f"stage {stage} of its chain failed: job {self.number}\n{error}" if stage else error


class Send(NamedTuple):
    """An instruction to the executor: run a job on a machine."""

    job: int
    machine: int
    attempt: int


class Cancel(NamedTuple):
    """An instruction to the executor: stop an attempt."""

    job: int
    machine: int
    attempt: int


class CallBack(NamedTuple):
    """An instruction to the executor: return a job that was sent ahead, unless it has begun."""

    job: int
    machine: int
    attempt: int


Instruction = Send | Cancel | CallBack


class Decision(NamedTuple):
    """The answer of a policy."""

    time: float
    asked: int
    """The machine that asked for a job, or the class of a job that asked for a machine."""
    candidates: tuple[int, ...]
    """The classes that the machine could have been given, or the machines that the job could."""
    choice: int
    """The class or the machine; -1 for none."""
    plan: int
    """The number of the plan that was in force."""
