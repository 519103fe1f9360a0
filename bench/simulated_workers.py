"""How long the scheduler of Dask pauses with many workers, which are only simulated.

The scheduler, its event loop and its connections are real. A simulated worker answers on its
connection as a real one would: that a task has finished, after the time that the task would take.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from time import perf_counter, thread_time, time
from typing import Any, NamedTuple

from gridwright.grid.executors.connection import quiet

__all__ = ["Pauses", "pauses"]

WORKERS = 200
TASKS = 10_000
CLASSES = 5
SECONDS = 0.1
"""How long a task takes on the quickest workers."""
LEAVING = 5
"""Workers that die in the middle, and workers that join then."""


class Pauses(NamedTuple):
    """The longest pauses of an event loop, in seconds."""

    hook: float
    """The longest single call of the plugin, in CPU time of the event loop's thread."""
    hook_name: str
    loop: float
    """The longest that the event loop did anything at a stretch, in CPU time of its thread."""
    total: float
    """From the first task's submission to the last result."""


def pauses(plugin: Any) -> Pauses:
    """Return the longest pauses of a scheduler with a plugin, or of a stock one."""
    import distributed  # noqa: F401  # its loggers

    quiet()
    return asyncio.run(_pauses(plugin))


async def _pauses(plugin: Any) -> Pauses:
    from distributed import Scheduler

    import dask

    with dask.config.set({"distributed.scheduler.http.routes": []}):
        options = {"dashboard": False, "dashboard_address": ":0"}
        scheduler = Scheduler(protocol="inproc", validate=False, **options)
    async with scheduler:
        hooks = Stopwatch()
        if plugin is not None:
            await scheduler.register_scheduler_plugin(plugin, idempotent=False)
            time_hooks(scheduler, plugin, hooks)
        workers = [asyncio.create_task(worker(scheduler.address, k)) for k in range(WORKERS)]
        while len(scheduler.workers) < WORKERS:
            await asyncio.sleep(0.01)
        hooks.clear()
        loop = Stopwatch()
        with timed_callbacks(loop, hooks):
            begin = perf_counter()
            script = asyncio.create_task(asyncio.to_thread(submit, scheduler.address))
            while scheduler.transition_counter < 2 * TASKS:
                await asyncio.sleep(0.01)
            for k in range(LEAVING):
                workers.pop(0).cancel()
                workers.append(asyncio.create_task(worker(scheduler.address, WORKERS + k)))
            await script
            total = perf_counter() - begin
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return Pauses(hooks.longest, hooks.name, loop.longest, total)


