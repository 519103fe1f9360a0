"""The scheduler plugin: Dask's tasks are placed by a policy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from os import PathLike, fspath
from time import monotonic, time
from typing import Any

from distributed import SchedulerPlugin

from ..experiments.serialise import pack, unpack
from ..grid.executors import dask_internals as internals
from ..policies import Policy, check_central, check_not_preemptive, find
from . import page, status
from .book import compile_policy
from .comparison import Comparison, check_share
from .learning import Groups, Memory, check_groups
from .placer import DaskPlacer
from .status import Placed

WARN = logging.getLogger("gridwright.dask").warning
SAVE_EVERY = 10.0
"""Seconds between writes of the memory."""


class Placement(SchedulerPlugin):  # type: ignore[misc]
    """Lets a policy choose the workers of a Dask scheduler's tasks.

    Parameters
    ----------
    policy
        A push or pull policy: its name, its file, or a `Policy`.
    classes
        A function from a task's key to the name of its class. By default, a class is what the task
        was annotated with (``dask.annotate(gridwright="render")``), or else Dask's own prefix.
    groups
        Which workers are alike, so that what is learnt on one counts for all: ``"worker"``: none;
        ``"prefix"``: those whose names differ only in the number at the end; ``"host"``: those of
        one host; or a function from a worker's name to the name of its group.
    memory
        A file on the scheduler's computer that keeps what was learnt for the next start.
    compare
        The share of the decisions for which Dask's own choice is computed, too. The status then
        says how often it is the same, and how many seconds earlier tasks are expected to end.
    """

    name = "gridwright"

    def __init__(
        self,
        policy: Policy | str | PathLike[str] = "pas_dg",
        *,
        classes: Callable[[Any], str] | None = None,
        groups: Groups = "worker",
        memory: str | PathLike[str] | None = None,
        compare: float = 0.0,
    ) -> None:
        found = find(policy)
        check_central(found, "Dask's tasks are placed by")
        check_not_preemptive(found)
        check_groups(groups)
        self.policy = found
        self.classes, self.groups = classes, groups
        self.memory = None if memory is None else fspath(memory)
        self.compare = check_share(compare)
        self._begin()

    def _begin(self) -> None:
        self.placer: DaskPlacer | None = None
        self.comparison: Comparison | None = None
        self._saving: asyncio.Task[None] | None = None
        self.why_off = ""
        """Why the scheduler places tasks as it would without this plugin."""
        self.since, self.placed = time(), Placed(monotonic())

    def __getstate__(self) -> dict[str, Any]:
        packed = pack((self.policy, self.classes, self.groups))
        return {"packed": packed, "memory": self.memory, "compare": self.compare}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.policy, self.classes, self.groups = unpack(state["packed"])
        self.memory, self.compare = state["memory"], state["compare"]
        self._begin()

    async def start(self, scheduler: Any) -> None:
        """Begin to place the tasks of a scheduler."""
        self._begin()
        internals.answer(scheduler, status.NAME, lambda: status.status(scheduler))
        page.add_to(scheduler)
        missing = internals.missing_for_placing(scheduler)
        if missing:
            self.why_off = f"this version of distributed lacks {', '.join(missing)}"
            WARN("tasks are placed as without Gridwright: %s", self.why_off)
            return
        if (newer := internals.untried_version()) is not None:
            WARN("Gridwright was not tried with distributed %s", newer)
        is_compiled = await asyncio.to_thread(compile_policy, self.policy)
        if (earlier := internals.placer_of(scheduler)) is not None:
            earlier.close()
        self.placer = DaskPlacer(
            scheduler,
            self.policy,
            class_of=self.classes,
            groups=self.groups,
            memory=Memory(self.memory),
            is_compiled=is_compiled,
        )
        if self.compare:
            self.comparison = Comparison(self.placer, self.compare)
        self.placer.failed = self._fail
        self.placer.closed = self._closed
        self.placer.is_registered = lambda: scheduler.plugins.get(self.name) is self
        if self.memory is not None:
            self._saving = asyncio.create_task(self._save_often(self.placer))

    async def close(self) -> None:
        """Leave a scheduler that places tasks as before."""
        self._stop()

    def _stop(self) -> None:
        if self.placer is not None:
            self.placer.close()

    def _closed(self) -> None:
        """Keep what was learnt."""
        placer, self.placer = self.placer, None
        if self._saving is not None:
            self._saving.cancel()
        if placer is not None and self.memory is not None:
            self._save(placer.memory, placer.remembered())

    def _save(self, memory: Memory, text: str) -> None:
        try:
            memory.write(text)
        except OSError as error:
            WARN("what was learnt cannot be written to %s: %s", self.memory, error)

    async def _save_often(self, placer: DaskPlacer) -> None:
        """Write the memory now and then, in a thread."""
        before = ""
        while True:
            await asyncio.sleep(SAVE_EVERY)
            if (text := placer.remembered()) != before:
                before = text
                await asyncio.to_thread(self._save, placer.memory, text)

    def _fail(self, error: Exception) -> None:
        """Leave the placement to the scheduler after an error; say so once."""
        self.why_off = f"{type(error).__name__}: {error}"
        WARN("tasks are placed as without Gridwright from now on: %s", self.why_off, exc_info=error)
        asyncio.get_running_loop().call_soon(self._stop)

    def transition(self, key: Any, start: str, finish: str, *args: Any, **details: Any) -> None:
        """Note that a task has changed its state."""
        if self.placer is not None and (
            start == "processing" or finish == "processing" or start == "queued"
        ):
            self.placer.transition(key, start, finish, details)
            if finish == "processing":
                self.placed.count(self.placer.numbers.get(key) in self.placer.tasks, monotonic())

    def remove_worker(self, scheduler: Any, worker: str, **details: Any) -> None:
        """Note that a worker has left."""
        if self.placer is not None:
            for state in [each for each in self.placer.workers if each.address == worker]:
                if scheduler.workers.get(worker) is not state:
                    self.placer.removed(state)

    def restart(self, scheduler: Any) -> None:
        """Note that the scheduler has forgotten all tasks."""
        if self.placer is not None:
            self.placer.restarted()
