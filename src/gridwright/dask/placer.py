"""Turn the tasks of a Dask scheduler into jobs of a book, and the book's answers into placements.

Dask tells what happens, and the book decides. Its machines are the threads of the workers. A
task that the book gives to no worker yet stays in the queue of the scheduler. Tasks that Dask
places itself occupy the threads that run them.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from ..grid.beliefs import Beliefs
from ..grid.executors import dask_internals as internals
from ..grid.job import PLAIN, CallBack, Instruction, Options, Send
from ..grid.settings import Corrections
from ..grid.turn import Planned, Planning
from ..policies import Policy
from .book import LATENCY, PlacedBook, times_to_move
from .fleet import Fleet
from .learning import KEEP, MOST_CLASSES, OTHER, RARE, Arrivals, Durations, Groups, Memory

AHEAD = 10
"""The most tasks that a thread may have ahead, if they are short."""
BRIEF = 0.03
"""Seconds up to which a task is short: the way to its worker and back is much of its time."""
LEARN_EVERY = 0.02
"""Seconds between checks of what is assumed."""
SHARE = 0.25
"""Dask places a task itself if moving its inputs takes more than this part of its execution."""
HANDED_OVER = 50
"""The most tasks that a turn hands over to Dask."""


class DaskPlacer:
    """Decides on which worker of a scheduler each task runs."""

    def __init__(
        self,
        scheduler: Any,
        policy: Policy,
        *,
        class_of: Callable[[Any], str] | None,
        groups: Groups,
        memory: Memory,
        is_compiled: bool,
    ) -> None:
        self.scheduler, self.policy, self.memory = scheduler, policy, memory
        self.class_of = class_of
        start = monotonic()
        self.book = PlacedBook(policy, start, is_compiled=is_compiled)
        self.book.plans_beside = lambda: True
        self.book.pinned_are_next = True  # Dask has sent them
        self.book.ahead.most, self.book.ahead.brief = AHEAD, BRIEF
        corrections = Corrections(arrivals=False, overhead=False, availability=False)
        self.beliefs = Beliefs(self.book, corrections, guessed=True, keep=KEEP, hopeful=True)
        self.learner = self.beliefs.learner
        self.book.ahead.measured = self.learner.duration
        self.arrivals = Arrivals(start)
        self.planning = Planning(self.book, self._planned)
        self.classes: dict[str, int] = {}
        self.fleet = Fleet(self.book, self.beliefs, self.classes, groups, memory)
        self.workers, self.worker = self.fleet.workers, self.fleet.worker
        self.group_columns = self.fleet.group_columns
        self.numbers: dict[Any, int] = {}
        """The jobs of tasks, by key."""
        self.tasks: dict[int, Any] = {}
        """The tasks of jobs that this placer places."""
        self.decisions = 0
        self.longest = 0.0
        """Seconds of the longest call."""
        self.failed: Callable[[Exception], None] = lambda error: None
        """Called when the policy or this placer fails."""
        self.is_registered: Callable[[], bool] = lambda: True
        """Tells whether the scheduler still reports to this placer."""
        self.closed: Callable[[], None] = lambda: None
        """Called when this placer has ended."""
        self.is_off = False
        self._ended: dict[int, str] = {}
        """Jobs that have ended, until the next turn, and how."""
        self._needed: set[int] = set()
        """Jobs whose results other tasks need."""
        self._coming: set[Any] = set()
        """Tasks that return to the queue."""
        self._sends: deque[tuple[int, int]] = deque()
        self._backs: deque[int] = deque()
        self._numbers = itertools.count(1)
        self._durations = Durations()
        self._learnt = 0.0
        self._plan_again = 0.0
        self._plan_begun = 0.0
        self._is_turning = False
        self._will_turn = self._will_plan = False
        self.hooks = internals.PlacingHooks(scheduler, self)
        with self._guarded():
            self._follow_workers(start)
        for task in list(scheduler.tasks.values()):
            if task.state == "processing":
                with self._guarded():
                    self._occupy(task)

    def close(self) -> None:
        """Give the scheduler its own placement back; keep what was learnt."""
        self.is_off = True
        self.planning.close()
        self.hooks.remove()
        self.closed()

    def remembered(self) -> str:
        """Return what to keep of what was learnt, as the text of a file."""
        self.memory.note(self.learner, list(self.classes), self.group_columns)
        return self.memory.text()

    # what the hooks call

    def takes(self, task: Any) -> bool:
        """Tell whether to choose a worker for a task: not if only some may run it.

        Dask also keeps the tasks whose inputs take long to move, compared with their execution, and
        very short ones that no other task needs.
        """
        if self._has_ended() or internals.is_restricted(task):
            return False
        row = self.classes.get(self._name(task), -1)
        if not task.dependencies or self.hooks.stock_is_root(task):
            return row not in self._durations.tiny or bool(task.dependents)
        moving = internals.input_time(self.scheduler, task) + LATENCY
        return moving <= SHARE * self._durations.least(row)

    def place(self, task: Any) -> Any:
        """Return a worker for a task, or None to keep it in the queue."""
        if self.is_off or task.key in self._coming:
            return None
        with self._guarded():
            now = self._begin()
            number = self._enter(task)
            self.tasks[number] = task
            row = self._row(task, now)
            self.arrivals.came(row, now)
            priority = internals.priority_of(task)
            options = Options(priority=priority) if priority else PLAIN
            if task.dependencies and not self.hooks.stock_is_root(task):
                self.book.moves[number] = times_to_move(self.scheduler, task, self.workers)
            if task.dependents:
                self._needed.add(number)
                self.book.ahead.most = self.hooks.most_ahead
            self._take(self.book.submit(now, number, row, options))
            if self._sends and self._sends[-1][0] == number:
                _, machine = self._sends.pop()
                self.book.moves.pop(number, None)
                return self.worker[machine]
        return None

    def turn(self, stimulus: str) -> None:
        """Decide what follows from events, and send tasks to workers."""
        if self._has_ended() or self._is_turning:
            return
        self._is_turning = True
        try:
            with self._guarded():
                now = self._begin()
                self._free_slots(now)
                self._learn(now)
                self._take(self.book.send_ahead(now))
                self._carry_out(stimulus)
                self._hand_over(now, stimulus)
                self._tidy(now)
        finally:
            self._is_turning = False

    def transition(self, key: Any, start: str, finish: str, details: dict[str, Any]) -> None:
        """Note that Dask has changed the state of a task."""
        if self.is_off or key in self._coming:
            return
        if start == "processing" or start == "queued" != finish:
            if finish in ("processing", "queued"):
                return
            if key in self.numbers:
                with self._guarded():
                    self._end(key, finish, details)
            elif finish == "memory" and self._durations.tiny:
                with self._guarded():
                    row = self.classes.get(self._name(self.scheduler.tasks[key]), -1)
                    if row >= 0:
                        self._measure(row, -1, details)
        elif finish == "processing" and key not in self.numbers:
            with self._guarded():
                self._occupy(self.scheduler.tasks[key])

    def left_slot(self, key: Any) -> None:
        """Note that a task runs on beside the threads of its worker."""
        if not self.is_off and key in self.numbers:
            with self._guarded():
                self._end(key, "long-running", {})
            self._turn_soon()

    def came_back(self, key: Any, stimulus: str) -> None:
        """Note that a worker has given up a task: it waits again."""
        number = self.numbers.get(key)
        job = self.book.jobs.get(number) if number is not None else None
        if self.is_off or number is None or job is None:
            return
        task = self.tasks[number]
        self._coming.add(key)
        try:
            self.hooks.queue(task, stimulus)
        finally:
            self._coming.discard(key)
        with self._guarded():
            if task.state == "queued":
                self._take(self.book.not_begun(self._begin(), number, job.attempt))
            else:  # nobody wants it any more, an input is lost, or Dask has sent it elsewhere
                self._give_up(task)
        self.turn(stimulus)

    def stays(self, key: Any) -> None:
        """Note that a worker has begun a task that it was asked for."""
        number = self.numbers.get(key)
        if number is not None:
            self.book.ahead.called.discard(number)

    def owns(self, task: Any) -> bool:
        """Tell whether this placer has chosen the worker of a task."""
        return self.numbers.get(task.key) in self.tasks

    def removed(self, worker: Any) -> None:
        """Note that a worker has left for good."""
        if self.is_off or worker not in self.workers:
            return
        with self._guarded():
            now = self._begin()
            for machine in self.workers.pop(worker):
                for job in (self.book.running[machine], *self.book.ahead.queues[machine]):
                    if job is not None:  # it seceded, or Dask has moved it elsewhere
                        self._take(self.book.cancel(now, job.number) or [])
                for number in [j.number for j in self._own_jobs(machine)]:
                    self._take(self.book.cancel(now, number) or [])
                self._take(self.book.machine_down(now, machine))
                self.fleet.spare.append(machine)
        self._turn_soon()

    def restarted(self) -> None:
        """Note that the scheduler has forgotten all tasks."""
        with self._guarded():
            now = self._begin()
            for number in list(self.book.jobs):
                self._take(self.book.cancel(now, number) or [])
            self.book.jobs.clear()
            self.numbers.clear()
            self.tasks.clear()
            self.book.moves.clear()
            self._needed.clear()
            self._ended.clear()
            self._sends.clear()

    # events of the book

    @contextmanager
    def _guarded(self) -> Any:
        """Measure a call; if it fails, give the scheduler its own placement back."""
        begun = perf_counter()
        try:
            yield
        except Exception as error:
            self.is_off = True
            self.failed(error)
        self.longest = max(self.longest, perf_counter() - begun)

    def _has_ended(self) -> bool:
        """Tell whether the scheduler places tasks itself; it says nothing when it begins to."""
        if not self.is_off and not self.is_registered():
            self.is_off = True
            asyncio.get_running_loop().call_soon(self.close)
        return self.is_off

    def _begin(self) -> float:
        now = monotonic()
        if self.scheduler.running != self.fleet.open:
            self._follow_workers(now)
        return now

    def _give_up(self, task: Any) -> None:
        """Forget the job of a task that is not in the queue; it may run where Dask has sent it."""
        self._end(task.key, "released", {})
        if task.state == "processing":
            self._occupy(task)

    def _enter(self, task: Any) -> int:
        if task.key in self.numbers:  # otherwise its earlier job would occupy a slot for ever
            self._end(task.key, "released", {})
        number = self.numbers[task.key] = next(self._numbers)
        return number

    def _occupy(self, task: Any) -> None:
        """Note that Dask has sent a task to a worker of its own choice."""
        now, worker = self._begin(), task.processing_on
        slots, row = self.workers.get(worker), self._row(task, now)
        is_strict = bool(task.dependencies) and not self.hooks.most_ahead
        if slots is None or (row in self._durations.tiny and not is_strict):
            return  # the worker has just left, or the task ends at once
        slot = min(slots, key=self._left)
        self._take(self.book.submit(now, self._enter(task), row, pinned=slot))

    def _left(self, machine: int) -> int:
        """Return how many tasks a slot has that have not ended."""
        job = self.book.running[machine]
        has_ended = job is not None and job.number in self._ended
        return int(self.book.backlog[machine]) - has_ended

    def _end(self, key: Any, finish: str, details: dict[str, Any]) -> None:
        """Note that a task has ended, was released, or is lost."""
        self._begin()
        number = self.numbers.pop(key)
        self.tasks.pop(number, None)
        self.book.moves.pop(number, None)
        if number in self._needed:
            self._needed.discard(number)
            self.book.ahead.most = self.hooks.most_ahead if self._needed else AHEAD
        job = self.book.jobs.get(number)
        if job is None:
            return
        if finish == "memory":
            self._measure(job.task_class, job.machine, details)
        self._ended[number] = finish
        self._turn_soon()

    def _measure(self, row: int, machine: int, details: dict[str, Any]) -> None:
        """Learn how long a task took, from what its worker reports."""
        time = internals.compute_time(details.get("startstops"))
        slots = self.workers.get(self.scheduler.workers.get(details.get("worker")), ())
        if slots and math.isfinite(time):
            self.beliefs.ran(row, machine if machine in slots else slots[0], time)

    def _hand_over(self, now: float, stimulus: str) -> None:
        """Let Dask place waiting tasks that turn out to be very short, some with each turn."""
        left = HANDED_OVER
        for row in self._durations.tiny:
            queue = self.book.waiting[row]
            while queue and left and (task := self.tasks[queue.first().number]).state == "queued":
                worker = self.hooks.stock_worker(task)
                if task.dependents or worker is None:
                    break
                number, left = self.numbers.pop(task.key), left - 1
                del self.tasks[number]
                self._take(self.book.cancel(now, number) or [])
                self.book.jobs.pop(number, None)
                self.hooks.send(task, worker, stimulus)
        if not left:
            asyncio.get_running_loop().call_soon(self.turn, stimulus)

    def _free_slots(self, now: float) -> None:
        """Free the slots of tasks that have ended.

        Tasks that need their results, and that Dask places itself, have taken their slots by now.
        """
        ended, self._ended = self._ended, {}
        for number, finish in ended.items():
            job, out = self.book.jobs.get(number), None
            if job is None:
                continue
            if finish in ("memory", "erred"):
                out = self.book.finished(now, number, job.attempt, failed=finish == "erred")
            if out is None:
                out = self.book.cancel(now, number)
            self.book.jobs.pop(number, None)
            self._take(out or [])

    def _take(self, said: list[Instruction]) -> None:
        """Keep the instructions of the book until the scheduler can follow them."""
        for each in said:
            if isinstance(each, Send) and each.job in self.tasks:
                self._sends.append((each.job, each.machine))
            elif isinstance(each, CallBack) and each.job in self.tasks:
                self._backs.append(each.job)
        if said and not self._is_turning:
            self._turn_soon()

    def _turn_soon(self) -> None:
        """Take a turn after this event, unless one comes anyway."""
        if not self._will_turn:
            self._will_turn = True
            asyncio.get_running_loop().call_soon(self._turn_now)

    def _turn_now(self) -> None:
        self._will_turn = False
        left = (self._ended, self._sends, self._backs, self.book.stale, self.book.ahead.changed)
        if any(left):
            self.turn(f"gridwright-{monotonic()}")

    def _carry_out(self, stimulus: str) -> None:
        """Follow the instructions of the book."""
        running = self.scheduler.running
        while self._sends:
            number, machine = self._sends.popleft()
            task, job = self.tasks.get(number), self.book.jobs.get(number)
            if task is None or job is None or job.machine != machine:
                continue  # it has ended meanwhile
            if task.state != "queued":
                self._give_up(task)
                continue
            worker = self.worker[machine]
            if worker in running:
                self.book.moves.pop(number, None)
                self.hooks.send(task, worker, stimulus)
            else:
                self._take(self.book.not_begun(self._begin(), number, job.attempt))
        while self._backs:
            task = self.tasks.get(number := self._backs.popleft())
            asked = task is not None and task.state == "processing" and self.hooks.call_back(task)
            if not asked:
                self.book.ahead.called.discard(number)

    def _tidy(self, now: float) -> None:
        """Forget what a grid would write to its journal; make a plan if one is due."""
        book = self.book
        self.decisions += len(book.decisions)
        for each in (book.decisions, book.losses, book.changed, book.moved, book.unblocked):
            each.clear()
        if book.stale and now >= self._plan_again:
            self._plan_begun = now
            self.planning.start()
        elif book.stale and not self._will_plan:  # perhaps nothing else happens until then
            self._will_plan = True
            asyncio.get_running_loop().call_later(self._plan_again - now, self._plan_now)

    def _plan_now(self) -> None:
        self._will_plan = False
        self._turn_now()

    def _planned(self, planned: Planned) -> None:
        """Use a plan that was made in a thread."""
        if self.is_off:
            return
        now = monotonic()
        self._plan_again = now + max(LEARN_EVERY, 4.0 * (now - self._plan_begun))
        with self._guarded():
            self._take(self.book.take_plan(self._begin(), planned.plan.result()))
        self.turn(f"gridwright-plan-{self.book.plans}")

    # workers and classes

    def _follow_workers(self, now: float) -> None:
        self._take(self.fleet.follow(self.scheduler.running, now))
        self._learnt = 0.0

    def _name(self, task: Any) -> str:
        if self.class_of is not None:
            return str(self.class_of(task.key))
        noted = internals.annotation_of(task, "gridwright")
        return str(noted) if noted is not None else internals.prefix_of(task)

    def _row(self, task: Any, now: float) -> int:
        """Return the class of a task; add it if it is new."""
        name = self._name(task)
        if name not in self.classes and len(self.classes) >= MOST_CLASSES:
            name = OTHER
        if name not in self.classes:
            row = self.classes[name] = len(self.classes)
            self.beliefs.add_class(np.ones(len(self.worker)), RARE)
            self.book.call_compiled()
            for group, column in self.group_columns.items():
                self.memory.recall(self.learner, name, row, group, column)
            self.beliefs.has_news = True
            self._learnt = 0.0
            self._learn(now)
        return self.classes[name]

    def _own_jobs(self, machine: int) -> list[Any]:
        return [j for j in self.book.jobs.values() if j.machine == machine and not j.stage.is_final]

    # learning

    def _learn(self, now: float) -> None:
        """Assume other rates, if measurements differ enough."""
        if now - self._learnt < LEARN_EVERY or not len(self.classes):
            return
        self._learnt = now
        self.beliefs.has_news |= self.learner.forget(now)
        if self.beliefs.has_news:
            self._take(self.beliefs.correct_rates(now)[0])
            self._durations.update(self.learner)
        work = self.arrivals.expected(self.book.classes["waiting"], now)
        if work is not None:
            self._take(self.book.believe(now, arrivals=work.tolist()))
