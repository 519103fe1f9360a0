"""Run a grid for minutes while its processes are killed and stopped, and check what came of it.

    python tools/soak.py [--minutes 10] [--jobs 10000] [--executor local|dask] [--seed 1] [--json]

A client program runs a grid on one journal and submits jobs. Some jobs kill their process, never
end, fork, write garbage to their worker's socket, return or raise something huge, or are slow to
unpickle. This program kills and stops workers, the client, and the scheduler at random, and starts
the client again, with another time-out action each time. At the end it checks that

- every job whose submission was acknowledged has ended exactly once, as its kind should end;
- no job ran more often than the journal knows;
- innocent jobs never waited long for others;
- no process is left.

It prints the account and exits with status 1 if anything was wrong.
"""

import argparse
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from soak_account import account, lines

from gridwright.grid import Grid

MARK = "GRIDWRIGHT_SOAK"
"""The environment variable by which every process of a soak is found."""
ACTIONS = ("wait", "duplicate", "resubmit", "fail")
TIMEOUT = 2.0
"""Seconds that a job may take: every job is expected to take 1 s, and this is the time-out."""
RETRIES = 2
STALL = 30.0
"""Seconds in which one of the innocent jobs that wait must end, while the grid is running."""
TRIES = 10
"""How often a client may end before its grid is ready."""
DRAIN = 180.0
"""Seconds for the last jobs to end when nothing is killed any more."""

KINDS = {
    "quick": 0.954,
    "fails": 0.01,
    "forks": 0.01,
    "slow to unpickle": 0.008,
    "huge result": 0.002,
    "huge error": 0.002,
    "bad result": 0.003,
    "poison": 0.005,
    "garbage": 0.003,
    "endless": 0.002,
    "endless, in C": 0.001,
}
"""Kinds of jobs, and the share of each."""
FINISH = {"quick", "forks", "slow to unpickle", "huge result", "bad result"}
"""Those that end well, unless their machine was killed too often. The others fail."""


# the jobs


class SlowToUnpickle:
    """Takes a while to unpickle."""

    def __reduce__(self) -> tuple[Callable[[float], None], tuple[float]]:
        return time.sleep, (0.3,)


class BadResult:
    """Raises SystemExit when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return sys.exit, (3,)


def job(kind: str, number: int, log: str, seconds: float, _: object = None) -> Any:
    """Write down that it runs, and do what its kind does."""
    line = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, f"{number}\n".encode())
    os.close(line)
    if kind == "fails":
        raise ValueError("as it should")
    if kind == "huge error":
        raise ValueError("x" * 50_000_000)
    if kind == "huge result":
        return bytes(8_000_000)
    if kind == "bad result":
        return BadResult()
    if kind in ("forks", "endless", "poison") and os.fork() == 0:
        if number % 2:
            os.setsid()
        time.sleep(100_000)
    if kind == "poison":
        os.kill(os.getpid(), signal.SIGKILL if number % 2 else signal.SIGSEGV)
    if kind == "garbage":
        write_garbage()
    if kind == "endless, in C":
        ctypes.PyDLL(None).sleep(100_000)
    time.sleep(100_000 if kind in ("endless", "garbage") else seconds)
    return number


def write_garbage() -> None:
    """Write to every socket of this process."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                os.write(int(name), bytes(range(256)) * 9)


def plan(jobs: int, seed: int) -> list[tuple[str, float]]:
    """Return the kind of every job and the seconds that a quick one takes; each kind is there."""
    rng = random.Random(seed)
    kinds = [*KINDS, *rng.choices(list(KINDS), list(KINDS.values()), k=jobs)][:jobs]
    rng.shuffle(kinds)
    return [(kind, rng.uniform(0.002, 0.03)) for kind in kinds]


# the client: a program that runs a grid and submits jobs until it is killed