def submit(address: str) -> None:
    """Submit all tasks at once, and wait for the results."""
    from distributed import Client, wait

    with Client(address, set_as_default=False) as client:
        calls = [named(f"kind_{k}") for k in range(CLASSES)]
        futures = [
            future
            for call in calls
            for future in client.map(call, range(TASKS // CLASSES), pure=False)
        ]
        with client.as_current():
            wait(futures)


def named(name: str) -> Callable[[int], int]:
    def call(number: int) -> int:
        return number

    call.__name__ = call.__qualname__ = name
    return call


# workers


async def worker(address: str, number: int) -> None:
    """Answer as a worker with one thread, which runs the tasks in the order of their arrival."""
    from distributed.comm import CommClosedError, connect

    line = await connect(address)
    await line.write(registration(number))
    assert (await line.read())["status"] == "OK"
    waiting: dict[str, int] = {}
    """The tasks that it has not begun, with the numbers of their runs."""
    came = asyncio.Event()
    running = asyncio.create_task(run(line, waiting, came, number))
    try:
        while True:
            for message in await line.read():
                if message["op"] == "compute-task":
                    waiting[message["key"]] = message["run_id"]
                    came.set()
                elif message["op"] == "free-keys":
                    for key in message["keys"]:
                        waiting.pop(key, None)
                elif message["op"] == "steal-request":
                    is_here = waiting.pop(message["key"], None) is not None
                    state = "ready" if is_here else "executing"
                    await line.write([message | {"op": "steal-response", "state": state}])
    except CommClosedError:
        return
    finally:
        running.cancel()
        line.abort()


async def run(line: Any, waiting: dict[str, int], came: asyncio.Event, number: int) -> None:
    """Report each task as finished, after the time that it takes on this worker."""
    while True:
        while not waiting:
            came.clear()
            await came.wait()
        key = next(iter(waiting))
        run_id = waiting.pop(key)
        start, seconds = time(), duration(key, number)
        await asyncio.sleep(seconds)
        finished = {
            "op": "task-finished",
            "status": "OK",
            "key": key,
            "run_id": run_id,
            "nbytes": 28,
            "type": b"",
            "typename": "int",
            "metadata": {},
            "thread": number,
            "startstops": [{"action": "compute", "start": start, "stop": start + seconds}],
            "stimulus_id": f"task-finished-{time()}",
        }
        await line.write([finished])


def duration(key: str, number: int) -> float:
    """Return how long a task takes on a worker: each is quick at one class, and slow at others."""
    kind = int(key.partition("_")[2].partition("-")[0])
    return SECONDS * (1 + (number + kind) % CLASSES)


def registration(number: int) -> dict[str, Any]:
    """Return what a worker says of itself when it joins."""
    from distributed.versions import get_versions

    return {
        "op": "register-worker",
        "reply": False,
        "address": f"tcp://10.0.{number // 250}.{number % 250 + 1}:8000",
        "resolve_address": False,
        "status": "running",
        "nthreads": 1,
        "name": f"worker-{number}",
        "now": time(),
        "resources": {},
        "memory_limit": 0,
        "local_directory": "",
        "services": {},
        "nanny": "",
        "pid": 0,
        "versions": get_versions(),
        "metrics": {
            "bandwidth": {"total": 1e8, "workers": {}, "types": {}},
            "digests_total_since_heartbeat": {},
            "memory": 0,
            "spilled_bytes": {"memory": 0, "disk": 0},
        },
        "extra": {},
        "stimulus_id": f"worker-connect-{time()}",
        "server_id": f"worker-{number}",
    }


# time


class Stopwatch:
    """Keeps the longest of the times of calls, without Python's collections of garbage in them."""

    def __init__(self) -> None:
        self.collecting = self._began = 0.0
        self._depth, self._thread = 0, get_ident()
        gc.callbacks.append(self._collected)
        self.clear()

    def clear(self) -> None:
        self.longest, self.name = 0.0, ""

    def time(self, name: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function; only the outermost of calls inside of each other counts."""
        if self._depth or get_ident() != self._thread:
            return call(*args, **options)
        self._depth, self.collecting, began = 1, 0.0, thread_time()
        try:
            return call(*args, **options)
        finally:
            self._depth = 0
            if (spent := thread_time() - began - self.collecting) > self.longest:
                self.longest, self.name = spent, name

    def _collected(self, phase: str, _: object) -> None:
        if get_ident() != self._thread:
            return
        if phase == "start":
            self._began = thread_time()
        else:
            self.collecting += thread_time() - self._began


def time_hooks(scheduler: Any, plugin: Any, watch: Stopwatch) -> None:
    """Time everything that a plugin has put in the place of the scheduler's own, and itself."""
    from distributed import SchedulerPlugin

    for place, kind in ((scheduler, type(scheduler)), (plugin, SchedulerPlugin)):
        mine = vars(scheduler) if place is scheduler else dir(kind)
        for name in list(mine):
            call = getattr(place, name)
            if name.startswith("__") or not callable(call) or not callable(getattr(kind, name, 0)):
                continue
            if asyncio.iscoroutinefunction(call):
                continue

            def timed(*args: Any, _name: str = name, _call: Any = call, **options: Any) -> Any:
                return watch.time(_name, _call, *args, **options)

            setattr(place, name, timed)


@contextmanager
def timed_callbacks(watch: Stopwatch, hooks: Stopwatch) -> Iterator[None]:
    """Time whatever the event loop of this thread does at a stretch, and what of it is ours."""
    handle: Any = asyncio.Handle
    run = handle._run

    def timed(self: Any) -> None:
        call = self._callback
        if str(getattr(call, "__module__", "")).startswith("gridwright"):
            watch.time("", hooks.time, call.__qualname__, run, self)
        else:
            watch.time("", run, self)

    handle._run = timed
    try:
        yield
    finally:
        handle._run = run


if __name__ == "__main__":
    print(pauses(None))
