"""Everything that Gridwright uses of Dask beyond its documented interface.

No other module names private parts of ``distributed``. This one imports nothing else of Gridwright,
so that other packages can use it. It was tried with the versions in `TRIED`. `check` refuses a
version that lacks what cannot be replaced; the functions fall back on less where they can.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

TRIED = ("2026.8.0",)
"""Versions of distributed with which the tests of this module have passed."""
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