def client(options: argparse.Namespace) -> None:
    """Submit what was not acknowledged yet, at its time; then wait until everything has ended."""
    folder, jobs = Path(options.folder), plan(options.jobs, options.seed)
    acknowledged = folder / "acknowledged"
    done = {int(line.split()[0]) for line in lines(acknowledged)}
    pending: set[Future[Any]] = set()
    with (
        grid_of(options, folder) as grid,
        acknowledged.open("a", buffering=1) as said,
        (folder / "tried").open("a", buffering=1) as tried,
    ):
        print("ready", flush=True)
        pending.update(grid.unfinished.values())
        for k, (kind, seconds) in enumerate(jobs):
            if k in done or (options.action == "wait" and kind.startswith("endless")):
                continue  # nothing would end it; a later client submits it
            time.sleep(max(options.begin + k * options.pace - time.time(), 0))
            more = SlowToUnpickle() if kind == "slow to unpickle" else None
            tried.write(f"{k}\n")
            future = grid.options(task_class=kind).submit(
                job, kind, k, str(folder / "runs"), seconds, more
            )
            said.write(f"{k} {future.number}\n")
            pending.add(future)
            if len(pending) > 1000:
                pending = {each for each in pending if not each.done()}
        if options.action == "wait":
            time.sleep(1000)  # until it is killed: the endless jobs are still to come
        wait(pending)


def grid_of(options: argparse.Namespace, folder: Path) -> Grid:
    """Make a grid on the journal, which may have jobs of an earlier client."""
    more: dict[str, Any] = {"retries": RETRIES, "durable": True}
    if options.executor == "dask":
        more["on"] = options.address
    return Grid(
        options.policy,
        options.machines,
        classes=list(KINDS),
        rates=np.ones((len(KINDS), options.machines)),
        corrections=False,
        journal=folder / "journal.sqlite",
        timeout_factor=TIMEOUT,
        on_timeout=options.action,
        **more,
    )


# the driver


