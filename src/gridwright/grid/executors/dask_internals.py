"""Everything that Gridwright uses of Dask beyond its documented interface.

No other module names private parts of ``distributed``. This one imports nothing else of Gridwright,
so that other packages can use it. It was tried with the versions in `TRIED`. `check` refuses a
version that lacks what cannot be replaced; the functions fall back on less where they can.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

TRIED = ("2024.8.0", "2025.9.0", "2026.8.0")
"""Versions of distributed that `make dask-versions` has tried."""
NEEDED = {
    "Client": ("subscribe_topic", "unsubscribe_topic", "log_event", "run", "run_on_scheduler"),
    "Worker": ("plugin_add", "plugin_remove", "log_event"),
    "Security": ("get_connection_args",),
    "Scheduler": ("identity",),
}
"""Methods without which neither a grid nor a simulation can use a cluster."""


class UnsupportedDaskError(ImportError):
    """Raised for a version of distributed that lacks something we need."""


def check() -> None:
    """Raise `UnsupportedDaskError` if the installed distributed lacks a method that we need."""
    import distributed

    for name, methods in NEEDED.items():
        kind = getattr(distributed, name, None)
        for method in methods:
            if not hasattr(kind, method):
                raise UnsupportedDaskError(
                    f"distributed {distributed.__version__} has no {name}.{method}; install a "
                    f"version that works, for example distributed=={TRIED[-1]}"
                )


# the scheduler, seen by a client


class SchedulerIdentity(NamedTuple):
    """Which scheduler answers at an address, and its workers."""

    scheduler: str
    workers: dict[str, str]
    """Names of the workers by their addresses."""


def connection_arguments(security: Any) -> dict[str, Any]:
    """Return the arguments of a connection; this reads the TLS files."""
    found: dict[str, Any] = security.get_connection_args("client")
    return found


def open_rpc(address: str, security: Any, timeout: float) -> Any:
    """Return a connection to a scheduler without a client; close it with ``close_rpc``."""
    from distributed import rpc

    return rpc(address, timeout=timeout, connection_args=connection_arguments(security))


async def identity(scheduler: Any) -> SchedulerIdentity:
    """Return which scheduler answers, and all of its workers."""
    try:
        said = await scheduler.identity(n_workers=-1)
    except TypeError:  # older versions always return all workers
        said = await scheduler.identity()
    names = {address: str(worker["name"]) for address, worker in said["workers"].items()}
    return SchedulerIdentity(said["id"], names)


class Departure(NamedTuple):
    """A worker that has left."""

    worker: str
    died: bool
    """Whether it left without notice to the scheduler."""


def departure(word: dict[str, Any]) -> Departure | None:
    """Return the worker that has left, if an event on the topic ``all`` reports one."""
    if word.get("action") != "remove-worker":
        return None
    return Departure(word["worker"], not word.get("expected", True))


def is_arrival(word: dict[str, Any]) -> bool:
    """Tell whether an event on the topic ``all`` reports a new worker."""
    return word.get("action") == "add-worker"


def client_tasks(client: Any) -> set[asyncio.Task[Any]]:
    """Return the tasks in which a client connects; they may be about to connect again."""
    tasks = (getattr(client, name, None) for name in ("_started", "_handle_report_task"))
    return {task for task in tasks if isinstance(task, asyncio.Task)}


async def close_at_once(client: Any) -> None:
    """Close a client as after an error, so that it waits for nothing."""
    await client.__aexit__(ConnectionError, None, None)


# a worker, seen by what runs on it


def plugin(worker: Any, name: str) -> Any:
    """Return a plugin of a worker, or None."""
    return worker.plugins.get(name)


async def add_plugin(worker: Any, plugin: Any, name: str) -> None:
    """Add a plugin to this worker alone; an error in its ``setup`` is raised."""
    await worker.plugin_add(plugin=plugin, name=name, catch_errors=False)


async def remove_plugin(worker: Any, name: str) -> None:
    """Remove a plugin from this worker."""
    await worker.plugin_remove(name=name)


def run_beside_threads(worker: Any, key: str, tasks: int) -> None:
    """Let a worker run a task beside those of its threads, if it has fewer threads than tasks.

    A version that cannot do so runs as many tasks at a time as it has threads.
    """
    if tasks <= worker.state.nthreads:
        return
    with suppress(ImportError, AttributeError):
        from distributed.worker_state_machine import SecedeEvent

        stimulus = f"gridwright-{key}"
        worker.handle_stimulus(SecedeEvent(key=key, compute_duration=0.0, stimulus_id=stimulus))


def is_cancelled(worker: Any, key: str) -> bool:
    """Tell whether a task of a worker was cancelled; False if that is not known."""
    with suppress(AttributeError):
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"
    return False


def forget_topic(scheduler: Any, topic: str) -> None:
    """Free the memory for the messages on a topic, if this version can."""
    with suppress(AttributeError):
        scheduler._broker.truncate(topic)


# the scheduler, seen by what runs in it

PLACING = (
    "is_rootish",
    "decide_worker_rootish_queuing_enabled",
    "stimulus_queue_slots_maybe_opened",
    "decide_worker_non_rootish",
    "transitions",
    "stream_handlers",
    "stream_comms",
    "get_comm_cost",
    "running",
    "queued",
    "WORKER_SATURATION",
)
"""What a scheduler must have for its placement to be changed."""
NOT_BEGUN = ("ready", "constrained", "waiting")
"""The states in which a worker gives up a task that it is asked for."""


class Placer(Protocol):
    """Chooses workers in place of the scheduler."""

    def takes(self, task: Any) -> bool:
        """Tell whether to choose a worker for a task that can run now."""

    def place(self, task: Any) -> Any:
        """Return a worker for a task, or None to keep it in the scheduler's queue."""

    def turn(self, stimulus: str) -> None:
        """Send tasks from the queue to workers, because something has happened."""

    def left_slot(self, key: Any) -> None:
        """Note that a task runs on beside the threads of its worker."""

    def came_back(self, key: Any, stimulus: str) -> None:
        """Note that a worker has given up a task that it had not begun."""

    def stays(self, key: Any) -> None:
        """Note that a worker does not give up a task that it was asked for."""

    def owns(self, task: Any) -> bool:
        """Tell whether a task is on a worker that this placer has chosen."""


