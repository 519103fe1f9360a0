"""Work outside of the event loop: the queue of background tasks, and short work with a time limit.

Simulations, calibrations, reproduced tables and reports are all tasks of one queue. Each task is
also its own record: what it is, its state, progress, error and result. The pages and the REST API
read the same records. Runs are not among them: they are processes that outlive this server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread, Timer
from typing import Any, ClassVar, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from ..allocation import time_limit
from ..model import GridwrightError, InputError

KEPT = 50
"""Tasks of each kind that are remembered; the oldest that has ended is forgotten first."""
AT_ONCE = 2
"""Threads for short work."""
MOST_WAITING = 20
SECONDS = 30.0
"""The time limit of short work."""

T = TypeVar("T")
AnyTask = TypeVar("AnyTask", bound="Task")


class StoppedError(Exception):
    """Raised inside a task that was stopped."""


@dataclass(kw_only=True)
class Task(ABC):
    """A task that runs in a thread of its own, and its record."""

    kind: ClassVar[str]
    """What it is, in one word: ``simulation``, for example."""
    at_once: ClassVar[int] = 1
    """How many tasks of this kind run at the same time; the others wait."""
    grace: ClassVar[float | None] = None
    """Seconds after which a stopped task is given up; None: it is waited for."""

    number: int = 0
    state: str = "waiting"
    """``waiting``, ``running``, ``done``, ``stopped`` or ``failed``."""
    share: float = 0.0
    """How much of the work is done, from 0 to 1."""
    error: str = ""
    stopping: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    @abstractmethod
    def work(self) -> None:
        """Do the work; call ``go_on`` often, so that the task can be stopped."""

    def refusal(self, others: list[Task]) -> str:
        """Return why the task cannot start while others of its kind are unfinished, if so."""
        return ""

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, in whichever way."""
        return self.state in ("done", "stopped", "failed")

    def go_on(self) -> None:
        """Raise an error if the task was stopped."""
        if self.stopping.is_set():
            raise StoppedError

    def run(self) -> None:
        """Do the work and record how it ended."""
        if self.is_over:
            return
        self.state = "running"
        try:
            self.work()
            self.share = 1.0
            self.end("done")
        except StoppedError:
            self.end("stopped")
        except GridwrightError as error:
            self.end("failed", str(error))
        except Exception as error:  # a page that waits for ever would be worse
            self.end("failed", f"{type(error).__name__}: {error}")

    def end(self, state: str, error: str = "") -> None:
        """Record how the task ended; a task that was given up and returns later stays as it is."""
        if not self.is_over:
            self.error, self.state = error, state
            self.ended.set()

    def record(self) -> dict[str, Any]:
        """Return state, error and progress as JSON."""
        return {"state": self.state, "error": self.error, "share": self.share}


class Queue:
    """The tasks of a server, by kind and number. The finished ones are remembered for a while."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, dict[int, Task]] = {}
        self._last: dict[str, int] = {}

    def start(self, task: AnyTask) -> AnyTask:
        """Add a task, which runs as soon as the others of its kind let it."""
        with self._lock:
            known = self._known.setdefault(task.kind, {})
            if words := task.refusal([each for each in known.values() if not each.is_over]):
                raise InputError(words)
            over = [number for number, each in known.items() if each.is_over]
            if len(known) >= KEPT and not over:
                raise InputError(f"{KEPT} {task.kind}s are waiting; stop some of them first")
            if len(known) >= KEPT:
                del known[over[0]]
            task.number = self._last[task.kind] = self._last.get(task.kind, 0) + 1
            known[task.number] = task
        self._begin_next(task.kind)
        return task

    def stop(self, task: AnyTask) -> AnyTask:
        """Stop a task and return it; its results so far stay."""
        task.stopping.set()
        with self._lock:
            if task.state == "waiting":
                task.end("stopped")
        if task.grace is not None and not task.is_over:
            timer = Timer(task.grace, self._give_up, (task,))
            timer.daemon = True
            timer.start()
        return task

    def find(self, kind: type[AnyTask], number: int) -> AnyTask | None:
        """Find a task by its number."""
        found = self._known.get(kind.kind, {}).get(number)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[AnyTask]) -> list[AnyTask]:
        """Return the tasks of a kind that are remembered, the latest first."""
        found = reversed(list(self._known.get(kind.kind, {}).values()))
        return [each for each in found if isinstance(each, kind)]

    def close(self) -> None:
        """Stop everything."""
        for known in list(self._known.values()):
            for task in reversed(list(known.values())):  # those that wait first
                self.stop(task)

    def _begin_next(self, kind: str) -> None:
        with self._lock:
            tasks = list(self._known[kind].values())
            running = sum(each.state == "running" for each in tasks)
            waiting = [each for each in tasks if each.state == "waiting"]
            begun = waiting[: max(waiting[0].at_once - running, 0)] if waiting else []
            for each in begun:
                each.state = "running"
        for each in begun:
            # A user's policy may never return: the process must be able to end without it.
            Thread(target=self._run, args=(each,), name=kind, daemon=True).start()

    def _run(self, task: Task) -> None:
        task.run()
        self._begin_next(task.kind)

    def _give_up(self, task: Task) -> None:
        if not task.is_over:
            late = f"it had not ended {task.grace:g} seconds later"
            task.end("stopped", f"{late}: its code is being compiled, or does not return")
            self._begin_next(task.kind)


_TURNS: RunVar[CapacityLimiter] = RunVar("turns")  # a limiter belongs to an event loop


class BusyError(InputError):
    """Raised where too many requests are waiting already."""


async def solved(work: Callable[[], T]) -> T:
    """Do short work in a thread and return its result; raise if too many requests are waiting.

    Anybody may ask for such work without the token. So only a few threads do it, and an
    allocation ends within a time limit.
    """
    turns = _TURNS.get(None)
    if turns is None:
        turns = CapacityLimiter(AT_ONCE)
        _TURNS.set(turns)
    if turns.statistics().tasks_waiting >= MOST_WAITING:
        raise BusyError("the server is busy with other requests; try again in a moment")

    def limited() -> T:
        with time_limit(SECONDS):
            return work()

    return await to_thread.run_sync(limited, limiter=turns)