@dataclass
class Soak:
    """A client, perhaps a cluster, and what was done to them."""

    options: argparse.Namespace
    folder: Path
    mark: str = field(default_factory=lambda: uuid4().hex)
    rng: random.Random = field(default_factory=random.Random)
    begin: float = field(default_factory=time.time)
    lives: list[list[float]] = field(default_factory=list)
    """When each client was ready, and when it ended."""
    done: Counter[str] = field(default_factory=Counter)
    """What was done to the processes, and how often."""
    wrong: list[str] = field(default_factory=list)
    client: subprocess.Popen[bytes] | None = None
    cluster: subprocess.Popen[bytes] | None = None
    port: int = 0
    stopped: dict[int, float] = field(default_factory=dict)
    """Processes that are stopped, and until when."""

    def run(self) -> None:
        """Run clients one after the other until every job has ended."""
        self.rng.seed(self.options.seed)
        left = 60 * self.options.minutes
        try:
            self._keep_cluster()
            self.begin = time.time()
            while left > 0:
                self._start()
                self._disturb(left)
                left -= self.lives[-1][1] - self.lives[-1][0]
                if self.client is not None and self.client.returncode == 0:
                    break  # every job has ended
            self._drain()
        finally:
            self._end()

    def _start(self, action: str = "") -> None:
        """Start a client, and wait until its grid is ready."""
        known = ACTIONS if not self.lives else ACTIONS[1:]
        action = action or known[len(self.lives) % len(known)]
        while not self._launch(action):  # perhaps too few workers were there
            self.done["client that was not ready"] += 1
            if self.done["client that was not ready"] > TRIES:
                raise SystemExit((self.folder / "client.log").read_text()[-2000:])
        self.lives.append([time.time(), float("inf")])
        self.done[f"client with {action}"] += 1

    def _launch(self, action: str) -> bool:
        """Start a client; return whether its grid got ready."""
        self._keep_cluster()
        options, pace = self.options, 56 * self.options.minutes / self.options.jobs
        given = ("jobs", "seed", "executor", "machines", "policy")
        words = [f"--{name}={getattr(options, name)}" for name in given]
        words += [f"--folder={self.folder}", f"--action={action}", f"--begin={self.begin}"]
        words += [f"--pace={pace}", f"--address=tcp://127.0.0.1:{self.port}"]
        with (self.folder / "client.log").open("ab") as log:
            self.client = subprocess.Popen(
                [sys.executable, __file__, *words],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, MARK: self.mark},
            )
        assert self.client.stdout is not None
        with self.client.stdout as line:
            ready = line.readline()
        if not ready:
            self.client.wait()
        return bool(ready)

    def _disturb(self, seconds: float) -> None:
        """Kill and stop processes for so many seconds at most; then kill the client."""
        assert self.client is not None
        last = time.time() + min(self.rng.uniform(0.5, 1.5) * self.options.life, seconds)
        while self.client.poll() is None and time.time() < last:
            time.sleep(self.rng.uniform(0.2, 1.0))
            self._let_go()
            self._keep_cluster()
            self.rng.choice(self._harms())()
        self._let_go(all_of_them=True)
        if self.client.poll() is None:
            self.done["client killed"] += 1
            self.client.kill()
        elif self.client.returncode != 0:
            self.wrong.append(f"a client ended with status {self.client.returncode}")
        self.client.wait()
        self.lives[-1][1] = time.time()

    def _harms(self) -> list[Callable[[], None]]:
        """Return what can be done to the processes now; what is there twice is done more often."""
        found = [self._kill_worker, self._kill_worker, self._stop_worker, self._stop_client]
        if self.cluster is not None:
            found += [self._kill_dask_worker]
            if self.rng.random() < 0.1:
                found += [self._kill_scheduler]
        return found

    def _kill_worker(self) -> None:
        self._signal("worker killed", "grid/worker.py", signal.SIGKILL)

    def _kill_dask_worker(self) -> None:
        self._signal("Dask worker killed", "multiprocessing.spawn", signal.SIGKILL)

    def _stop_worker(self) -> None:
        pid = self._signal("worker stopped", "grid/worker.py", signal.SIGSTOP)
        if pid:
            self.stopped[pid] = time.time() + self.rng.uniform(0.5, 4)

    def _stop_client(self) -> None:
        if self.client is not None and self.client.poll() is None:
            self.done["client stopped"] += 1
            self.client.send_signal(signal.SIGSTOP)
            self.stopped[self.client.pid] = time.time() + self.rng.uniform(0.2, 1)

    def _kill_scheduler(self) -> None:
        if self.cluster is not None and self.cluster.poll() is None:
            self.done["scheduler killed"] += 1
            self.cluster.kill()

    def _signal(self, what: str, words: str, number: signal.Signals) -> int:
        """Send a signal to one of the processes whose command has some words in it."""
        found = sorted(pid for pid, command in processes(self.mark) if words in command)
        if not found:
            return 0
        pid = self.rng.choice(found)
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            self.done[what] += 1
        return pid

    def _let_go(self, *, all_of_them: bool = False) -> None:
        for pid, until in list(self.stopped.items()):
            if all_of_them or time.time() > until:
                del self.stopped[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _keep_cluster(self) -> None:
        """Start a scheduler and workers, if they are wanted and not there."""
        if self.options.executor != "dask":
            return
        if self.cluster is not None:
            if self.cluster.poll() is None:
                return
            if self.cluster.stdout is not None:
                self.cluster.stdout.close()
        self.port = self.port or free_port()
        words = ["--local", str(self.options.machines), "--port", str(self.port), "--json"]
        with (self.folder / "cluster.log").open("ab") as log:
            self.cluster = subprocess.Popen(
                [sys.executable, "-m", "gridwright", "dask", "workers", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, MARK: self.mark},
            )
        assert self.cluster.stdout is not None
        if not self.cluster.stdout.readline():
            self.wrong.append("the cluster did not start")

    def _drain(self) -> None:
        """Let a last client end everything in peace."""
        self._start("fail")
        assert self.client is not None
        try:
            status = self.client.wait(DRAIN)
            if status != 0:
                self.wrong.append(f"the last client ended with status {status}")
        except subprocess.TimeoutExpired:
            self.wrong.append(f"not every job has ended after {DRAIN:g} s in peace")
        self.lives[-1][1] = time.time()

    def _end(self) -> None:
        """End what is left of the client and the cluster."""
        self._let_go(all_of_them=True)
        if self.client is not None and self.client.poll() is None:
            self.client.kill()
            self.client.wait()
        if self.cluster is not None:
            self.cluster.send_signal(signal.SIGINT)
            self.cluster.wait()
            if self.cluster.stdout is not None:
                self.cluster.stdout.close()


def processes(mark: str) -> Iterator[tuple[int, str]]:
    """Find the processes of a soak, and their commands."""
    wanted = f"{MARK}={mark}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            environment = Path("/proc", name, "environ").read_bytes()
            if wanted in environment.split(b"\0"):
                command = Path("/proc", name, "cmdline").read_bytes()
                yield int(name), command.replace(b"\0", b" ").decode(errors="replace")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def report(soak: Soak) -> dict[str, Any]:
    """Return the account of a soak, and everything that was wrong."""
    kinds = [kind for kind, _ in plan(soak.options.jobs, soak.options.seed)]
    found = account(soak.folder, kinds, FINISH, soak.lives)
    left = still_there(soak.mark)
    wrong = [*soak.wrong, *found.wrong]
    if found.longest_stall > STALL:
        wrong.append(f"no innocent job ended for {found.longest_stall:.1f} s, while some waited")
    wrong += [f"process {pid} is left: {command}" for pid, command in left]
    return {
        "seconds": round(time.time() - soak.begin, 1),
        "executor": soak.options.executor,
        "kinds": found.table,
        "done": dict(soak.done),
        "longest_stall": round(found.longest_stall, 2),
        "processes_left": len(left),
        "wrong": wrong,
    }


def still_there(mark: str) -> list[tuple[int, str]]:
    """Return the processes that do not go away."""
    end = time.time() + 10
    while (found := list(processes(mark))) and time.time() < end:
        time.sleep(0.1)
    return found


def show(found: dict[str, Any]) -> None:
    """Print an account as a table."""
    columns = ["acknowledged", "finished", "failed", "cancelled", "attempts", "runs"]
    print(f"{'kind':18}" + "".join(f"{column:>14}" for column in columns))
    for kind, row in found["kinds"].items():
        print(f"{kind:18}" + "".join(f"{row.get(column, 0):14,}" for column in columns))
    print(f"\n{found['executor']}, {found['seconds']:g} s: ", end="")
    print(", ".join(f"{what} {count}×" for what, count in sorted(found["done"].items())))
    print(f"longest time in which no innocent job ended: {found['longest_stall']:g} s")
    print(f"processes left: {found['processes_left']}")
    for line in found["wrong"]:
        print(f"WRONG: {line}")


def main() -> int:
    """Run a soak, or its client."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="of disturbances")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--executor", choices=("local", "dask"), default="local")
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--policy", default="pas_dg")
    parser.add_argument("--life", type=float, default=15.0, help="mean seconds of a client's life")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    for name, kind in (("folder", str), ("action", str), ("address", str)):
        parser.add_argument(f"--{name}", type=kind, default="", help=argparse.SUPPRESS)
    for name in ("begin", "pace"):
        parser.add_argument(f"--{name}", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.action:
        client(options)
        return 0
    with tempfile.TemporaryDirectory(prefix="gridwright-soak-") as folder:
        os.environ["GRIDWRIGHT_HOME"] = folder
        soak = Soak(options, Path(folder))
        soak.run()
        found = report(soak)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