def version() -> str:
    """Return the installed version of distributed."""
    import distributed

    return str(distributed.__version__)


def untried_version() -> str | None:
    """Return the installed version of distributed if it is newer than all that were tried."""

    def parts(version: str) -> list[int]:
        return [int(each) for each in version.split(".")[:3] if each.isdecimal()]

    here = version()
    return here if parts(here) > max(map(parts, TRIED)) else None


def missing_for_placing(scheduler: Any) -> list[str]:
    """Return what a scheduler lacks for its placement to be changed."""
    return [name for name in PLACING if not hasattr(scheduler, name)]


def placer_of(scheduler: Any) -> Any:
    """Return the placer that chooses workers in a scheduler, or None."""
    hook = vars(scheduler).get("is_rootish")
    return hook.__self__.placer if hook is not None else None


class PlacingHooks:
    """Lets a placer choose workers in a scheduler, until ``remove``.

    Tasks that the placer takes count as root tasks, which a scheduler keeps in its queue while no
    worker is free. The scheduler chooses workers for all others, as before.
    """

    def __init__(self, scheduler: Any, placer: Placer) -> None:
        self.scheduler, self.placer = scheduler, placer
        self.watch: Callable[[Any, Any], None] | None = None
        """Called with each task that the placer has chosen a worker for, before it is sent."""
        self._chosen: tuple[Any, Any] | None = None
        """The task that is leaving the queue, and its worker."""
        self._asked: Any = None
        """The task that the scheduler asks about."""
        self._called: dict[str, tuple[Any, Any]] = {}
        """The tasks that workers were asked for, and these workers, by the request."""
        self._requests = 0
        self.stock_is_root = scheduler.is_rootish
        self._stock_turn = scheduler.stimulus_queue_slots_maybe_opened
        self._stock_handlers = {
            name: scheduler.stream_handlers.get(name) for name in ("long-running", "steal-response")
        }
        self._saturation = scheduler.WORKER_SATURATION
        self.most_ahead = int(self._saturation > 1.0)
        """How many tasks a thread may have ahead whose results others need and would wait for."""
        if math.isinf(self._saturation):  # this scheduler would have no queue
            scheduler.WORKER_SATURATION = 1.0
        scheduler.is_rootish = self._is_root
        scheduler.decide_worker_rootish_queuing_enabled = self._decide
        scheduler.stimulus_queue_slots_maybe_opened = self._turn
        scheduler.stream_handlers["long-running"] = self._long_running
        scheduler.stream_handlers["steal-response"] = self._answered
        if (stealing := scheduler.extensions.get("stealing")) is not None:
            self._stock_ratio = stealing.steal_time_ratio
            stealing.steal_time_ratio = self._steal_ratio

    def remove(self) -> None:
        """Give the scheduler its own placement back, with what is in the queue."""
        scheduler = self.scheduler
        for name in PLACING[:3]:
            vars(scheduler).pop(name, None)
        for name, handler in self._stock_handlers.items():
            if handler is not None:
                scheduler.stream_handlers[name] = handler
        if (stealing := scheduler.extensions.get("stealing")) is not None:
            vars(stealing).pop("steal_time_ratio", None)
        scheduler.WORKER_SATURATION = self._saturation
        for worker in scheduler.workers.values():
            scheduler.check_idle_saturated(worker)
        if math.isinf(self._saturation):  # nothing would take them from the queue
            waiting = {task.key: "released" for task in scheduler.queued.sorted()}
            scheduler.transitions(waiting, "gridwright-close")
        scheduler.stimulus_queue_slots_maybe_opened(stimulus_id="gridwright-close")

    def send(self, task: Any, worker: Any, stimulus: str) -> None:
        """Send a task from the queue to a worker."""
        self._chosen = (task, worker)
        try:
            self.scheduler.transitions({task.key: "processing"}, stimulus)
        finally:
            self._chosen = None

    def stock_choice(self, task: Any) -> Any:
        """Return the worker that the scheduler itself would choose, or None if it would wait."""
        scheduler = self.scheduler
        if not self.stock_is_root(task):
            return scheduler.decide_worker_non_rootish(task)
        if not math.isinf(self._saturation):
            return type(scheduler).decide_worker_rootish_queuing_enabled(scheduler)
        group, saturation = task.group, scheduler.WORKER_SATURATION
        last = group.last_worker, group.last_worker_tasks_left
        scheduler.WORKER_SATURATION = self._saturation
        try:
            return scheduler.decide_worker_rootish_queuing_disabled(task)
        finally:  # it has noted its choice
            group.last_worker, group.last_worker_tasks_left = last
            scheduler.WORKER_SATURATION = saturation

    def stock_worker(self, task: Any) -> Any:
        """Return the worker that the scheduler chooses for a task that does not wait, or None."""
        return self.scheduler.decide_worker_non_rootish(task)

    def queue(self, task: Any, stimulus: str) -> None:
        """Put a task that a worker has given up back into the queue; ``place`` returns None."""
        self.scheduler.transitions({task.key: "released"}, stimulus)

    def call_back(self, task: Any) -> bool:
        """Ask a worker for a task that it may not have begun; return whether it was asked."""
        stream = self.scheduler.stream_comms.get(task.processing_on.address)
        if stream is None:
            return False
        self._requests += 1
        request = f"gridwright-back-{self._requests}"
        self._called[request] = task, task.processing_on
        with suppress(OSError):
            stream.send({"op": "steal-request", "key": task.key, "stimulus_id": request})
        return True

    # what the scheduler calls

    def _is_root(self, task: Any) -> bool:
        takes = self.placer.takes(task)
        self._asked = task if takes else None
        return takes

    def _decide(self) -> Any:
        if self._chosen is not None:
            task, worker = self._chosen
        else:
            task, self._asked = self._asked, None
            worker = self.placer.place(task) if task is not None else None
        if worker is not None and self.watch is not None:
            self.watch(task, worker)
        return worker

    def _turn(self, *, stimulus_id: str) -> None:
        self.placer.turn(stimulus_id)

    def _long_running(self, **message: Any) -> Any:
        answer = self._stock_handlers["long-running"](**message)
        task = self.scheduler.tasks.get(message["key"])
        worker = task.processing_on if task is not None else None
        if worker is not None and task in worker.long_running:  # not one that had it before
            self.placer.left_slot(task.key)
        return answer

    def _answered(self, **message: Any) -> Any:
        task, worker = self._called.pop(message["stimulus_id"], (None, None))
        if task is None:
            stock = self._stock_handlers["steal-response"]
            return stock(**message) if stock is not None else None
        if self.scheduler.tasks.get(task.key) is not task or task.processing_on is not worker:
            return None  # it has ended, or its worker has left
        if message["state"] in NOT_BEGUN:
            self.placer.came_back(task.key, message["stimulus_id"])
        else:
            self.placer.stays(task.key)
        return None

    def _steal_ratio(self, task: Any) -> Any:
        return (None, None) if self.placer.owns(task) else self._stock_ratio(task)


