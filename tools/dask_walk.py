"""Let Dask workers join, leave, die, pause and change under load, and check every result.

    python tools/dask_walk.py [--minutes 1] [--events 20] [--tasks 100] [--clients 3] [--seed 1]
                              [--json] [--policy pas_dg | --stock]

The scheduler places tasks by ``gridwright.dask.Placement``, or as stock Dask does. Several clients
use whatever Dask offers: submits, maps, dependencies, arrays, retries, restrictions, resources,
priorities, long-running tasks, tasks that submit tasks, cancellations, actors, scattered data.
Meanwhile workers join, are retired, killed, paused, stopped for a moment, and become faster and
slower. One worker never leaves, so that every task can run.

Every result must be right, no client may wait for longer than a minute, and in the end the
scheduler must have no task left. It prints the counts, and exits with status 1 if anything was
wrong.
"""

import argparse
import faulthandler
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

from dask_walk_load import KIND_NAMES, LIMIT, SCENARIOS, Load

MOST = 6
"""Workers at a time."""
ROCK = "rock"
"""The worker that never leaves."""
CONFIGURATION = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
}


class Walk:
    """A cluster, what happens to it, and what was wrong."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.rng = random.Random(options.seed)
        self.done: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.stop = Event()
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.stopped: set[str] = set()
        """Workers whose processes are stopped."""
        self.number = 0

    def run(self) -> None:
        """Start everything, walk, and check."""
        from distributed import Client

        with self.scheduler() as address:
            self.address = address
            self.start(ROCK)
            for _ in range(MOST // 2):
                self.start()
            with Client(address, set_as_default=False) as self.control:
                self.control.wait_for_workers(1, timeout=60)
                if not self.options.stock:
                    from gridwright.dask import Placement

                    self.control.register_plugin(Placement(self.options.policy))
                while ROCK not in (there := self.addresses()):
                    time.sleep(0.1)
                self.rock = there[ROCK]
                threads = [
                    Thread(target=self.use, args=[k], daemon=True)
                    for k in range(self.options.clients)
                ]
                for thread in threads:
                    thread.start()
                self.walk()
                self.await_clients(threads)
                self.check_end()

    @contextmanager
    def scheduler(self) -> Iterator[str]:
        """Run the scheduler, and end it and its workers."""
        path = self.folder / "scheduler.json"
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        words += ["--dashboard-address", "127.0.0.1:0"]
        with self.process("scheduler", *words, "--scheduler-file", str(path)) as scheduler:
            try:
                while not path.exists() or not path.read_text().strip():
                    time.sleep(0.05)
                yield str(json.loads(path.read_text())["address"])
            finally:
                for worker in self.workers.values():
                    worker.kill()
                    worker.wait()
                scheduler.terminate()

    def process(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command of Dask."""
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {
            "PYTHONPATH": os.pathsep.join(paths),
            "DASK_TEMPORARY_DIRECTORY": str(self.folder),
        }
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                env=os.environ | CONFIGURATION | environment,
                stdout=log,
                stderr=log,
            )

    # what happens to workers

    def walk(self) -> None:
        """Let everything happen in turn, in random order, until it is enough or time is over."""
        end, events = time.time() + 60 * self.options.minutes, 0
        happenings = [self.join, self.join, self.retire, self.kill, self.pause, self.freeze]
        happenings += [self.change_speed, self.change_speed]
        while time.time() < end and not self.is_enough(events) and not self.wrong:
            if events % len(happenings) == 0:
                self.rng.shuffle(happenings)
            time.sleep(self.rng.expovariate(1 / self.options.pause))
            happenings[events % len(happenings)]()
            events += 1
        self.stop.set()

    def is_enough(self, events: int) -> bool:
        """Tell whether so many events have happened, and so many tasks were checked, as asked."""
        checked = sum(tuple(self.checked.values()))  # clients add to it meanwhile
        return 0 <= self.options.events <= events and checked >= self.options.tasks

    def start(self, name: str = "") -> None:
        """Start a worker."""
        self.number += 1
        name = name or f"walker-{self.number}"
        gpu = ["--resources", "GPU=1"] if name == ROCK or self.rng.random() < 0.4 else []
        threads = "2" if name == ROCK else str(self.rng.choice((1, 1, 2, 4)))
        words = ["worker", self.address, "--name", name, "--nthreads", threads, *gpu]
        words += ["--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "0"]
        self.workers[name] = self.process(name, *words)

    def join(self) -> None:
        """Start a worker, unless there are enough."""
        self.workers = {name: each for name, each in self.workers.items() if each.poll() is None}
        if len(self.workers) < MOST:
            self.start()
            self.done["joined"] += 1

    def retire(self) -> None:
        """Ask a worker to leave."""
        if chosen := self.chosen():
            self.control.retire_workers([chosen[1]])
            self.done["retired"] += 1

    def kill(self) -> None:
        """Kill a worker."""
        if chosen := self.chosen():
            self.workers[chosen[0]].kill()
            self.done["killed"] += 1

    def pause(self) -> None:
        """Pause a worker as Dask does when its memory is short."""
        if chosen := self.chosen(rock=True):
            self.ask(chosen[1], set_status, status="paused")
            # whatever the walk does meanwhile: it may wait for this worker
            resume = partial(self.ask, chosen[1], set_status, status="running")
            timer = Timer(self.rng.expovariate(0.3), resume)
            timer.daemon = True  # at the end of the walk it may be left
            timer.start()
            self.done["paused"] += 1

    def freeze(self) -> None:
        """Stop a worker's process for a moment."""
        if (chosen := self.chosen(rock=True)) and chosen[0] not in self.stopped:
            name, process = chosen[0], self.workers[chosen[0]]
            process.send_signal(signal.SIGSTOP)
            self.stopped.add(name)
            # whatever the walk does meanwhile: it may wait for this worker
            Timer(self.rng.expovariate(1), self.thaw, [name, process]).start()
            self.done["stopped"] += 1

    def thaw(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        """Let a stopped process continue."""
        process.send_signal(signal.SIGCONT)
        self.stopped.discard(name)

    def change_speed(self) -> None:
        """Make a worker faster or slower."""
        if chosen := self.chosen(rock=True):
            factors = {name: self.rng.choice((0.2, 0.5, 1, 2, 4)) for name in KIND_NAMES}
            self.ask(chosen[1], set_speed, factors=factors)
            self.done["changed speed"] += 1

    def ask(self, address: str, function: Any, **options: Any) -> None:
        """Run a function on a worker, unless it has gone."""
        self.control.run(function, workers=[address], on_error="ignore", **options)

    def chosen(self, *, rock: bool = False) -> tuple[str, str] | None:
        """Return the name and the address of a random worker that is not stopped."""
        there = [
            each
            for each in self.addresses().items()
            if each[0] in self.workers
            and each[0] not in self.stopped
            and self.workers[each[0]].poll() is None
            and (rock or each[0] != ROCK)
        ]
        return self.rng.choice(there) if there else None

    def addresses(self) -> dict[str, str]:
        """Return the addresses of the workers that the scheduler knows, by name."""
        workers = self.control.scheduler_info(n_workers=-1)["workers"]
        return {str(each["name"]): address for address, each in workers.items()}

    # what clients do

    def use(self, number: int) -> None:
        """Use the cluster as clients do, one after the other, until the time is over."""
        from distributed import Client

        rng = random.Random(f"{self.options.seed} {number}")
        while not self.stop.is_set():
            with Client(self.address, set_as_default=False) as client:
                self.done["clients"] += 1
                for _ in range(rng.randint(3, 15)):
                    if self.stop.is_set():
                        break
                    load = Load(client, rng, self.folder, self.rock, lambda: list(self.workers))
                    self.try_one(rng.choice(SCENARIOS), load)

    def try_one(self, scenario: Any, load: Load) -> None:
        """Run a scenario, and note what is wrong."""
        try:
            with load.client.as_current():
                self.checked[scenario.__name__] += scenario(load)
        except BaseException as error:
            trace = "" if isinstance(error, AssertionError) else traceback.format_exc()
            self.wrong.append(f"{scenario.__name__}: {error!r} {trace}")
            self.stop.set()

    def await_clients(self, threads: list[Thread]) -> None:
        """Wait until all clients have gone; if one does not, say where it waits, and give up."""
        end = time.time() + 3 * LIMIT
        for thread in threads:
            thread.join(max(end - time.time(), 0.0))
        if any(thread.is_alive() for thread in threads):
            self.wrong.append("a client does not end; see the stacks above")
            faulthandler.dump_traceback()

    def check_end(self) -> None:
        """Check that all is quiet, once the clients have gone."""
        end = time.time() + 60
        while (left := self.control.run_on_scheduler(tasks_left)) and time.time() < end:
            time.sleep(0.2)
        if left:
            self.wrong.append(f"{len(left)} tasks are left on the scheduler: {left[:5]}")
        if not self.options.stock:
            self.wrong += self.control.run_on_scheduler(wrong_with_placement)
        for due in self.folder.glob("*.due"):
            self.checked["unwatched"] += 1
            if not due.with_suffix("").exists():
                self.wrong.append("a task that nobody waited for was not run")
        log = (self.folder / "scheduler.log").read_text(errors="replace")
        for trace in log.split("Traceback (")[1:]:
            words = trace.partition("\n20")[0]  # the next line of the log begins with its date
            if "/gridwright/" in words:
                self.wrong.append(f"the scheduler has logged an error:\n{words[-4000:]}")


def set_status(status: str, dask_worker: Any) -> None:
    """Pause or resume a worker."""
    from distributed import Status

    dask_worker.status = Status[status]


def set_speed(factors: dict[str, float], dask_worker: Any) -> None:
    """Set how long tasks take on a worker."""
    dask_worker.walk_speed = factors


def tasks_left(dask_scheduler: Any) -> list[str]:
    """Return the tasks that a scheduler has.

    Dask itself keeps the result of a task that has ended before it was told to forget it.
    """
    forgets = dask_scheduler.clients.get("fire-and-forget")
    return [
        repr(task)
        for task in dask_scheduler.tasks.values()
        if not (task.state == "memory" and task.who_wants == {forgets})
    ]


def wrong_with_placement(dask_scheduler: Any) -> list[str]:
    """Return what is wrong with the placement of a scheduler that has no tasks left."""
    plugin = dask_scheduler.plugins["gridwright"]
    if plugin.placer is None:
        return [f"the placement is off: {plugin.why_off}"]
    left = {
        "tasks": plugin.placer.tasks,
        "keys": plugin.placer.numbers,
        "jobs": plugin.placer.book.jobs,
    }
    return [f"{len(each)} {name} are left in the book" for name, each in left.items() if each]


def main() -> int:
    """Walk, and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--events", type=int, default=-1, help="end after so many")
    parser.add_argument("--tasks", type=int, default=0, help="but not before so many are checked")
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--policy", default="pas_dg")
    parser.add_argument("--stock", action="store_true", help="without Placement")
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between events")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="gridwright-walk-") as folder:
        walk = Walk(options, Path(folder))
        walk.run()
    found = {
        "seconds": round(time.time() - began, 1),
        "checked": dict(walk.checked),
        "done": dict(walk.done),
        "wrong": walk.wrong,
    }
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return 1 if walk.wrong else 0


def show(found: dict[str, Any]) -> None:
    """Print the counts."""
    for title, counts in (("tasks checked", found["checked"]), ("events", found["done"])):
        print(f"{title}: {sum(counts.values()):,}")
        for name, count in sorted(counts.items()):
            print(f"  {name:20}{count:10,}")
    print(f"{found['seconds']:g} s, {len(found['wrong'])} wrong")
    for line in found["wrong"]:
        print(f"WRONG: {line}")


if __name__ == "__main__":
    sys.exit(main())