def move_time(scheduler: Any, task: Any, worker: Any) -> float:
    """Return the seconds that the scheduler expects for moving a task's inputs to a worker."""
    return float(scheduler.get_comm_cost(task, worker))


def input_time(scheduler: Any, task: Any) -> float:
    """Return the seconds for moving all inputs of a task."""
    return float(sum(each.get_nbytes() for each in task.dependencies) / scheduler.bandwidth)


def is_restricted(task: Any) -> bool:
    """Tell whether only some workers may run a task, or it stays on its worker as an actor."""
    return bool(
        task.actor
        or task.worker_restrictions
        or task.host_restrictions
        or task.resource_restrictions
    )


def prefix_of(task: Any) -> str:
    """Return Dask's name for tasks of this kind."""
    return str(task.prefix.name)


def annotation_of(task: Any, name: str) -> Any:
    """Return what the user has noted on a task under a name, or None."""
    return (task.annotations or {}).get(name)


def priority_of(task: Any) -> Any:
    """Return the priority that the user has given a task: higher ones go first."""
    return -task.priority[0] if task.priority else 0


def compute_time(startstops: Any) -> float:
    """Return the seconds that a task ran, from what its worker reports; nan if it does not."""
    found = [
        each["stop"] - each["start"] for each in startstops or () if each["action"] == "compute"
    ]
    return float(sum(found)) if found else math.nan


ROUTES = ("/health$", "/json/counts.json$", "/info$")
"""Pages of a scheduler, which show the prefix of its dashboard."""


def answer(scheduler: Any, name: str, function: Any) -> None:
    """Let a scheduler answer the calls of a function by its name."""
    scheduler.handlers[name] = function


def add_pages(scheduler: Any, pages: list[tuple[str, Any, dict[str, Any]]]) -> bool:
    """Add pages to the dashboard, once; return False if this version has no place for them."""
    try:
        application = scheduler.http_application
        there = _paths(application)
    except AttributeError:
        return False
    ends = [(path, end) for path in there for end in ROUTES if path.endswith(end)]
    prefix = ends[0][0].removesuffix(ends[0][1]) if ends else ""
    new = [(f"{prefix}/{path}$", *rest) for path, *rest in pages]
    application.add_handlers(".*$", [each for each in new if each[0] not in there])
    return True


def _paths(application: Any) -> list[str]:
    """Return the patterns of all pages."""
    found, routers = [], [application.default_router, application.wildcard_router]
    for router in routers:
        for rule in router.rules:
            if hasattr(rule.target, "rules") and rule.target not in routers:
                routers.append(rule.target)
            if (pattern := getattr(rule.matcher, "regex", None)) is not None:
                found.append(pattern.pattern)
    return found
